import { randomBytes } from 'node:crypto';
import { appendFile, cp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { findModel } from '../../../registry/models.js';
import { artifactFolder } from '../../../registry/paths.js';
import { registerLayaTiny, registerLayaTinyDense } from '../../registered.js';
import { workspace } from '../../workspace.js';
import { cli } from '../cli.js';

const makeFolder = workspace();
const root = join(tmpdir(), `laya-test-${randomBytes(6).toString('hex')}`);
const env = { LAYA_APPLE_CACHE: root };
const questions = '["Is it about billing?", "Is it urgent?"]';

beforeAll(async () => {
  await registerLayaTiny(root, [64]);
  await registerLayaTinyDense(root);
}, 300_000);
afterAll(() => rm(root, { recursive: true, force: true }));

describe('predict --input', () => {
  const lines = [
    { id: 'a', state: 'I was charged twice.', questions: ['Is it about billing?'] },
    { id: 2, context: 'The parcel is late.' },
    { id: 'bad', state: 'x', questions: { q: { type: 'rank' } } },
    '',
    'no JSON',
    { state: 'Thank you!', min_confidence: 1 },
  ];
  const input = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');

  it('answers each line in its place, and goes on after one that is refused', async () => {
    const run = await cli(['predict', 'laya-tiny', '--input', '-', '--questions', questions], env, input);
    expect(run.code).toBe(1);
    const answers = run.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(answers.map(({ id, error }) => [id, error?.code])).toEqual([
      ['a', undefined],
      [2, undefined],
      ['bad', 'QUESTION_INVALID'],
      [undefined, 'JSON_SYNTAX'],
      [undefined, undefined],
    ]);
    expect(Object.keys(answers[0].answers)).toEqual(['Is it about billing?']);
    expect(answers[1].runtime).toMatchObject({ graph: 'dense-any', routing_reason: 'multiple_questions' });
    expect(answers[4].answers['Is it urgent?'].abstention).toBe('abstained');
    expect(answers[0].runtime).toMatchObject({ graph: 'dense-any', device_reason: answers[0].runtime.routing_reason });
  });

  it('reads a file and gives the same lines; exit code 0 when all were answered', async () => {
    const path = join(makeFolder(), 'requests.jsonl');
    await writeFile(path, `${JSON.stringify(lines[0])}\r\n${JSON.stringify(lines[1])}\r\n`);
    const run = await cli(['predict', 'laya-tiny', '--input', path, '--questions', questions], env);
    expect([run.code, run.stdout.trim().split('\n')]).toEqual([0, [expect.any(String), expect.any(String)]]);
  });

  it.each([
    [['--input', '/nowhere/x']],
    [['--input', '-', '--context', 'x', '--questions', '[]']],
    [['--input', '-', '--questions', '-']],
    [['--questions', '[]']],
    [['--context', 'x']],
  ])('refuses %j', async (args) => {
    const run = await cli(['predict', 'laya-tiny', ...args], env);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain('USAGE');
  });
});

describe('parity', () => {
  it('runs the gate on what is registered, as a table and as JSON', async () => {
    const run = await cli(['parity', 'laya-tiny', '--json'], env);
    expect(run.code).toBe(0);
    const [bucket, dense] = JSON.parse(run.stdout);
    expect(bucket).toMatchObject({ graph: 'L64', precision: 'float16', tolerance: 0.02, rows: 140, passed: true });
    expect(dense).toMatchObject({
      graph: 'any length',
      precision: 'float32',
      tolerance: 1e-4,
      rows: 404,
      passed: true,
    });
    const text = await cli(['parity', 'laya-tiny', '--length', '64'], env);
    expect(text.stdout).toMatch(/L64 +float16 +140/);
  }, 120_000);

  it('does not measure bytes that are not the registered ones, and says when there is nothing', async () => {
    const copy = join(makeFolder(), 'store');
    await cp(root, copy, { recursive: true });
    const folder = artifactFolder(copy, { model: findModel('laya-tiny'), bucket: 64 });
    await appendFile(join(folder, 'model.mlmodelc', 'model.mil'), ' ');
    const changed = await cli(['parity', 'laya-tiny', '--length', '64'], { LAYA_APPLE_CACHE: copy });
    expect([changed.code, changed.stderr]).toEqual([1, expect.stringContaining('TREE_MISMATCH')]);
    const empty = await cli(['parity', 'laya-tiny'], { LAYA_APPLE_CACHE: makeFolder() });
    expect([empty.code, empty.stderr]).toEqual([1, expect.stringContaining('ARTIFACT_MISSING')]);
  }, 120_000);
});

describe('benchmark', () => {
  it('measures rows of exactly the length, and writes JSON and a picture', async () => {
    const folder = makeFolder();
    const [json, svg] = [join(folder, 'b.json'), join(folder, 'b.svg')];
    const few = ['--lengths', '64', '--questions', '1,3', '--iters', '3', '--warmup', '1'];
    const run = await cli(['benchmark', 'laya-tiny', ...few, '--output', json, '--plot', svg], env);
    expect(run.code).toBe(0);
    const { results } = JSON.parse(await readFile(json, 'utf8'));
    expect(results.map(({ length, questions: count, graph }: never) => [length, count, graph])).toEqual([
      [64, 1, 'any length'],
      [64, 3, 'any length'],
    ]);
    const buckets = await cli(['benchmark', 'laya-tiny', ...few, '--graph', 'buckets', '--json'], env);
    expect(JSON.parse(buckets.stdout).results.map(({ graph }: never) => graph)).toEqual(['L64', 'L64']);
    expect(results[0].p50_ms).toBeLessThanOrEqual(results[0].p99_ms);
    expect(await readFile(svg, 'utf8')).toMatch(/^<svg[\s\S]*<\/svg>\n$/);
  }, 120_000);

  it.each([
    [['--lengths', '64x']],
    [['--lengths', '1000']],
    [['--questions', '0']],
    [['--iters', '0']],
    [['--lengths', '3']],
  ])('refuses %j', async (args) => {
    const run = await cli(['benchmark', 'laya-tiny', ...args], env);
    expect([run.code, run.stderr]).toEqual([2, expect.stringContaining('USAGE')]);
  });
});

describe('download', () => {
  it('prints the folder of a checkpoint that ships with the project, and refuses others offline', async () => {
    const run = await cli(['download', 'laya-tiny', '--json'], env);
    expect([run.code, JSON.parse(run.stdout)[0].model]).toEqual([0, 'laya-tiny']);
    const offline = await cli(['download', 'laya', '--offline'], { ...env, HF_HUB_CACHE: makeFolder() });
    expect([offline.code, offline.stderr]).toEqual([1, expect.stringContaining('OFFLINE')]);
  });
});

describe('build --graph', () => {
  it('builds the any-length graph alone or with the buckets', async () => {
    const run = await cli(['build', 'laya-tiny', '--graph', 'any-length', '--json'], env);
    expect([run.code, JSON.parse(run.stdout)]).toEqual([0, expect.objectContaining({ outcome: 'already-registered' })]);
    const all = await cli(['build', 'laya-tiny', '--graph', 'all', '--length', '64'], env);
    expect(all.code).toBe(0);
    expect(all.stdout).toMatch(/any length: there already, 404 rows/);
    const [model] = JSON.parse((await cli(['info', 'laya-tiny'], env)).stdout).models;
    expect(model.any_length).toEqual({ status: 'validated', artifact_sha256: JSON.parse(run.stdout).artifact_sha256 });
  });
});
