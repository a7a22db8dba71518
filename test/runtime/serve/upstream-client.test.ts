import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ensurePython } from '../../../pipeline/tools/python.js';
import { Laya } from '../../../runtime/index.js';
import { toPlain } from '../../../schemas/json.js';
import { testContext } from '../../pipeline/context.js';
import { registerLayaTiny } from '../../registered.js';
import { keptFolder } from '../../workspace.js';
import { type Running, startCli } from './running.js';

const root = keptFolder();
const KEY = 'a-key-of-at-least-sixteen-characters';
let server: Running;
let python = '';

beforeAll(async () => {
  ({ python } = await ensurePython('peer-store', testContext('')));
  await registerLayaTiny(root(), [64, 96]);
  server = await startCli(['--model', 'laya-tiny'], { LAYA_APPLE_CACHE: root(), LAYA_API_KEY: KEY });
}, 300_000);
afterAll(async () => {
  server?.child.kill('SIGTERM');
  await server?.ended;
});

async function upstream(operation: string, request: object, key = KEY) {
  const script = ['-I', '-X', 'utf8', 'test/runtime/serve/upstream_client.py'];
  const args = [...script, server.url, key, operation, JSON.stringify(request)];
  return JSON.parse((await promisify(execFile)(python, args)).stdout);
}

const state = 'I was charged twice for my order, please fix this today.';
const questions = {
  topic: { type: 'choice', instructions: 'What is the topic?', criteria: ['billing', 'technical', 'shipping'] },
  angry: { type: 'noul', instructions: 'Is the customer angry?' },
} as const;

describe("upstream's own clients, with another base URL", () => {
  it('get the answers that predict gives', async () => {
    await using laya = await Laya.open('laya-tiny', { env: { LAYA_APPLE_CACHE: root() } });
    const expected = toPlain((await laya.predict({ context: state, questions })).toJson().get('answers')!);
    const reply = await upstream('predict', { state, questions, model: 'laya-tiny' });
    expect(reply.answers).toEqual(expected);
    expect(reply).toMatchObject({
      model: 'laya-rl-agent',
      usage: { truncated: false },
      routing: { model: 'laya-tiny' },
    });
  });

  it('choose among tools', async () => {
    const tools = ['billing: charges and refunds', 'shipping: parcels and delivery'];
    const { tool, probabilities } = await upstream('select', { state, tools });
    expect(['billing', 'shipping']).toContain(tool);
    expect(Object.values(probabilities)).toHaveLength(2);
  });

  it('see what is loaded', async () => {
    expect(await upstream('health', {})).toMatchObject({ loaded: ['laya-tiny'] });
  });

  it('understand every refusal', async () => {
    const bad = { ...questions, topic: { type: 'choice', instructions: 'x', criteria: [] } };
    const refused = await upstream('predict', { state, questions: bad });
    expect(refused).toEqual({ refused: 'invalid_request', message: expect.stringContaining('topic') });
    expect(await upstream('predict', { state, questions }, 'not-the-key')).toMatchObject({ refused: 'unauthorized' });
    expect(await upstream('predict', { state, questions, model: 'laya' })).toMatchObject({ refused: 'busy' });
  });
});
