"""The protobuf messages of a MIL program, filled the way coremltools fills them."""

from . import native

FP16, INT32, BOOL, STRING = (native.mil.DataType.Value(name) for name in ("FLOAT16", "INT32", "BOOL", "STRING"))


def tensor_type(value_type, dtype, shape):
    """Makes a ValueType message the tensor type of `shape`; () is a scalar."""
    tensor = value_type.tensorType
    tensor.dataType = dtype
    tensor.rank = len(shape)
    for size in shape:
        tensor.dimensions.add().constant.size = size


def immediate(value, dtype, shape, values):
    """Fills a Value message with a tensor; FP16 values come as bytes."""
    value.Clear()
    tensor_type(value.type, dtype, shape)
    tensor = value.immediateValue.tensor
    if dtype == FP16:
        tensor.bytes.values = values
    elif dtype == INT32:
        tensor.ints.values.extend(values)
    elif dtype == BOOL:
        tensor.bools.values.extend(values)
    else:
        tensor.strings.values.extend(values)


def build_info(value, version):
    """The dictionary attribute that names the producer, as coremltools writes it."""
    for side in (value.type.dictionaryType.keyType, value.type.dictionaryType.valueType):
        tensor_type(side, STRING, ())
    for key, text in (("coremltools-version", version), ("coremltools-component-milinternal", "")):
        entry = value.immediateValue.dictionary.values.add()
        immediate(entry.key, STRING, (), [key])
        immediate(entry.value, STRING, (), [text])
