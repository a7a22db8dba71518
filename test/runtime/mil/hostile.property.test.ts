import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { MilError } from '../../../runtime/errors.js';
import { BlobFiles } from '../../../runtime/mil/blobs.js';
import { parseMil } from '../../../runtime/mil/parser.js';
import { translate } from '../../../runtime/mil/translate.js';
import { weightFile } from './models.js';

const MODEL = new URL('../../fixtures/mil/traced-L64.mlmodelc/', import.meta.url);
const TEXT = readFileSync(new URL('model.mil', MODEL), 'utf8');

/** Statements of the real program that use most kinds of syntax; short, so that a change hits something often. */
const SHORT = TEXT.split('\n').slice(0, 24).concat('        } -> (input_1_cast_fp16);', '}').join('\n');

const FRAGMENTS = [
  '(',
  ')',
  '[',
  ']',
  '{',
  '}',
  '<',
  '>',
  ',',
  ';',
  '"',
  '=',
  '->',
  '-1',
  '0x',
  '999999999999',
  'int32',
  'x',
  '\0',
  '?',
  '@',
];

function attempt(text: string): void {
  const files = new BlobFiles(MODEL.pathname);
  try {
    for (const fuse of [true, false]) translate(parseMil(text), files, fuse);
  } catch (error) {
    expect(error).toBeInstanceOf(MilError);
  } finally {
    files.close();
  }
}

const source = fc.constantFrom(SHORT, SHORT, SHORT, TEXT);
/** A place in the text, every one as likely. */
const place = fc.noBias(fc.nat({ max: 999_999 })).map((part) => part / 1_000_000);

test('truncated text is refused with a MilError, or is whole', () => {
  fc.assert(
    fc.property(source, place, (text, at) => attempt(text.slice(0, Math.floor(at * text.length)))),
    { numRuns: 150 },
  );
});

test('text with flipped bits is refused with a MilError, or still means something', () => {
  const flips = fc.array(fc.tuple(place, fc.integer({ min: 0, max: 6 })), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(source, flips, (text, changes) => {
      const bytes = Buffer.from(text);
      for (const [at, bit] of changes) {
        const index = Math.floor(at * bytes.length);
        bytes[index] = (bytes[index] as number) ^ (1 << bit);
      }
      attempt(bytes.toString('latin1'));
    }),
    { numRuns: 300 },
  );
});

test('text with pieces cut out, doubled or put in is refused with a MilError, or still means something', () => {
  const edit = fc.tuple(place, fc.nat({ max: 40 }), fc.constantFrom('', ...FRAGMENTS, 'again'));
  fc.assert(
    fc.property(source, fc.array(edit, { minLength: 1, maxLength: 3 }), (text, edits) => {
      let changed = text;
      for (const [at, length, piece] of edits) {
        const start = Math.floor(at * changed.length);
        const cut = changed.slice(start, start + length);
        changed = changed.slice(0, start) + (piece === 'again' ? cut + cut : piece) + changed.slice(start + length);
      }
      attempt(changed);
    }),
    { numRuns: 300 },
  );
});

test('text with names or numbers exchanged is refused with a MilError, or still means something', () => {
  const tokens = SHORT.match(/[A-Za-z_]\w*|\d+|[^A-Za-z_\d]+/g) as string[];
  const words = tokens.flatMap((token, index) => (/\w/.test(token) ? [index] : []));
  const pick = fc.noBias(fc.nat({ max: words.length - 1 })).map((at) => words[at] as number);
  const other = fc.oneof(
    pick.map((at) => tokens[at] as string),
    fc.constantFrom('0', '-1', '3', '2147483647', 'inf'),
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(pick, other), { minLength: 1, maxLength: 2 }), (exchanges) => {
      const changed = [...tokens];
      for (const [at, word] of exchanges) changed[at] = word;
      attempt(changed.join(''));
    }),
    { numRuns: 400 },
  );
});

test('a weight file with changed bytes is refused with MIL_BLOB, or still holds the tensor', async () => {
  const { file, offsets } = weightFile([{ dtype: 'fp16', bytes: new Uint8Array(32) }]);
  const dir = mkdtempSync(join(tmpdir(), 'laya-test-'));
  const path = join(dir, 'weight.bin');
  const change = fc.tuple(fc.nat({ max: 63 }), fc.nat({ max: 255 }));
  try {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 4 }), fc.nat({ max: file.length }), (changes, cut) => {
        const bytes = Buffer.from(file);
        for (const [at, value] of changes) bytes[64 + at] = value;
        writeFileSync(path, cut % 3 === 0 ? bytes.subarray(0, cut) : bytes);
        const files = new BlobFiles(dir);
        try {
          const blob = files.open(
            { path: '@model_path/weight.bin', offset: offsets[0]! },
            { kind: 'tensor', dtype: 'fp16', shape: [16] },
          );
          blob.read(0, new Uint8Array(blob.byteLength));
        } catch (error) {
          expect((error as MilError).code).toBe('MIL_BLOB');
        } finally {
          files.close();
        }
      }),
      { numRuns: 300 },
    );
  } finally {
    rmSync(dir, { recursive: true });
  }
});
