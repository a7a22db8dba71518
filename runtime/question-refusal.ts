import type { JsonValue } from '../schemas/json.js';
import { InvalidRequestError } from './errors.js';
import { excerpt } from './text.js';

/** Refuses one question; `where` is the path to the field, like `questions["topic"].criteria`. */
export function refuseQuestion(
  message: string,
  expected: string,
  found: JsonValue | undefined,
  where: string,
  hint?: string,
): never {
  throw new InvalidRequestError('QUESTION_INVALID', message, {
    expected,
    found: excerpt(found),
    where,
    ...(hint === undefined ? {} : { hint }),
  });
}
