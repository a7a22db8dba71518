import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { registerLayaTiny } from './registered.js';
import { keptFolder } from './workspace.js';

const root = keptFolder();
const README = readFileSync('README.md', 'utf8');
/** Room for float sums of other processors; decisions stay the same. */
const TOLERANCE = 0.002;
beforeAll(() => registerLayaTiny(root(), [64]), 120_000);

async function example(name: string, ...args: string[]): Promise<string> {
  const env = { ...process.env, LAYA_APPLE_CACHE: root() };
  return (await promisify(execFile)(process.execPath, [join('examples', name), ...args], { env })).stdout;
}

/** The same value with every number at its place and near it. */
function expectNear(found: unknown, wanted: unknown): void {
  if (typeof wanted === 'number') expect(Math.abs(Number(found) - wanted)).toBeLessThanOrEqual(TOLERANCE);
  else if (typeof wanted !== 'object' || wanted === null) expect(found).toBe(wanted);
  else {
    expect(Object.keys(found as object)).toEqual(Object.keys(wanted));
    for (const [key, value] of Object.entries(wanted)) expectNear((found as Record<string, unknown>)[key], value);
  }
}

describe('the examples', () => {
  it.each(['choice', 'score', 'noul'])('%s: README shows its code and its answer', async (name) => {
    const code = readFileSync(join('examples', `${name}.mjs`), 'utf8')
      .split('\n')
      .slice(1)
      .join('\n')
      .trim();
    const block = `\`\`\`js\n${code}\n\`\`\`\n\n\`\`\`json\n`;
    expect(README).toContain(block);
    const shown = README.split(block)[1]!.split('\n```')[0]!;
    expectNear(JSON.parse(await example(`${name}.mjs`)), JSON.parse(shown));
  });

  it('many: one line a text, in their order', async () => {
    const lines = (await example('many.mjs')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).topic)).toEqual(['shipping', 'technical', 'billing']);
  });

  it('http: answers like noul, through the server', async () => {
    const args = ['bin/laya-artifacts.js', 'serve', '--model', 'laya-tiny', '--port', '0', '--log-level', 'silent'];
    const env = { ...process.env, LAYA_APPLE_CACHE: root() };
    const server = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      const [address] = await once(server.stdout.setEncoding('utf8'), 'data');
      const url = String(address).trim();
      while ((await fetch(`${url}/ready`)).status !== 200) await new Promise(setImmediate);
      const { status, answers } = JSON.parse(await example('http.mjs', url));
      expect(status).toBe(200);
      expectNear(answers.angry, JSON.parse(await example('noul.mjs')));
    } finally {
      server.kill('SIGTERM');
      await once(server, 'exit');
    }
  });

  it('are all tested', () => {
    expect(readdirSync('examples').sort()).toEqual(['choice.mjs', 'http.mjs', 'many.mjs', 'noul.mjs', 'score.mjs']);
  });
});
