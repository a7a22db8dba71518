import { describe, expect, test } from '@jest/globals';
import type { MilOperation, MilProgram } from '../../../runtime/mil/ast.js';
import { parseMil } from '../../../runtime/mil/parser.js';
import { program } from './models.js';

const OLD = `program(1.0)
[buildInfo = dict<tensor<string, []>, tensor<string, []>>({{"coremlc-component-MIL", "5.33.5"}, {"coremlc-version", "1877.40.3"}})]
{
    func main<ios16>(tensor<fp16, [1, 4, 1, 2]> x) {
            tensor<int32, []> axis = const()[name = tensor<string, []>("axis"), val = tensor<int32, []>(1)];
            tensor<string, []> mode = const()[name = tensor<string, []>("mode"), val = tensor<string, []>("EXACT")];
            tensor<fp16, [4]> w = const()[name = tensor<string, []>("w"), val = tensor<fp16, [4]>(BLOBFILE(path = tensor<string, []>("@model_path/weights/weight.bin"), offset = tensor<uint64, []>(64)))];
            tensor<fp16, [1, 2, 1, 2]> a_0, tensor<fp16, [1, 2, 1, 2]> a_1 = split(axis = axis, num_splits = tensor<int32, []>(2), x = x)[name = tensor<string, []>("a")];
            tensor<fp16, [1, 4, 1, 2]> y = concat(axis = axis, values = (a_1, a_0))[name = tensor<string, []>("y")];
        } -> (y);
}`;

function operations(text: string): readonly MilOperation[] {
  return parseMil(text).functions[0]?.operations ?? [];
}

function failure(text: string): { code: string; where: string } {
  try {
    parseMil(text);
  } catch (error) {
    return error as { code: string; where: string };
  }
  throw new Error('nothing was refused');
}

function expectSame(a: MilProgram, b: MilProgram): void {
  const plain = (p: MilProgram) =>
    p.functions.map((fn) => ({ ...fn, operations: fn.operations.map(({ offset, ...op }) => op) }));
  expect(plain(a)).toEqual(plain(b));
}

