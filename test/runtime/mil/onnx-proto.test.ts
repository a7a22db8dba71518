import { BinaryReader } from '@bufbuild/protobuf/wire';
import { describe, expect, test } from '@jest/globals';
import { encodeOnnxModel, type OnnxModel } from '../../../runtime/mil/onnx-proto.js';

type Field = readonly [number, number | bigint | Uint8Array];

/** The fields of one message, as they lie on the wire. */
function fields(bytes: Uint8Array): Field[] {
  const reader = new BinaryReader(bytes);
  const found: Field[] = [];
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag();
    if (wire === 0) found.push([field, Number(reader.int64())]);
    else if (wire === 2) found.push([field, reader.bytes()]);
    else found.push([field, reader.float()]);
  }
  return found;
}

function all(bytes: Uint8Array, ...path: number[]): (number | bigint | Uint8Array)[] {
  const [field, ...rest] = path as [number, ...number[]];
  const here = fields(bytes).flatMap(([number, value]) => (number === field ? [value] : []));
  return rest.length === 0 ? here : here.flatMap((value) => all(value as Uint8Array, ...rest));
}

function texts(bytes: Uint8Array, ...path: number[]): string[] {
  return all(bytes, ...path).map((value) => Buffer.from(value as Uint8Array).toString());
}

const MODEL: OnnxModel = {
  graphName: 'g',
  nodes: [
    {
      op: 'FusedMatMul',
      domain: 'com.microsoft',
      name: 'n',
      inputs: ['x', 'w'],
      outputs: ['y'],
      attributes: { transA: { int: -1 }, alpha: { float: 0.5 }, perm: { ints: [1, 0] }, mode: { string: 'é' } },
    },
  ],
  initializers: [
    { name: 'w', dtype: 'float32', dims: [1, 2], data: new Uint8Array(8).fill(7) },
    { name: 'big', dtype: 'int64', dims: [3], data: { location: 'd', offset: 2 ** 33, length: 24 } },
  ],
  inputs: [{ name: 'x', dtype: 'float32', dims: [2, 1] }],
  outputs: [{ name: 'y', dtype: 'bool', dims: [] }],
};

describe('encodeOnnxModel', () => {
  const bytes = encodeOnnxModel(MODEL);

  test('writes the model, its operator sets and its graph', () => {
    expect(all(bytes, 1)).toEqual([9]);
    expect(texts(bytes, 8, 1)).toEqual(['', 'com.microsoft']);
    expect(all(bytes, 8, 2)).toEqual([20, 1]);
    expect(texts(bytes, 7, 2)).toEqual(['g']);
  });

  test('writes nodes with typed attributes', () => {
    expect(texts(bytes, 7, 1, 1)).toEqual(['x', 'w']);
    expect(texts(bytes, 7, 1, 2)).toEqual(['y']);
    expect([texts(bytes, 7, 1, 4), texts(bytes, 7, 1, 7)]).toEqual([['FusedMatMul'], ['com.microsoft']]);
    expect(texts(bytes, 7, 1, 5, 1)).toEqual(['transA', 'alpha', 'perm', 'mode']);
    expect(all(bytes, 7, 1, 5, 20)).toEqual([2, 1, 7, 3]);
    expect([all(bytes, 7, 1, 5, 3), all(bytes, 7, 1, 5, 2)]).toEqual([[-1], [0.5]]);
    expect([all(bytes, 7, 1, 5, 8), texts(bytes, 7, 1, 5, 4)]).toEqual([[1, 0], ['é']]);
  });

  test('writes tensors with their bytes, or where these lie in another file', () => {
    expect(texts(bytes, 7, 5, 8)).toEqual(['w', 'big']);
    expect(all(bytes, 7, 5, 1)).toEqual([1, 2, 3]);
    expect(all(bytes, 7, 5, 2)).toEqual([1, 7]);
    expect(all(bytes, 7, 5, 9)).toEqual([new Uint8Array(8).fill(7)]);
    expect(texts(bytes, 7, 5, 13, 1)).toEqual(['location', 'offset', 'length']);
    expect(texts(bytes, 7, 5, 13, 2)).toEqual(['d', '8589934592', '24']);
    expect(all(bytes, 7, 5, 14)).toEqual([1]);
  });

  test('writes inputs and outputs with type and shape', () => {
    expect([texts(bytes, 7, 11, 1), texts(bytes, 7, 12, 1)]).toEqual([['x'], ['y']]);
    expect([all(bytes, 7, 11, 2, 1, 1), all(bytes, 7, 12, 2, 1, 1)]).toEqual([[1], [9]]);
    expect(all(bytes, 7, 11, 2, 1, 2, 1, 1)).toEqual([2, 1]);
  });

  test('gives the same bytes again', () => {
    expect(encodeOnnxModel(MODEL)).toEqual(bytes);
  });
});
