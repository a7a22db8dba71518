import { describe, expect, it } from '@jest/globals';
import { parseBuckets, parseModelName } from '../../pipeline/edge.js';
import { bytesText, safeText, table } from '../../pipeline/text.js';
import { codeOf } from '../workspace.js';

const OFFERED = [64, 96, 128];

describe('parseBuckets', () => {
  // C01
  it.each(['abc', '', '0x40', '1e3', '-1', '64.0', '65', ' ', '64,', 'NaN', '١٢٨'])('refuses %j', async (text) => {
    expect(await codeOf(() => parseBuckets([text], OFFERED))).toBe('USAGE');
  });

  it('takes commas, repeats and any order', () => {
    expect(parseBuckets(['128,64', '96', '64'], OFFERED)).toEqual([64, 96, 128]);
    expect(parseBuckets(undefined, OFFERED)).toEqual(OFFERED);
  });
});

describe('parseModelName', () => {
  it('takes an argument or the option, not two different ones', async () => {
    expect(parseModelName('laya', undefined)).toBe('laya');
    expect(parseModelName(undefined, 'laya')).toBe('laya');
    expect(await codeOf(() => parseModelName('laya', 'laya-tiny'))).toBe('USAGE');
    expect(await codeOf(() => parseModelName(undefined, undefined))).toBe('USAGE');
  });
});

describe('text for a terminal', () => {
  // C03
  it('escapes what could drive the terminal', () => {
    const hostile = '\u001b[2Jx\u202ey\u200bz\r\u0007\u009b';
    expect(safeText(hostile)).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202e]/);
    expect(table(['A'], [['one\ntwo\u001b']]).split('\n')).toHaveLength(2);
  });

  it('aligns columns and puts numbers to the right', () => {
    expect(
      table(
        ['NAME', 'N'],
        [
          ['a', '5'],
          ['bbbbb', '12'],
        ],
      ),
    ).toBe('NAME    N\na       5\nbbbbb  12');
  });

  it('writes sizes for people', () => {
    expect([bytesText(0), bytesText(999), bytesText(2_100_000)]).toEqual(['0 B', '999 B', '2.1 MB']);
  });
});