describe('parseMil', () => {
  test('reads program(1.0), where scalars and strings are tensors of no dimension', () => {
    const [axis, mode, w, split, concat] = operations(OLD);
    expect(axis?.attributes.get('val')).toEqual({
      kind: 'numbers',
      type: { kind: 'tensor', dtype: 'int32', shape: [] },
      data: [1],
    });
    expect(mode?.attributes.get('val')).toMatchObject({ kind: 'strings', data: ['EXACT'] });
    expect(w?.attributes.get('val')).toMatchObject({
      kind: 'blob',
      blob: { path: '@model_path/weights/weight.bin', offset: 64 },
    });
    expect(split?.outputs.map((output) => output.name)).toEqual(['a_0', 'a_1']);
    expect(split?.args.get('num_splits')).toMatchObject({ kind: 'value', value: { data: [2] } });
    expect(concat?.args.get('values')).toEqual({
      kind: 'list',
      items: [
        { kind: 'name', name: 'a_1' },
        { kind: 'name', name: 'a_0' },
      ],
    });
  });

  test('reads both dialects to the same program', () => {
    const renewed = OLD.replace('program(1.0)', 'program(1.3)')
      .replaceAll(/tensor<(\w+), \[\]>/g, '$1')
      .replaceAll('[name = string("a")]', '');
    expect(parseMil(OLD).version).toBe('1.0');
    expect(parseMil(renewed).version).toBe('1.3');
    expectSame(parseMil(OLD), parseMil(renewed));
  });

  test('reads flexible shapes, several functions, blocks and container types', () => {
    const text = `program(1.3)
[buildInfo = dict<string, string>({{"a", "b"}})]
{
  func first<ios18>(tensor<fp32, [?, 2]> x) [FlexibleShapeInformation = tuple<tuple<string, dict<string, tensor<int32, [?]>>>, tuple<string, dict<string, list<tensor<int32, [2]>, ?>>>>((("DefaultShapes", {{"x", [4, 2]}}), ("RangeDims", {{"x", [[0, 4], [2, 2]]}})))] {
    bool c = const()[val = bool(true)];
    tensor<fp32, [?, 2]> y = cond(pred = c)
      () { tensor<fp32, [?, 2]> t = relu(x = x); } -> (t)
      () { tensor<fp32, [?, 2]> e = tanh(x = x); } -> (e);
  } -> (y);
  func second<ios18>(state<tensor<fp16, [2]>> s) { } -> ();
}`;
    const [first, second] = parseMil(text).functions;
    expect(first?.inputs[0]?.type).toEqual({ kind: 'tensor', dtype: 'fp32', shape: [null, 2] });
    expect(first?.operations[1]?.blocks.map((block) => block.operations[0]?.op)).toEqual(['relu', 'tanh']);
    expect(second?.inputs[0]?.type).toEqual({ kind: 'opaque', name: 'state' });
  });

  test('reads every kind of literal', () => {
    const values = operations(
      program(
        '',
        [
          'tensor<bool, [2]> a = const()[val = tensor<bool, [2]>([true, false])];',
          'tensor<fp16, [2, 2]> b = const()[val = tensor<fp16, [2, 2]>([[0x1p+0, -0x1p-1], [inf, nan]])];',
          'tensor<int32, [0]> c = const()[val = tensor<int32, [0]>([])];',
          'tensor<string, [2]> d = const()[val = tensor<string, [2]>(["x", "y"])];',
          'fp32 e = const()[val = fp32(1.5e-3)];',
          'int64 f = const()[val = int64(-9007199254740991)];',
        ],
        'a',
      ),
    ).map((operation) => operation.attributes.get('val'));
    const data = values.map((value) =>
      value?.kind === 'numbers' || value?.kind === 'strings' ? value.data : undefined,
    );
    expect(data).toEqual([
      [1, 0],
      [1, -0.5, Number.POSITIVE_INFINITY, Number.NaN],
      [],
      ['x', 'y'],
      [0.0015],
      [-9007199254740991],
    ]);
  });

  test.each([
    ['', 1, 1],
    ['program(2.0) { }', 1, 9],
    ['program(1.3)\n{\n  func main<ios18>() {\n    int32 a = ;\n  } -> (a);\n}', 4, 15],
    ['program(1.3)\n{\n  func main<ios18>() {\n    half a = const()[];\n  } -> (a);\n}', 4, 5],
    ['program(1.3) { } trailing', 1, 18],
  ])('places the error in %j', (text, line, column) => {
    expect(failure(text)).toMatchObject({ code: 'MIL_SYNTAX', where: `model.mil:${line}:${column}` });
  });

  test.each([
    ['an element too many', 'tensor<int32, [2]>([1, 2, 3])'],
    ['an element too few', 'tensor<int32, [2]>([1])'],
    ['nesting that is not the shape', 'tensor<int32, [2]>([[1, 2]])'],
    ['a fraction as an integer', 'int32(0x1p-1)'],
    ['an integer out of range', 'int32(2147483648)'],
    ['a number as a bool', 'bool(2)'],
    ['a string as a number', 'int32("1")'],
    ['a negative offset', 'tensor<fp16, [1]>(BLOBFILE(path = string("p"), offset = uint64(-1)))'],
    ['an untyped offset', 'tensor<fp16, [1]>(BLOBFILE(path = string("p"), offset = 64))'],
    ['too many dimensions', 'tensor<int32, [1, 1, 1, 1, 1, 1, 1, 1, 1]>([])'],
    ['a repeated attribute', 'int32(1), val = int32(2)'],
  ])('refuses %s', (_, value) => {
    expect(failure(program('', `int32 a = const()[val = ${value}];`, 'a')).code).toBe('MIL_SYNTAX');
  });

  test('refuses nesting that would exhaust the stack', () => {
    const deep = 200_000;
    const nested = [
      `program(1.3)[a = ${'dict<'.repeat(deep)}`,
      `program(1.3)[a = dict<string, string>(${'{'.repeat(deep)}`,
      program('', `int32 a = f(x = ${'('.repeat(deep)}`, 'a'),
      program('', `int32 a = f()${'() { int32 a = f()'.repeat(deep)}`, 'a'),
      program('', `tensor<int32, [1]> a = const()[val = tensor<int32, [1]>(${'['.repeat(deep)}`, 'a'),
    ];
    expect(nested.map((text) => failure(text).code)).toEqual(nested.map(() => 'MIL_SYNTAX'));
  });

  test('reads twenty thousand operations', () => {
    const lines = Array.from({ length: 20_000 }, (_, i) => `tensor<fp16, [1, 64, 1, 64]> v${i + 1} = relu(x = v${i});`);
    expect(operations(program('tensor<fp16, [1, 64, 1, 64]> v0', lines, 'v20000'))).toHaveLength(20_000);
  });
});
