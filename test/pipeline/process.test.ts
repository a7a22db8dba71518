import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { InterruptedError } from '../../pipeline/errors.js';
import { type RunOptions, runProgram } from '../../pipeline/process.js';
import { codeOf, workspace } from '../workspace.js';

const folder = workspace();
const options = (change: Partial<RunOptions> = {}): RunOptions => ({
  env: { PATH: process.env.PATH },
  cwd: '/',
  signal: new AbortController().signal,
  ...change,
});
const NODE = process.execPath;
const ECHO = 'process.stdout.write(JSON.stringify(process.argv.slice(1)))';

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // A zombie that nobody has waited for yet is dead.
  return true;
}

describe('runProgram', () => {
  // B18
  it('passes arguments byte for byte', async () => {
    const args = ['a b', '"quoted"', "'", '$HOME', '`x`', 'new\nline', '\u{1f600}', '?*', '-leading', '', '\\'];
    const run = await runProgram(NODE, ['-e', ECHO, '--', ...args], options());
    expect(JSON.parse(run.stdout)).toEqual(args);
  });

  it.each([['a\0b'], ['\ud800'], [undefined as unknown as string]])('refuses the argument %j', async (bad) => {
    expect(await codeOf(() => runProgram(NODE, ['-e', ECHO, bad], options()))).toBe('TOOL_ARGUMENT');
  });

  // B20
  it('gives exactly the environment it was told', async () => {
    const env = { PATH: process.env.PATH, LC_ALL: 'C.UTF-8', LEFT: undefined };
    const run = await runProgram(NODE, ['-p', 'JSON.stringify(process.env)'], options({ env }));
    const found = Object.keys(JSON.parse(run.stdout)).filter((name) => !['_', 'PWD', 'SHLVL', 'OLDPWD'].includes(name));
    expect(found.sort()).toEqual(['LC_ALL', 'PATH']);
  });

  // B15
  it('drains both streams and keeps the end of stderr', async () => {
    const script = 'for (let i=0;i<60000;i++) { console.error("warning "+i); console.log("line "+i) }';
    const lines: string[] = [];
    const onLine = (line: string, stream: string) => void (stream === 'stdout' && lines.push(line));
    const run = await runProgram(NODE, ['-e', script], options({ onLine }));
    expect(run.exitCode).toBe(0);
    expect(run.stderrTail.endsWith('warning 59999')).toBe(true);
    expect(lines.at(-1)).toBe('line 59999');
  });

  it('tells an exit code, a signal and a missing program apart', async () => {
    expect(await runProgram(NODE, ['-e', 'process.exit(7)'], options())).toMatchObject({ exitCode: 7 });
    const killed = await runProgram(NODE, ['-e', 'process.kill(process.pid, "SIGKILL")'], options());
    expect(killed.exitCode).not.toBe(0);
    expect((await runProgram('no-such-program-here', [], options())).exitCode).not.toBe(0);
  });

  // B17: children and grandchildren end with the command.
  it('ends the whole process group when it is stopped', async () => {
    const file = join(folder(), 'pids');
    const controller = new AbortController();
    const script = `sleep 300 & echo $$ $! > ${file}; echo ready; wait`;
    const onLine = () => controller.abort(new InterruptedError('SIGINT'));
    const run = runProgram('bash', ['-c', script], options({ signal: controller.signal, onLine }));
    expect(await codeOf(() => run)).toBe('INTERRUPTED');
    const pids = (await readFile(file, 'utf8')).trim().split(' ').map(Number);
    expect(pids).toHaveLength(2);
    while (pids.some(alive)) await new Promise(setImmediate);
  });

  it('does not start anything once it is stopped', async () => {
    const signal = AbortSignal.abort(new InterruptedError('SIGTERM'));
    expect(await codeOf(() => runProgram(NODE, ['-e', '0'], options({ signal })))).toBe('INTERRUPTED');
  });
});
