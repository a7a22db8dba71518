/** Control and direction characters escaped, so that text from a record can't drive the terminal (fault C03). */
export function safeText(text: string): string {
  return text.replace(
    /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (one) => {
      return `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`;
    },
  );
}

/** Columns of the narrowest terminal that is thought of. */
const COLUMNS = 80;

/**
 * A table in plain text: columns separated by two spaces, numbers to the right. Where that is wider than 80 columns,
 * each row is its first cell, and below it the others, named.
 */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [head, ...rows].map((row) => row.map((cell) => safeText(cell).replaceAll('\n', ' ')));
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  if (widths.reduce((sum, width) => sum + width + 2, -2) > COLUMNS) return blocks(cells);
  const numeric = head.map(
    (_, column) => rows.length > 0 && rows.every((row) => /^[\d.,]*( ([kMG]?B|d|h|min|s))?$/.test(row[column] ?? '')),
  );
  const line = (row: readonly string[]): string =>
    row.map((cell, i) => (numeric[i] ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!))).join('  ');
  return cells.map((row) => line(row).trimEnd()).join('\n');
}

function blocks([head = [], ...rows]: readonly (readonly string[])[]): string {
  const named = (row: readonly string[]): string =>
    row.flatMap((cell, i) => (i > 0 && cell !== '' ? [`${head[i]?.toLowerCase()} ${cell}`] : [])).join(', ');
  return rows.map((row) => [row[0] ?? '', ...wrapped(named(row), '  ')].join('\n')).join('\n');
}

/** Lines of at most 80 columns, each indented; a longer word has a line of its own. */
function wrapped(text: string, indent: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= COLUMNS) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(indent + word);
  }
  return lines;
}

/** Bytes as a person reads them: "2.1 MB". */
export function bytesText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** Seconds as a person reads them, in the largest unit: "3 d". */
export function durationText(seconds: number): string {
  const units: [size: number, name: string][] = [
    [86400, 'd'],
    [3600, 'h'],
    [60, 'min'],
  ];
  const [size, name] = units.find(([least]) => seconds >= least) ?? [1, 's'];
  return `${Math.floor(seconds / size)} ${name}`;
}
