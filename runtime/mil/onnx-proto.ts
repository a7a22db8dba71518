import { BinaryWriter } from '@bufbuild/protobuf/wire';

/** `TensorProto.DataType` of the element types this executor uses (onnx.proto). */
export const ONNX_DTYPE = {
  float32: 1,
  uint8: 2,
  int8: 3,
  uint16: 4,
  int16: 5,
  int32: 6,
  int64: 7,
  bool: 9,
  float16: 10,
} as const;

export type OnnxDtype = keyof typeof ONNX_DTYPE;

/** One attribute of a node; the tag decides the protobuf field. */
export type OnnxAttribute =
  | { readonly int: number }
  | { readonly ints: readonly number[] }
  | { readonly float: number }
  | { readonly string: string };

export interface OnnxNode {
  readonly op: string;
  /** Operator set; the default set when absent. */
  readonly domain?: string;
  readonly name: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, OnnxAttribute>>;
}

/** A constant tensor: its little-endian bytes, or where they lie in a file beside the model. */
export interface OnnxInitializer {
  readonly name: string;
  readonly dtype: OnnxDtype;
  readonly dims: readonly number[];
  readonly data: Uint8Array | { readonly location: string; readonly offset: number; readonly length: number };
}

export interface OnnxValueInfo {
  readonly name: string;
  readonly dtype: OnnxDtype;
  /** Sizes; a name stands for one that every run chooses. */
  readonly dims: readonly (number | string)[];
}

export interface OnnxModel {
  readonly graphName: string;
  readonly nodes: readonly OnnxNode[];
  readonly initializers: readonly OnnxInitializer[];
  readonly inputs: readonly OnnxValueInfo[];
  readonly outputs: readonly OnnxValueInfo[];
}

/** The operator sets every model is written against: ONNX 20 and ONNX Runtime's own operators. */
const OPSETS = [
  { domain: '', version: 20 },
  { domain: 'com.microsoft', version: 1 },
];

/** ONNX IR version 9 is the first that carries operator set 20. */
const IR_VERSION = 9;

/** Protobuf wire types: https://protobuf.dev/programming-guides/encoding/ */
const VARINT = 0;
const LEN = 2;
const FIXED32 = 5;

/** `TensorProto.DataLocation.EXTERNAL`. */
const EXTERNAL = 1;

/** `AttributeProto.AttributeType`. */
const ATTRIBUTE_TYPE = { float: 1, int: 2, string: 3, ints: 7 } as const;

type Writer = InstanceType<typeof BinaryWriter>;

function text(w: Writer, field: number, value: string): void {
  w.tag(field, LEN).string(value);
}

function int64(w: Writer, field: number, value: number): void {
  w.tag(field, VARINT).int64(value);
}

function message(w: Writer, field: number, body: (w: Writer) => void): void {
  w.tag(field, LEN).fork();
  body(w);
  w.join();
}

/** `AttributeProto`: name 1, f 2, i 3, s 4, ints 8, type 20. */
function writeAttribute(w: Writer, name: string, attribute: OnnxAttribute): void {
  text(w, 1, name);
  if ('float' in attribute) {
    w.tag(2, FIXED32).float(attribute.float);
    int64(w, 20, ATTRIBUTE_TYPE.float);
  } else if ('int' in attribute) {
    int64(w, 3, attribute.int);
    int64(w, 20, ATTRIBUTE_TYPE.int);
  } else if ('string' in attribute) {
    text(w, 4, attribute.string);
    int64(w, 20, ATTRIBUTE_TYPE.string);
  } else {
    for (const value of attribute.ints) int64(w, 8, value);
    int64(w, 20, ATTRIBUTE_TYPE.ints);
  }
}

/** `NodeProto`: input 1, output 2, name 3, op_type 4, attribute 5, domain 7. */
function writeNode(w: Writer, node: OnnxNode): void {
  for (const input of node.inputs) text(w, 1, input);
  for (const output of node.outputs) text(w, 2, output);
  text(w, 3, node.name);
  text(w, 4, node.op);
  for (const [name, attribute] of Object.entries(node.attributes)) {
    message(w, 5, (inner) => writeAttribute(inner, name, attribute));
  }
  if (node.domain !== undefined) text(w, 7, node.domain);
}

