"""The host side of the graph: rotary tables, and the inputs of one row."""

import numpy as np

from .architecture import HEAD_DIM
from .checkpoint import EMBEDDING, TYPE_EMBEDDING
from .graph import MAX_OPTIONS

MASKED = -1e4


def rope_tables(base, length):
    """(cos, sin) in FP64, each (1, HEAD_DIM/2, 1, length).

    Frequencies and angles round to FP32 where the reference rounds them. Powers and trigonometry are FP64, so that
    the FP16 bytes do not depend on the machine's FP32 functions.
    """
    powers = np.array([float(base) ** (2 * i / HEAD_DIM) for i in range(HEAD_DIM // 2)], np.float32)
    angles = np.outer(np.float32(1) / powers, np.arange(length, dtype=np.float32)).astype(np.float64)
    angles = angles[None, :, None, :]
    return np.cos(angles), np.sin(angles)


def masks(valid, window):
    """(full, local), each (1, key, 1, query) FP32: 0 where a query sees a key, else -1e4. `valid` is a bool vector.

    Padding keys are never seen. Local rows also hide keys outside the window, except for padded queries.
    """
    length = len(valid)
    positions = np.arange(length)
    near = np.abs(positions[:, None] - positions[None, :]) <= window
    seen = np.broadcast_to(valid[:, None], (length, length))
    local = seen & (near | ~valid[None, :])
    return tuple(np.where(mask, 0.0, MASKED).astype(np.float32)[None, :, None, :] for mask in (seen, local))


def features(checkpoint, row, length):
    """Input name -> FP32 array for one row.

    `row` has ids, markers, qtype, pad_id (see request.py); at most `length` ids and 32 markers.
    """
    ids = row["ids"] + [row["pad_id"]] * (length - len(row["ids"]))
    valid = np.arange(length) < len(row["ids"])
    full, local = masks(valid, checkpoint.architecture.window)
    markers = np.zeros((1, length, 1, MAX_OPTIONS), np.float32)
    for slot, position in enumerate(row["markers"]):
        markers[0, position, 0, slot] = 1.0
    return {
        "embeddings": checkpoint.rows_fp32(EMBEDDING, ids).T[None, :, None, :],
        "full_mask": full,
        "local_mask": local,
        "type_vectors": checkpoint.rows_fp32(TYPE_EMBEDDING, [row["qtype"]]).T[None, :, None, :],
        "marker_map": markers,
    }
