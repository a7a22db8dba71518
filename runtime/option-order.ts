import { JsonNumber, type JsonValue } from '../schemas/json.js';
import { refuseQuestion } from './question-refusal.js';

/** A permutation of a question's options: the prompt shows option `order[slot]` in each slot. */
export type OptionOrder = readonly number[];

/**
 * Reads a question's `option_order`: a list with the index of each of its `count` options once, as integers.
 *
 * @throws InvalidRequestError QUESTION_INVALID for anything else
 */
export function parseOptionOrder(value: JsonValue | undefined, count: number, where: string): OptionOrder {
  const order = Array.isArray(value) ? value.map(indexOf) : [];
  const isPermutation = order.length === count && new Set(order).size === count && order.every((at) => at < count);
  if (isPermutation) return order;
  const expected = `each integer from 0 to ${count - 1} once`;
  return refuseQuestion('"option_order" must be a permutation of the options', expected, value, where);
}

/** The options as the prompt shows them. */
export function toSlots<T>(options: readonly T[], order: OptionOrder | undefined): readonly T[] {
  return order === undefined ? options : order.map((option) => options[option]!);
}

/** What the model gave for each slot, in the order of the options. */
export function fromSlots<T>(slots: readonly T[], order: OptionOrder | undefined): readonly T[] {
  if (order === undefined) return slots;
  const options = [...slots];
  for (const [slot, option] of order.entries()) options[option] = slots[slot]!;
  return options;
}

/** The index an element stands for; NaN, which is less than no count, when it is no index. */
function indexOf(element: JsonValue): number {
  if (!(element instanceof JsonNumber) || !element.isInteger) return Number.NaN;
  const index = Number(element.raw);
  return index < 0 ? Number.NaN : index + 0;
}
