import { brokenProtocol } from './errors.js';

/** Frames of docs/probe-protocol.md §4.1. */
export const KIND = { hello: 1, ready: 2, result: 3, error: 4, predict: 16, cancel: 17 } as const;

/** Bytes before a payload. */
export const HEADER_BYTES = 16;

/** Bound of a JSON payload. */
const JSON_BYTES = 4 << 20;

/** "LAYP", read as a little-endian number. */
const MAGIC = 0x5059414c;

export interface Frame {
  readonly kind: number;
  readonly id: number;
  /** Memory of its own that starts at a multiple of 8. */
  readonly payload: Buffer;
}

/** Writes the 16 bytes of a header to the start of a buffer. */
export function writeHeader(target: Buffer, kind: number, id: number, length: number): void {
  target.writeUInt32LE(MAGIC, 0);
  target.writeUInt32LE(kind, 4);
  target.writeUInt32LE(id, 8);
  target.writeUInt32LE(length, 12);
}

/** A whole frame with a payload of bytes. */
export function encodeFrame(kind: number, id: number, payload: Uint8Array = new Uint8Array()): Buffer {
  const frame = Buffer.alloc(HEADER_BYTES + payload.length);
  writeHeader(frame, kind, id, payload.length);
  frame.set(payload, HEADER_BYTES);
  return frame;
}

/**
 * Takes the probe's bytes in whatever pieces they come and gives frames. A header is judged as soon as it is whole, so
 * no length that the probe may not send takes memory. Nothing can be read after a refusal.
 */
export class FrameReader {
  /** Largest RESULT; until READY there is none. */
  resultBytes = 0;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #payload: Buffer | undefined;
  #filled = 0;

  /** The frames that these bytes complete, in order. Throws ProbeError PROBE_PROTOCOL. */
  *push(bytes: Uint8Array): Generator<Frame> {
    let rest = bytes;
    while (rest.length > 0) {
      rest = this.#fill(this.#payload ?? this.#header, rest);
      const frame = this.#complete();
      if (frame) yield frame;
    }
  }

  /** The stream ended. Throws ProbeError PROBE_PROTOCOL within a frame. */
  end(): void {
    if (this.#payload || this.#filled > 0) throw brokenProtocol('the stream', 'whole frames', 'FRAME_TRUNCATED');
  }

  #fill(target: Buffer, bytes: Uint8Array): Uint8Array {
    const count = Math.min(bytes.length, target.length - this.#filled);
    target.set(bytes.subarray(0, count), this.#filled);
    this.#filled += count;
    return bytes.subarray(count);
  }

  #complete(): Frame | undefined {
    if (!this.#payload) {
      if (this.#filled < HEADER_BYTES) return undefined;
      this.#payload = Buffer.allocUnsafeSlow(this.#checkedLength());
      this.#filled = 0;
    }
    if (this.#filled < this.#payload.length) return undefined;
    const payload = this.#payload;
    this.#payload = undefined;
    this.#filled = 0;
    return { kind: this.#header.readUInt8(4), id: this.#header.readUInt32LE(8), payload };
  }

  #checkedLength(): number {
    const header = this.#header;
    if (header.readUInt32LE(0) !== MAGIC) {
      throw brokenProtocol('a frame', 'the bytes LAYP', `FRAME_MAGIC: ${JSON.stringify(header.toString('latin1'))}`);
    }
    const kind = header.readUInt8(4);
    if (kind < KIND.hello || kind > KIND.error) {
      throw brokenProtocol('a frame', 'a kind from 1 to 4', `FRAME_KIND: ${kind}`);
    }
    if (header.readUInt32LE(4) !== kind) throw brokenProtocol('a frame', 'zeros', 'FRAME_RESERVED');
    const length = header.readUInt32LE(12);
    const most = kind === KIND.result ? this.resultBytes : JSON_BYTES;
    if (length > most) throw brokenProtocol('a frame', `at most ${most} bytes`, `FRAME_TOO_LARGE: ${length}`);
    return length;
  }
}
