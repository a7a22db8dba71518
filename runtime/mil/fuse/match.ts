import { type Constant, constantElements } from '../constants.js';
import type { Step } from '../program.js';
import { elementCount } from '../types.js';
import { isMatrix, matrixDims, type Value } from '../values.js';

/** The operand of this name when it is one tensor. */
export function operandValue(step: Step, name: string): Value | undefined {
  const operand = step.operands.get(name);
  return operand?.kind === 'value' ? operand.value : undefined;
}

/** The operand of this name when it is a list of tensors. */
export function operandList(step: Step, name: string): readonly Value[] {
  const operand = step.operands.get(name);
  return operand?.kind === 'list' ? operand.values : [];
}

/** The numbers of a constant operand; undefined when it is absent or computed. */
export function operandNumbers(step: Step, name: string): number[] | undefined {
  const constant = operandValue(step, name)?.constant;
  return constant && elementCount(constant.shape) <= 64 ? Array.from(constantElements(constant)) : undefined;
}

/** True when the constant operand has exactly these numbers. */
export function hasNumbers(step: Step, name: string, ...expected: number[]): boolean {
  const found = operandNumbers(step, name);
  return found?.length === expected.length && found.every((value, index) => value === expected[index]);
}

/** Both orders of the operands of an operation that commutes. */
export function bothOrders(step: Step): (readonly [Value, Value])[] {
  const [x, y] = [operandValue(step, 'x'), operandValue(step, 'y')];
  if (!x || !y) return [];
  return [
    [x, y],
    [y, x],
  ];
}

/** The other factor when a product has this constant as one of its factors. */
export function factorBeside(step: Step | undefined, constant: Constant): Value | undefined {
  if (!step) return undefined;
  return bothOrders(step).find(([, other]) => other.constant?.key === constant.key)?.[0];
}

/** True for `bijh,bjhl->bihl`-like equations: with B and H of size 1, the product of two matrices. */
export function isMatrixProduct(step: Step): boolean {
  const operand = step.operands.get('equation');
  const match = /^([a-z]{4}),([a-z]{4})->([a-z]{4})$/.exec(
    operand?.kind === 'text' ? operand.text.replaceAll(' ', '') : '',
  );
  if (!match) return false;
  const [x, y, out] = match.slice(1) as [string, string, string];
  const [b, i, h, j] = x as unknown as [string, string, string, string];
  const l = y[3] as string;
  const distinct = new Set([b, i, h, j, l]).size === 5;
  return (
    distinct && y === `${b}${j}${h}${l}` && out === `${b}${i}${h}${l}` && operandList(step, 'values').every(isMatrix)
  );
}

/** The whole of a split along the channels into equal parts, when the value is its part `index` of `count`. */
export function equalSplit(split: Step | undefined, value: Value, index: number, count: number): Value | undefined {
  const whole = split && operandValue(split, 'x');
  if (!whole || !isMatrix(whole) || !hasNumbers(split, 'axis', 1)) return undefined;
  if (split.outputs.length !== count || split.outputs[index] !== value) return undefined;
  const part = matrixDims(whole)[0] / count;
  return split.outputs.every((output) => isMatrix(output) && matrixDims(output)[0] === part) ? whole : undefined;
}

/** The values of a concatenation along the channels, in order. */
export function channelConcat(step: Step | undefined): readonly Value[] {
  if (!step || !hasNumbers(step, 'axis', 1)) return [];
  if (step.operands.has('interleave') && !hasNumbers(step, 'interleave', 0)) return [];
  const values = operandList(step, 'values');
  return values.every((value) => isMatrix(value) && !value.constant) ? values : [];
}
