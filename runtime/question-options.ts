import { JsonNumber, type JsonValue } from '../schemas/json.js';
import { pythonJson, pythonNumber } from './pyjson.js';
import { refuseQuestion } from './question-refusal.js';
import { pythonStrip } from './text.js';

/** A choice label as the request wrote it; the answer's `choice` is one of them. */
export type Label = string | boolean | JsonNumber;

/** The options of a choice: `label`, or `label: description` where there is one. */
export function choiceOptions(
  criteria: JsonValue | undefined,
  where: string,
): { labels: readonly Label[]; options: readonly string[] } {
  const described = describedLabels(criteria, where);
  if (described.length === 0) refuseQuestion('a choice needs at least one option', 'a label', criteria, where);
  const labels = described.map(([label], index) => requireLabel(label, `${where}[${index}]`));
  requireDistinct(labels, where);
  const options = labels.map((label, index) => {
    const description = described[index]?.[1] ?? null;
    return isAbsent(description) ? labelText(label) : `${labelText(label)}: ${criterionText(description)}`;
  });
  return { labels, options };
}

/** The key of a label in `probabilities`: what Python's `json.dumps` makes of it as a key. */
export function labelKey(label: Label): string {
  if (typeof label === 'string') return label;
  return label instanceof JsonNumber ? pythonNumber(label) : String(label);
}

/** The levels of a score, lowest first: `level 0: <text>`. */
export function scoreOptions(
  criteria: JsonValue | undefined,
  where: string,
): { levels: readonly string[]; options: readonly string[] } {
  if (!Array.isArray(criteria) || criteria.length === 0) {
    return refuseQuestion('a score needs its levels', 'a list of level descriptions, lowest first', criteria, where);
  }
  const missing = criteria.indexOf(null);
  if (missing >= 0) refuseQuestion('a level needs a description', 'a description', null, `${where}[${missing}]`);
  const levels = criteria.map(criterionText);
  return { levels, options: levels.map((text, index) => `level ${index}: ${text}`) };
}

/** The two options of a noul, false first. `where` is the question's path. */
export function noulOptions(criteria: JsonValue | undefined, labels: JsonValue | undefined, where: string): string[] {
  const described = noulCriteria(criteria, `${where}.criteria`);
  const [no, yes] = noulLabels(labels, `${where}.labels`);
  const describe = (key: string, otherwise: string) => {
    const description = described.get(key) ?? null;
    return isAbsent(description) ? otherwise : criterionText(description);
  };
  return [
    `${no}: ${describe('false', 'no, the statement does not hold')}`,
    `${yes}: ${describe('true', 'yes, the statement holds')}`,
  ];
}

function describedLabels(criteria: JsonValue | undefined, where: string): [JsonValue, JsonValue][] {
  if (Array.isArray(criteria)) return criteria.map((label) => [label, null]);
  if (criteria instanceof Map) return [...criteria];
  return refuseQuestion('a choice needs its options', 'an object of label to description, or a list', criteria, where);
}

function requireLabel(label: JsonValue, where: string): Label {
  if (typeof label === 'string' || typeof label === 'boolean') return label;
  if (!(label instanceof JsonNumber)) return refuseQuestion('a label must be a scalar', 'a string', label, where);
  const number = Number(label.raw);
  if (Number.isSafeInteger(number) || (Number.isFinite(number) && !label.isInteger)) return label;
  return refuseQuestion('this number is too large for a label', 'an integer below 2^53, or a string', label, where);
}

/**
 * Labels are the keys of the answer. As in Python 1, 1.0 and true are one key; and 1 and "1" are different there, but
 * become the same key of the answer's JSON.
 */
function requireDistinct(labels: readonly Label[], where: string): void {
  const seen = new Set<string>();
  for (const [index, label] of labels.entries()) {
    const names = new Set([`key ${labelKey(label)}`]);
    if (typeof label !== 'string') names.add(`number ${Number(label instanceof JsonNumber ? label.raw : label) + 0}`);
    for (const name of names) {
      if (seen.has(name)) refuseQuestion('a label occurs twice', 'labels that differ', label, `${where}[${index}]`);
      seen.add(name);
    }
  }
}

/** Python's `str(label)`. */
function labelText(label: Label): string {
  return typeof label === 'boolean' ? (label ? 'True' : 'False') : labelKey(label);
}

/** Criteria by lower-case key; of two keys that differ in case only, the later one counts. */
function noulCriteria(criteria: JsonValue | undefined, where: string): Map<string, JsonValue> {
  const byKey = new Map<string, JsonValue>();
  if (criteria === undefined || criteria === null) return byKey;
  const expected = 'an object with the keys "true" and "false", or one of them';
  if (!(criteria instanceof Map))
    return refuseQuestion('the criteria of a noul must be an object', expected, criteria, where);
  for (const [key, description] of criteria) byKey.set(key.toLowerCase(), description);
  for (const key of byKey.keys()) {
    if (key === 'true' || key === 'false') continue;
    const hint = 'set "labels" to word the two options differently';
    refuseQuestion('the criteria of a noul describe true and false only', expected, key, where, hint);
  }
  return byKey;
}

function noulLabels(labels: JsonValue | undefined, where: string): [string, string] {
  if (labels === undefined || labels === null) return ['false', 'true'];
  const no = labels instanceof Map ? labels.get('false') : undefined;
  const yes = labels instanceof Map ? labels.get('true') : undefined;
  if (labels instanceof Map && labels.size === 2 && typeof no === 'string' && typeof yes === 'string') {
    const stripped: [string, string] = [pythonStrip(no), pythonStrip(yes)];
    if (stripped[0] !== '' && stripped[1] !== '' && stripped[0] !== stripped[1]) return stripped;
  }
  return refuseQuestion(
    'labels must name both options',
    '"false" and "true", each a different non-blank string',
    labels,
    where,
  );
}

function isAbsent(description: JsonValue): boolean {
  return description === null || description === '';
}

function criterionText(criterion: JsonValue): string {
  return typeof criterion === 'string' ? criterion : pythonJson(criterion);
}
