import { describe, expect, it } from '@jest/globals';
import { table } from '../../pipeline/text.js';

describe('a table', () => {
  it('has columns, with numbers to the right', () => {
    const rows = [
      ['laya', '64', '2.0 MB'],
      ['laya-tiny', '128', '12.1 MB'],
    ];
    expect(table(['MODEL', 'BUCKET', 'SIZE'], rows)).toBe(
      ['MODEL      BUCKET     SIZE', 'laya           64   2.0 MB', 'laya-tiny     128  12.1 MB'].join('\n'),
    );
  });

  it('names the cells below the first one where it is wider than 80 columns', () => {
    const text = table(['NAME', 'SIZE', 'SINCE', 'REASON'], [['x'.repeat(60), '1 kB', '', 'word '.repeat(30).trim()]]);
    const [name, first, ...others] = text.split('\n');
    expect([name, first]).toEqual(['x'.repeat(60), expect.stringMatching(/^ {2}size 1 kB, reason word word/)]);
    for (const line of [first!, ...others]) expect(line.length).toBeLessThanOrEqual(80);
    expect(text.match(/word/g)).toHaveLength(30);
  });

  it('keeps to its lines whatever stands in a cell', () => {
    expect(table(['A', 'B'], [['x\n\u001b[31m', 'y\u202e']]).split('\n')).toHaveLength(2);
    const wide = table(['A', 'B'], [['x'.repeat(90), 'a\nb\u001b[31m']]);
    expect(wide).toBe(`${'x'.repeat(90)}\n  b a b\\u001b[31m`);
  });
});
