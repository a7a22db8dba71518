import { spawn } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { InterruptedError } from '../../pipeline/errors.js';
import type { Event } from '../../pipeline/events.js';
import { buildArtifacts } from '../../pipeline/line.js';
import { environmentFolder } from '../../pipeline/tools/python.js';
import { toolsRoot } from '../../registry/paths.js';
import { codeOf, workspace } from '../workspace.js';
import { testContext, testOrder } from './context.js';

const folder = workspace();
const entries = (path: string): Promise<string[]> => readdir(path).catch(() => []);

describe('a build that is stopped', () => {
  it.each(['resolve', 'convert', 'compile', 'place', 'parity', 'seal'])(
    'registers nothing in %s and marks its staging',
    async (stage) => {
      const root = folder();
      const controller = new AbortController();
      const emit = (event: Event): void => {
        if (event.kind === 'stage_started' && event.stage === stage) controller.abort(new InterruptedError('SIGINT'));
      };
      const context = testContext(root, { signal: controller.signal, emit });
      expect(await codeOf(() => buildArtifacts(testOrder(), context))).toBe('INTERRUPTED');
      expect(await entries(join(root, 'artifacts/laya-tiny'))).toEqual([]);
      const [staging] = await entries(join(root, 'artifacts/.staging'));
      const marker = JSON.parse(await readFile(join(root, 'artifacts/.staging', staging!, 'BUILDING.json'), 'utf8'));
      expect(marker).toMatchObject({ pid: process.pid, abandoned: true });

      // The next build takes the leftovers away and is not held up by a lock.
      const again = await buildArtifacts(testOrder(), testContext(root));
      expect(again.rows[0]?.outcome).toBe('registered');
      expect(await entries(join(root, 'artifacts/.staging'))).toEqual([]);
    },
  );

  // B17: the signal goes to this process alone; children and grandchildren end all the same.
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('ends the converter and its children on %s, with exit code %i', async (signal, code) => {
    const [root, tools] = [folder(), folder()];
    const pids = join(root, 'pids');
    await installSlowConverter(tools, pids);
    const env = { ...process.env, LAYA_APPLE_CACHE: root, LAYA_ARTIFACTS_TOOLS: tools };
    const args = ['bin/laya-artifacts.js', 'build', 'laya-tiny', '--length', '64'];
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    while (!(await readFile(pids, 'utf8').catch(() => '')).includes('\n')) await new Promise(setImmediate);
    child.kill(signal);
    const exit = await new Promise((resolve) => child.on('close', resolve));
    expect(exit).toBe(code);
    expect(stderr).toContain('error INTERRUPTED');
    const started = (await readFile(pids, 'utf8')).trim().split(' ').map(Number);
    expect(started).toHaveLength(2);
    while (started.some(isAlive)) await new Promise(setImmediate);
    expect(await entries(join(root, 'artifacts/laya-tiny'))).toEqual([]);
  });
});

/** Tools in which the interpreter is a script that writes its pids and waits with a child of its own. */
async function installSlowConverter(tools: string, pids: string): Promise<void> {
  const bin = join(await environmentFolder('convert', tools), 'bin');
  await mkdir(bin, { recursive: true });
  await writeFile(join(bin, 'python'), `#!/bin/bash\nsleep 300 &\necho $$ $! > ${pids}\nwait\n`);
  await chmod(join(bin, 'python'), 0o755);
  const { symlink } = await import('node:fs/promises');
  const compiler = 'mlmodelc-export-0.1.0';
  await symlink(join(toolsRoot(process.env), compiler), join(tools, compiler));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
