import { spawnSync } from 'node:child_process';

/**
 * Runs an expression over `x` in Python for each value, in one process, and returns the results. Values and results
 * travel as ASCII JSON; Python's json reads both, so lone surrogates survive.
 */
export function inPython<T>(expression: string, values: readonly unknown[]): T[] {
  const script = `import json, sys\nprint(json.dumps([${expression} for x in json.load(sys.stdin)]))`;
  const input = JSON.stringify(values).replace(/[\u007f-\uffff]/g, (unit) => {
    return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
  const { status, stdout, stderr, error } = spawnSync('python3', ['-I', '-c', script], {
    input,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(`python3 failed: ${error?.message ?? stderr}`);
  return JSON.parse(stdout);
}
