import { program } from './models.js';

/** How an attention is written, where it can differ from head to head. */
export interface AttentionText {
  readonly heads: number;
  readonly width: number;
  readonly length: number;
  readonly rope?: boolean;
  /** Scale of one head; default 0.5 for all. */
  readonly scale?: (head: number) => number;
  /** Mask of one head, `m` or `n`; default `m`. */
  readonly mask?: (head: number) => string;
  /** Which part of the values a head uses; default its own. */
  readonly part?: (head: number) => number;
  /** The rotation's second half: `add` is right. */
  readonly second?: 'add' | 'sub';
  readonly softmaxAxis?: number;
  /** A second output: the weights of head 0. */
  readonly exposed?: boolean;
}

function rotation(name: string, from: string, half: string, second: string): string[] {
  const n = `${name}r`;
  return [
    `${half} ${n}l, ${half} ${n}h = split(axis = int32(1), num_splits = int32(2), x = ${from});`,
    `${half} ${n}a = mul(x = ${n}l, y = cosines);`,
    `${half} ${n}b = mul(x = sines, y = ${n}h);`,
    `${half} ${n}c = sub(x = ${n}a, y = ${n}b);`,
    `${half} ${n}d = mul(x = ${n}h, y = cosines);`,
    `${half} ${n}e = mul(x = ${n}l, y = sines);`,
    `${half} ${n}f = ${second}(x = ${n}d, y = ${n}e);`,
  ];
}

/** One head's statements; its result is `o<head>`. */
function head(i: number, text: AttentionText): string[] {
  const { width, length, rope = false, scale = () => 0.5, mask = () => 'm', part = (h) => h } = text;
  const shape = (c: number, l: number) => `tensor<fp32, [1, ${c}, 1, ${l}]>`;
  const [vector, scores] = [shape(width, length), shape(length, length)];
  const rotate = (name: string) => [
    ...rotation(`${name}${i}`, `${name}${i}`, shape(width / 2, length), text.second ?? 'add'),
    `${vector} ${name}${i}x = concat(axis = int32(1), interleave = bool(false), values = (${name}${i}rc, ${name}${i}rf));`,
  ];
  const [q, k] = rope ? [`q${i}x`, `k${i}x`] : [`q${i}`, `k${i}`];
  return [
    ...(rope ? [...rotate('q'), ...rotate('k')] : []),
    `${shape(length, width)} t${i} = transpose(perm = tensor<int32, [4]>([0, 3, 2, 1]), x = ${k});`,
    `${scores} s${i} = einsum(equation = string("bkhc,bchq->bkhq"), values = (t${i}, ${q}));`,
    `${scores} f${i} = mul(x = s${i}, y = fp32(${scale(i)}));`,
    `${scores} g${i} = add(x = f${i}, y = ${mask(i)});`,
    `${scores} p${i} = softmax(axis = int32(${text.softmaxAxis ?? 1}), x = g${i});`,
    `${vector} o${i} = einsum(equation = string("bchk,bkhq->bchq"), values = (v${part(i)}, p${i}));`,
  ];
}

/** Attention head by head over inputs `x` (queries, keys and values), masks `m` and `n`; the output is `y`. */
export function attentionProgram(text: AttentionText): string {
  const { heads, width, length } = text;
  const channels = heads * width;
  const shape = (c: number, l = length) => `tensor<fp32, [1, ${c}, 1, ${l}]>`;
  const range = Array.from({ length: heads }, (_, i) => i);
  const parts = (name: string) =>
    `${range.map((i) => `${shape(width)} ${name}${i}`).join(', ')} = split(axis = int32(1), num_splits = int32(${heads}), x = ${name});`;
  const nested = (at: (c: number, l: number) => number) => {
    const rows = Array.from({ length: width / 2 }, (_, c) => Array.from({ length }, (_, l) => at(c, l).toFixed(6)));
    return `[[${rows.map((row) => `[[${row.join(', ')}]]`).join(', ')}]]`;
  };
  const angle = (c: number, l: number) => l / 10 ** (c / width);
  const table = (name: string, f: (x: number) => number) =>
    `${shape(width / 2)} ${name} = const()[val = ${shape(width / 2)}(${nested((c, l) => f(angle(c, l)))})];`;
  const inputs = `${shape(3 * channels)} x, ${shape(length)} m, ${shape(length)} n`;
  const statements = [
    ...(text.rope ? [table('cosines', Math.cos), table('sines', Math.sin)] : []),
    `${shape(channels)} q, ${shape(channels)} k, ${shape(channels)} v = split(axis = int32(1), num_splits = int32(3), x = x);`,
    parts('q'),
    parts('k'),
    parts('v'),
    ...range.flatMap((i) => head(i, text)),
    `${shape(channels)} y = concat(axis = int32(1), values = (${range.map((i) => `o${i}`).join(', ')}));`,
  ];
  return program(inputs, statements, text.exposed ? 'y, p0' : 'y');
}
