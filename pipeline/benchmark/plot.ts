import type { Measured } from './measure.js';

const [WIDTH, HEIGHT] = [760, 420];
const [LEFT, TOP, BOTTOM] = [64, 48, 64];
const COLOURS = ['#2f6f9f', '#d98032', '#4f9a5b', '#8a5fa8', '#b04a5a'];

/** An SVG picture: a bar for p50 and a line up to p99, for each length and number of questions. */
export function plot(title: string, measured: readonly Measured[]): string {
  const counts = [...new Set(measured.map(({ questions }) => questions))];
  const lengths = [...new Set(measured.map(({ length }) => length))];
  const top = niceAbove(Math.max(...measured.map(({ p99_ms }) => p99_ms)));
  const y = (value: number): number => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
  const slot = (WIDTH - LEFT - 24) / lengths.length;
  const bar = Math.min(60, (slot * 0.8) / counts.length);
  const marks = measured.flatMap(({ length, questions, p50_ms, p99_ms }) => {
    const series = counts.indexOf(questions);
    const x = LEFT + slot * (lengths.indexOf(length) + 0.5) + bar * (series - counts.length / 2);
    const middle = number(x + bar / 2);
    return [
      `<rect x="${number(x)}" y="${number(y(p50_ms))}" width="${number(bar - 4)}" height="${number(y(0) - y(p50_ms))}" fill="${colour(series)}"/>`,
      `<line x1="${middle}" x2="${middle}" y1="${number(y(p50_ms))}" y2="${number(y(p99_ms))}" stroke="#333" stroke-width="2"/>`,
      text(x + bar / 2 - 2, y(p99_ms) - 6, `${p50_ms.toFixed(1)}`, 'middle'),
    ];
  });
  const axis = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
    `<line x1="${LEFT}" x2="${WIDTH - 24}" y1="${number(y(share * top))}" y2="${number(y(share * top))}" stroke="#ddd"/>`,
    text(LEFT - 8, y(share * top) + 4, `${number(share * top)} ms`, 'end'),
  ]);
  const names = lengths.map((length, i) =>
    text(LEFT + slot * (i + 0.5), HEIGHT - BOTTOM + 20, `${length} tokens`, 'middle'),
  );
  const legend = counts.flatMap((count, i) => [
    `<rect x="${LEFT + i * 130}" y="${HEIGHT - 24}" width="12" height="12" fill="${colour(i)}"/>`,
    text(LEFT + i * 130 + 18, HEIGHT - 14, `${count} question${count === 1 ? '' : 's'}`, 'start'),
  ]);
  const open = `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`;
  const back = `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`;
  return [open, back, text(LEFT, 26, title, 'start'), ...axis, ...marks, ...names, ...legend, '</svg>', ''].join('\n');
}

const colour = (series: number): string => COLOURS[series % COLOURS.length]!;
const number = (value: number): string => String(Math.round(value * 100) / 100);

function text(x: number, y: number, content: string, anchor: 'start' | 'middle' | 'end'): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${number(x)}" y="${number(y)}" text-anchor="${anchor}">${escaped}</text>`;
}

/** The next of 1, 2, 4, 5 or 10 times a power of ten. */
function niceAbove(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-3)));
  return ([1, 2, 4, 5, 10].find((factor) => factor * power >= value) ?? 10) * power;
}
