import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { registerLayaTiny } from '../registered.js';
import { workspace } from '../workspace.js';
import { cli } from './cli.js';

const folder = workspace();
const root = join(tmpdir(), `laya-test-${randomBytes(6).toString('hex')}`);
const env = { LAYA_APPLE_CACHE: root };

beforeAll(async () => registerLayaTiny(root, [64]), 120_000);
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('the command line', () => {
  const COMMANDS =
    'build predict parity benchmark download list verify export import inspect info serve fetch publish prune';

  it.each(COMMANDS.split(' '))('gives examples for %s', async (command) => {
    const run = await cli([command, '--help']);
    expect([run.code, run.stderr]).toEqual([0, '']);
    expect(run.stdout).toContain('\nExamples:\n');
    expect(Math.max(...run.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it.each([[[]], [['--help']], [['help', 'predict']]])('prints help for %j', async (args) => {
    const run = await cli(args);
    expect([run.code, run.stderr]).toEqual([0, '']);
    expect(run.stdout).toMatch(/^Usage: laya-artifacts/);
    expect(Math.max(...run.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  const mistakes: [string[], number, string][] = [
    [['buidl'], 2, 'unknown command'],
    [['build', 'laya-tiny', '--fast'], 2, 'unknown option'],
    [['build'], 2, 'USAGE'],
    [['build', 'laya-tiny', '--length', '65'], 2, 'USAGE'],
    [['build', 'laya-tiny', '--length', '0x40'], 2, 'USAGE'],
    [['build', 'laya', '--model', 'laya-tiny'], 2, 'USAGE'],
    [['build', 'gpt'], 1, 'MODEL_UNKNOWN'],
    [['build', 'laya-tiny', '--force', '--checkpoint', '/nowhere'], 1, 'CHECKPOINT_MISSING'],
    [['verify', 'laya'], 1, 'ARTIFACT_MISSING'],
    [['predict', 'laya-tiny', '--context', 'x'], 2, '--questions'],
    [['predict', 'laya-tiny', '--context', 'x', '--questions', '[', '--device', 'tpu'], 2, 'tpu'],
    [['predict', 'laya-tiny', '--context', '-', '--questions', '-'], 2, 'USAGE'],
    [['predict', 'laya-tiny', '--context', '@/nowhere', '--questions', '[]'], 2, 'USAGE'],
    [['predict', 'laya-tiny', '--context', 'x', '--questions', '{"a":'], 2, 'QUESTIONS_INVALID'],
    [['predict', 'laya-tiny', '--context', 'x', '--questions', '{"a":1,"a":2}'], 2, 'QUESTIONS_INVALID'],
    [['predict', 'laya-tiny', '--context', 'x', '--questions', '{"a":{"type":"rank"}}'], 2, 'QUESTION_INVALID'],
    [['predict', 'laya-tiny', '--context', 'x', '--questions', '[]', '--min-confidence', '1.1'], 2, 'MIN_CONFIDENCE'],
    [['predict', 'laya-tiny', '--context', 'x', '--questions', '[]', '--min-confidence', 'x'], 2, 'MIN_CONFIDENCE'],
    [['predict', 'laya-tiny', '--context', 'x', '--questions', '["a"]', '--device', 'ane'], 1, 'DEVICE_UNAVAILABLE'],
    [['predict', 'laya-tiny', '--context', 'x', '--questions', '["a"]', '--device', 'gpu'], 1, 'DEVICE_UNAVAILABLE'],
    [['predict', 'laya', '--context', 'x', '--questions', '["a"]'], 1, 'ARTIFACT_MISSING'],
  ];

  it.each(mistakes)('refuses %j with exit code %i and %s', async (args, code, named) => {
    const run = await cli(args, env);
    expect([run.code, run.stdout]).toEqual([code, '']);
    expect(run.stderr).toContain(named);
    expect(run.stderr).not.toMatch(/\n\s+at |UNEXPECTED/);
  });

  it('names the repository, the revision and the way without a network', async () => {
    const own = { ...env, HF_HUB_CACHE: folder(), HF_HUB_OFFLINE: '1' };
    const run = await cli(['build', 'laya'], { ...own, LAYA_APPLE_CACHE: folder() });
    expect([run.code, run.stdout]).toEqual([1, '']);
    for (const word of ['convaiinnovations/laya', 'c5d78730f3493e4fe16d61507ef4b78eef7318cf', '--checkpoint'])
      expect(run.stderr).toContain(word);
    expect(run.stderr).not.toMatch(/\n\s+at |UNEXPECTED/);
  });

  it.each([
    [['list', '--json']],
    [['verify', '--json']],
    [['info']],
    [['build', 'laya-tiny', '--length', '64', '--json']],
  ])('prints one JSON document for %j', async (args) => {
    const run = await cli(args, env);
    expect([run.code, run.stderr]).toEqual([0, '']);
    expect(JSON.parse(run.stdout)).toBeDefined();
  });

  it('prints tables that fit 80 columns', async () => {
    for (const args of [['list'], ['verify'], ['build', 'laya-tiny', '--length', '64']]) {
      const { stdout, code } = await cli(args, env);
      expect(code).toBe(0);
      const lines = stdout.split('\n').filter((line) => !line.includes(root) && !line.startsWith('next:'));
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    }
  });

  it('reads the request inline, from a file and from stdin, with the same answers', async () => {
    const questions =
      '{"10":{"type":"choice","instructions":"Topic?","criteria":["2","10","01"]},"2":{"type":"noul","instructions":"Billing?"}}';
    const file = join(folder(), 'questions.json');
    await writeFile(file, questions);
    const context = 'I was charged twice for my order.';
    const runs = await Promise.all([
      cli(['predict', 'laya-tiny', '--context', context, '--questions', questions], env),
      cli(['predict', 'laya-tiny', '--context', context, '--questions', `@${file}`], env),
      cli(['predict', 'laya-tiny', '--context', '-', '--questions', questions], env, context),
    ]);
    const answers = runs.map(({ stdout }) => stdout.slice(0, stdout.indexOf('"runtime"')));
    expect(new Set(answers).size).toBe(1);
    // S01: labels and questions stand in the order of the request's text.
    expect(answers[0]!.match(/^ {2,4}"(\d+)": /gm)?.map((line) => line.trim())).toEqual([
      '"10":',
      '"2":',
      '"10":',
      '"01":',
      '"2":',
    ]);
  });

  it('does no work and says so when all is registered', async () => {
    const { stdout, stderr, code } = await cli(['build', 'laya-tiny', '--length', '64'], env);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain('nothing to do');
    expect((await readdir(join(root, 'artifacts'))).sort()).toEqual(['.locks', '.staging', 'laya-tiny']);
  });
});
