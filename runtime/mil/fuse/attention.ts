import type { Step } from '../program.js';
import { elementCount } from '../types.js';
import { isMatrix, matrixDims, type Value } from '../values.js';
import {
  bothOrders,
  channelConcat,
  equalSplit,
  factorBeside,
  hasNumbers,
  isMatrixProduct,
  operandList,
  operandNumbers,
  operandValue,
} from './match.js';
import type { AttentionStep, Links, Rotation } from './plan.js';

/** A query or key before its rotation, and the steps that rotate it. */
interface Rotated {
  readonly from: Value;
  readonly rotation: Rotation | undefined;
  readonly parts: readonly Step[];
}

/** One head's part of the attention. */
interface Head {
  readonly q: Rotated;
  readonly k: Rotated;
  readonly v: Value;
  readonly scale: number;
  readonly mask: Value | undefined;
  readonly parts: readonly Step[];
}

/** `left * cos - right * sin` and `right * cos + left * sin`, joined, where left and right are the halves of one value. */
function matchRotation(links: Links, value: Value): Rotated | undefined {
  const join = links.producer(value, 'concat');
  const [first, second] = channelConcat(join);
  const [sub, add] = [links.producer(first, 'sub'), links.producer(second, 'add')];
  if (!join || !sub || !add || operandList(join, 'values').length !== 2) return undefined;
  const leftCos = links.producer(operandValue(sub, 'x'), 'mul');
  const rightSin = links.producer(operandValue(sub, 'y'), 'mul');
  if (!leftCos || !rightSin) return undefined;
  for (const [left, cos] of bothOrders(leftCos)) {
    const split = links.producer(left, 'split');
    const from = equalSplit(split, left, 0, 2);
    const right = split?.outputs[1];
    const sin = right && bothOrders(rightSin).find(([x]) => x === right)?.[1].constant;
    if (!split || !from || !right || !sin || !cos.constant) continue;
    const [half, length] = matrixDims(left);
    const whole = [cos.constant, sin].every(
      (part) => isMatrix(part) && part.shape[1] === half && part.shape[3] === length,
    );
    const addends = bothOrders(add).find(
      ([x, y]) =>
        factorBeside(links.producer(x, 'mul'), cos.constant as Rotation['cos']) === right &&
        factorBeside(links.producer(y, 'mul'), sin) === left,
    );
    if (!whole || !addends) continue;
    const products = addends.map((addend) => links.producer(addend, 'mul') as Step);
    const parts = [split, leftCos, rightSin, sub, ...products, add, join];
    return { from, rotation: { cos: cos.constant, sin }, parts };
  }
  return undefined;
}

function rotated(links: Links, value: Value): Rotated {
  return matchRotation(links, value) ?? { from: value, rotation: undefined, parts: [] };
}

/** The product of transposed keys and queries. */
function matchScores(links: Links, value: Value): Pick<Head, 'q' | 'k' | 'parts'> | undefined {
  const product = links.producer(value, 'einsum');
  if (!product || !isMatrixProduct(product)) return undefined;
  const [keys, queries] = operandList(product, 'values') as [Value, Value];
  const transpose = links.producer(keys, 'transpose');
  const straight = transpose && operandValue(transpose, 'x');
  if (!straight || !isMatrix(straight) || !hasNumbers(transpose, 'perm', 0, 3, 2, 1)) return undefined;
  const [q, k] = [rotated(links, queries), rotated(links, straight)];
  return { q, k, parts: [...q.parts, ...k.parts, transpose, product] };
}

/** Scores times a constant other than 0, or as they are. */
function matchScaled(links: Links, value: Value): Omit<Head, 'v' | 'mask'> | undefined {
  const plain = matchScores(links, value);
  if (plain) return { ...plain, scale: 1 };
  const mul = links.producer(value, 'mul');
  for (const [scores, factor] of mul ? bothOrders(mul) : []) {
    const single = factor.constant && elementCount(factor.shape) === 1;
    const matched = single ? matchScores(links, scores) : undefined;
    const scale = matched && operandNumbers(mul as Step, factor === operandValue(mul as Step, 'x') ? 'x' : 'y')?.[0];
    if (matched && scale) return { ...matched, scale, parts: [...matched.parts, mul as Step] };
  }
  return undefined;
}

/** Scaled scores plus a mask of their shape, or as they are. */
function matchMasked(links: Links, value: Value): Omit<Head, 'v'> | undefined {
  const plain = matchScaled(links, value);
  if (plain) return { ...plain, mask: undefined };
  const add = links.producer(value, 'add');
  for (const [scores, mask] of add ? bothOrders(add) : []) {
    const matched = matchScaled(links, scores);
    const fits = isMatrix(mask) && String(mask.shape) === String(value.shape);
    if (matched && fits) return { ...matched, mask, parts: [...matched.parts, add as Step] };
  }
  return undefined;
}

function matchHead(links: Links, value: Value): Head | undefined {
  const product = links.producer(value, 'einsum');
  if (!product || !isMatrixProduct(product)) return undefined;
  const [v, weights] = operandList(product, 'values') as [Value, Value];
  const softmax = links.producer(weights, 'softmax');
  const scores = softmax && operandValue(softmax, 'x');
  if (!scores || !(hasNumbers(softmax, 'axis', 1) || hasNumbers(softmax, 'axis', -3))) return undefined;
  const matched = matchMasked(links, scores);
  return matched && { ...matched, v, parts: [...matched.parts, softmax, product] };
}

/** The tensor whose equal channel groups the heads use in order, and the split that takes it apart. */
function whole(links: Links, parts: readonly Value[]): { value: Value; split: Step } | undefined {
  const split = links.producer(parts[0], 'split');
  const wholes = parts.map((part, index) => equalSplit(split, part, index, parts.length));
  const value = wholes[0];
  return split && value && wholes.every((other) => other === value) ? { value, split } : undefined;
}

function sameSettings(a: Head, b: Head): boolean {
  const rotations = [a.q, a.k, b.q, b.k].map(
    (part) => part.rotation && `${part.rotation.cos.key}|${part.rotation.sin.key}`,
  );
  return a.scale === b.scale && a.mask === b.mask && new Set(rotations).size === 1;
}

/**
 * Attention written head by head, recognised from the concatenation of the heads' results. Undefined unless every
 * head has the same scale, mask and rotation, and uses its own part of the same queries, keys and values, in order.
 */
export function matchAttention(links: Links, step: Step): AttentionStep | undefined {
  if (step.op !== 'concat') return undefined;
  const values = channelConcat(step);
  const first = values.length > 1 ? matchHead(links, values[0] as Value) : undefined;
  if (!first) return undefined;
  const heads = values.map((value) => matchHead(links, value));
  if (!heads.every((head): head is Head => head !== undefined && sameSettings(first, head))) return undefined;
  const q = whole(
    links,
    heads.map((head) => head.q.from),
  );
  const k = whole(
    links,
    heads.map((head) => head.k.from),
  );
  const v = whole(
    links,
    heads.map((head) => head.v),
  );
  if (!q || !k || !v) return undefined;
  return {
    kind: 'attention',
    q: q.value,
    k: k.value,
    v: v.value,
    heads: heads.length,
    rotation: first.q.rotation,
    scale: first.scale,
    mask: first.mask,
    outputs: [step.outputs[0] as Value],
    parts: [q.split, k.split, v.split, ...heads.flatMap((head) => head.parts), step],
  };
}
