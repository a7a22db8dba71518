import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isSystemError, RecordError } from '../schemas/errors.js';
import { type JsonObject, type JsonValue, parseJson } from '../schemas/json.js';
import { CheckpointError, InvalidRequestError } from './errors.js';
import { excerpt, loneSurrogateAt } from './text.js';
import { TokenCache } from './token-cache.js';

/** A token that the prompt is built with: its literal text and its id. */
export interface SpecialToken {
  readonly text: string;
  readonly id: number;
}

/** A checkpoint's tokenizer, as far as prompts need it. */
export interface PromptTokenizer {
  readonly cls: SpecialToken;
  readonly sep: SpecialToken;
  readonly pad: SpecialToken;
  readonly mask: SpecialToken;
  /**
   * The token ids of a text, all of them and nothing around them, in an array of the caller's own. `where` names the
   * text in errors.
   *
   * @throws InvalidRequestError TEXT_INVALID for a lone surrogate, which no UTF-8 text can hold
   */
  encode(text: string, where: string): Promise<number[]>;
}

const CONFIG = 'tokenizer_config.json';
const MODEL = 'tokenizer.json';
const CACHE = { entries: 4096, bytes: 16 << 20 };

/**
 * Opens `tokenizer.json` and `tokenizer_config.json` of a folder with the Rust tokenizer that upstream uses too. The
 * ids of recent texts are kept: questions and their options come again and again.
 *
 * @throws CheckpointError CHECKPOINT_MISSING for a missing file, CHECKPOINT_TOKENIZER for one that can't be used
 */
export async function openTokenizer(dir: string): Promise<PromptTokenizer> {
  const config = await readConfig(join(dir, CONFIG));
  const file = join(dir, MODEL);
  const model = await readText(file);
  const { Tokenizer } = await import('tokenizers');
  const backend = attempt(file, () => Tokenizer.fromString(model));
  backend.disablePadding();
  backend.disableTruncation();

  const special = (name: string): SpecialToken => {
    const text = specialText(config, name, join(dir, CONFIG));
    const id = backend.tokenToId(text);
    if (id !== null) return { text, id };
    throw new CheckpointError('CHECKPOINT_TOKENIZER', `the ${name} is not in the vocabulary`, {
      expected: `a token of ${MODEL}`,
      found: excerpt(text),
      where: file,
    });
  };

  const cache = new TokenCache(CACHE);
  return {
    cls: special('cls_token'),
    sep: special('sep_token'),
    pad: special('pad_token'),
    mask: special('mask_token'),
    async encode(text, where) {
      const kept = cache.get(text);
      if (kept !== undefined) return kept;
      requireUtf8(text, where);
      const encoding = await backend.encode(text, null, { addSpecialTokens: false }).catch(cannotUse(file));
      const ids = encoding.getIds();
      cache.set(text, ids);
      return ids;
    },
  };
}

async function readConfig(file: string): Promise<JsonObject> {
  const text = await readText(file);
  const config = attempt(file, () => parseJson(text));
  if (!(config instanceof Map)) return refuseConfig(file, 'the file', 'a JSON object', config);
  const side = config.get('truncation_side') ?? 'right';
  if (side !== 'right') refuseConfig(file, 'truncation_side', '"right", as prompts keep the start of an option', side);
  return config;
}

/** A special token of the configuration: its text, or an object with the text as `content`. */
function specialText(config: JsonObject, name: string, file: string): string {
  const value = config.get(name);
  const text = value instanceof Map ? value.get('content') : value;
  if (typeof text === 'string' && text !== '') return text;
  return refuseConfig(file, name, 'a token, or an object with its text as "content"', value);
}

async function readText(file: string): Promise<string> {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await readFile(file));
  } catch (error) {
    if (!isSystemError(error, 'ENOENT', 'ENOTDIR')) return cannotUse(file)(error);
    throw new CheckpointError('CHECKPOINT_MISSING', 'a file of the tokenizer is missing', {
      expected: 'a file',
      where: file,
      cause: error,
    });
  }
}

function requireUtf8(text: string, where: string): void {
  const at = loneSurrogateAt(text);
  if (at < 0) return;
  const unit = text.charCodeAt(at).toString(16);
  throw new InvalidRequestError('TEXT_INVALID', 'the text holds half of a surrogate pair', {
    expected: 'text that UTF-8 can hold',
    found: `\\u${unit} alone, at position ${at}`,
    where,
  });
}

function attempt<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    return cannotUse(file)(error);
  }
}

function cannotUse(file: string): (error: unknown) => never {
  return (error) => {
    const reason = error instanceof Error ? error.message : String(error);
    const place = error instanceof RecordError && error.where !== undefined ? `, ${error.where}` : '';
    throw new CheckpointError('CHECKPOINT_TOKENIZER', `the tokenizer can't be used: ${reason}`, {
      where: `${file}${place}`,
      hint: 'fetch the checkpoint again',
      cause: error,
    });
  };
}

function refuseConfig(file: string, name: string, expected: string, found: JsonValue | undefined): never {
  throw new CheckpointError('CHECKPOINT_TOKENIZER', `${name} of the tokenizer's configuration can't be used`, {
    expected,
    found: excerpt(found),
    where: file,
  });
}