/** `StringStringEntryProto`: key 1, value 2. */
function writeEntry(w: Writer, field: number, key: string, value: string): void {
  message(w, field, (inner) => {
    text(inner, 1, key);
    text(inner, 2, value);
  });
}

/** Bytes that lie one after the other; large ones are not copied before the end. */
type Parts = readonly Uint8Array[];

function byteLength(parts: Parts): number {
  return parts.reduce((sum, part) => sum + part.length, 0);
}

function written(body: (w: Writer) => void): Uint8Array {
  const w = new BinaryWriter();
  body(w);
  return w.finish();
}

/** A length-delimited field. */
function delimited(field: number, parts: Parts): Uint8Array[] {
  return [written((w) => w.tag(field, LEN).uint32(byteLength(parts))), ...parts];
}

/** `TensorProto`: dims 1, data_type 2, name 8, raw_data 9, external_data 13, data_location 14. */
function tensorParts(tensor: OnnxInitializer): Parts {
  const { data } = tensor;
  const head = written((w) => {
    for (const dim of tensor.dims) int64(w, 1, dim);
    int64(w, 2, ONNX_DTYPE[tensor.dtype]);
    text(w, 8, tensor.name);
    if (data instanceof Uint8Array) return;
    writeEntry(w, 13, 'location', data.location);
    writeEntry(w, 13, 'offset', String(data.offset));
    writeEntry(w, 13, 'length', String(data.length));
    int64(w, 14, EXTERNAL);
  });
  return data instanceof Uint8Array ? [head, ...delimited(9, [data])] : [head];
}

/**
 * `ValueInfoProto`: name 1, type 2; `TypeProto`: tensor_type 1; `TypeProto.Tensor`: elem_type 1, shape 2;
 * `TensorShapeProto`: dim 1; `Dimension`: dim_value 1, dim_param 2.
 */
function writeValueInfo(w: Writer, info: OnnxValueInfo): void {
  text(w, 1, info.name);
  message(w, 2, (type) =>
    message(type, 1, (tensor) => {
      int64(tensor, 1, ONNX_DTYPE[info.dtype]);
      message(tensor, 2, (shape) => {
        for (const dim of info.dims) {
          message(shape, 1, (d) => (typeof dim === 'number' ? int64(d, 1, dim) : text(d, 2, dim)));
        }
      });
    }),
  );
}

/** `GraphProto`: node 1, name 2, initializer 5, input 11, output 12. */
function graphParts(model: OnnxModel): Parts {
  const head = written((w) => {
    for (const node of model.nodes) message(w, 1, (inner) => writeNode(inner, node));
    text(w, 2, model.graphName);
  });
  const border = written((w) => {
    for (const info of model.inputs) message(w, 11, (inner) => writeValueInfo(inner, info));
    for (const info of model.outputs) message(w, 12, (inner) => writeValueInfo(inner, info));
  });
  return [head, ...model.initializers.flatMap((tensor) => delimited(5, tensorParts(tensor))), border];
}

/**
 * The model as the bytes of an ONNX `ModelProto` (ir_version 1, producer_name 2, graph 7, opset_import 8).
 * Field numbers are those of onnx/onnx.proto. The same model gives the same bytes.
 */
export function encodeOnnxModel(model: OnnxModel): Uint8Array {
  const head = written((w) => {
    int64(w, 1, IR_VERSION);
    text(w, 2, 'laya-artifacts');
  });
  const opsets = written((w) => {
    for (const { domain, version } of OPSETS) {
      message(w, 8, (opset) => {
        text(opset, 1, domain);
        int64(opset, 2, version);
      });
    }
  });
  return Buffer.concat([head, ...delimited(7, graphParts(model)), opsets]);
}
