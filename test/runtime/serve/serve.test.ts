import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { Laya } from '../../../runtime/index.js';
import { REQUEST_LIMITS } from '../../../runtime/serve/limits.js';
import { type JsonObject, type JsonValue, parseJson, stringifyJson } from '../../../schemas/json.js';
import { cli } from '../../pipeline/cli.js';
import { registerLayaTiny } from '../../registered.js';
import { CASES, INVALID } from '../laya-tiny.js';
import { ask, codeIn, send } from './client.js';
import { type Running, startCli } from './running.js';

const root = join(tmpdir(), `laya-test-${randomBytes(6).toString('hex')}`);
const env = { LAYA_APPLE_CACHE: root };
const LONG = longRequest();
let server: Running;

beforeAll(async () => {
  await registerLayaTiny(root);
  server = await startCli(['--model', 'laya-tiny'], env);
}, 300_000);
afterAll(async () => {
  server?.child.kill('SIGTERM');
  await server?.ended;
  rmSync(root, { recursive: true, force: true });
});

/** The most work one request may ask for. */
function longRequest(): string {
  const questions = Array.from(
    { length: REQUEST_LIMITS.questions },
    (_, i) => `"${i}":{"type":"noul","instructions":"Is it ${i}?"}`,
  );
  return `{"state":"${'order '.repeat(8_000)}","questions":{${questions.join()}}}`;
}

function bodyOf(state: JsonValue, questions: JsonValue, minConfidence: JsonValue): string {
  const body: JsonObject = new Map([
    ['state', state],
    ['questions', questions],
  ]);
  if (minConfidence !== null) body.set('min_confidence', minConfidence);
  return stringifyJson(body);
}

describe('answers over HTTP', () => {
  it('are those of predict, byte for byte', async () => {
    await using laya = await Laya.open('laya-tiny', { env });
    // Every third golden request: predict itself is held against all of them elsewhere.
    const some = CASES.filter((_, index) => index % 3 === 0);
    const cases = some.filter(({ state, questions }) => state !== null && questions instanceof Map);
    expect(cases.length).toBeGreaterThan(20);
    for (const { name, state, questions, minConfidence } of cases) {
      const result = await laya.predict({
        context: state,
        questions,
        ...(minConfidence === null ? {} : { minConfidence }),
      });
      const json = result.toJson();
      const [answers, usage] = [stringifyJson(json.get('answers')!), stringifyJson(json.get('usage')!)];
      const { status, text } = await ask(server.url, bodyOf(state, questions, minConfidence));
      expect([name, status]).toEqual([name, 200]);
      expect(text).toContain(`"answers":${answers},"usage":${usage},"routing":{`);
    }
  }, 120_000);

  it('are refused where predict refuses', async () => {
    for (const { name, state, questions, minConfidence } of INVALID) {
      const { status } = await ask(server.url, bodyOf(state, questions, minConfidence));
      expect([name, status === 400 || status === 422]).toEqual([name, true]);
    }
  });

  it('keep the order of the request, and the last of equal keys', async () => {
    const question = '{"type":"choice","instructions":"Which?","criteria":{"10":"billing","2":"shipping"}}';
    const { text } = await ask(server.url, `{"state":"x","questions":{"9":null,"1":${question},"9":${question}}}`);
    expect([...(parseJson(text) as Map<string, JsonObject>).get('answers')!.keys()]).toEqual(['9', '1']);
    expect(text).toMatch(/"probabilities":\{"10":[\d.]+,"2":[\d.]+\}/);
  });

  it('give nothing for no questions', async () => {
    const { text } = await ask(server.url, '{"state":"x","questions":{}}');
    expect(JSON.parse(text)).toMatchObject({
      model: 'laya-rl-agent',
      answers: {},
      usage: { input_tokens: 0, output_tokens: 0 },
    });
  });

  // Fault S19: every answer tells which device and model answered, and why.
  it('tell who answered', async () => {
    const body = '{"model":"jev-latest","state":"x","questions":{"a":{"type":"noul","instructions":"x"}}}';
    const { text, headers } = await ask(server.url, body, { headers: { 'X-Request-Id': 'r-1' } });
    expect(JSON.parse(text)).toMatchObject({
      routing: { model: 'laya-tiny', repo: 'laya-artifacts/laya-tiny', detection: null, workflow: null },
      laya_artifacts: {
        checkpoint: 'laya-tiny',
        device: 'cpu',
        device_reason: 'ane_runtime_unavailable',
        model_routing: null,
        request_id: 'r-1',
        truncated: false,
      },
    });
    expect(headers['x-inference-time-ms']).toMatch(/^\d+\.\d\d$/);
  });

  // Fault S17.
  it('never come from a model that was not named at the start', async () => {
    const reply = await ask(server.url, '{"model":"ml","state":"x","questions":{}}');
    expect([reply.status, codeIn(reply)]).toEqual([503, 'MODEL_NOT_SERVED']);
    const auto = await ask(server.url, '{"model":"auto","state":"Привет","questions":{}}');
    expect(JSON.parse(auto.text).routing.model).toBe('laya-tiny');
  });
});

describe('the server', () => {
  // Fault S15.
  it('answers /health while requests are at work', async () => {
    let done = 0;
    const one = async (): Promise<number> => {
      const { status } = await ask(server.url, LONG);
      done += 1;
      return status;
    };
    const work = [one(), one(), one()];
    for (let i = 0; i < 3; i++) expect((await send(server.url, '/health')).status).toBe(200);
    expect(done).toBe(0);
    expect(await Promise.all(work)).toEqual([200, 200, 200]);
  });

  it('sends what its OpenAPI document says', async () => {
    const { components } = JSON.parse((await send(server.url, '/openapi.json')).text);
    const ajv = new Ajv2020({ strict: false });
    const check = (name: string, text: string): void => {
      const schema = JSON.parse(JSON.stringify({ $ref: `#/components/schemas/${name}`, components }));
      ajv.validate(schema, JSON.parse(text));
      expect([name, ajv.errors]).toEqual([name, null]);
    };
    for (const { state, questions, minConfidence } of CASES.slice(0, 12)) {
      if (state === null || !(questions instanceof Map)) continue;
      const body = bodyOf(state, questions, minConfidence);
      check('SystemOneRequest', body);
      check('SystemOneResponse', (await ask(server.url, body)).text);
    }
    check('Refusal', (await ask(server.url, '[]')).text);
    check('Health', (await send(server.url, '/health')).text);
    check('Ready', (await send(server.url, '/ready')).text);
    check('Models', (await send(server.url, '/v1/models')).text);
    const { SystemOneRequest, ChoiceQuestion, ScoreQuestion } = components.schemas;
    expect([
      SystemOneRequest.properties.questions.maxProperties,
      ChoiceQuestion.properties.criteria.oneOf[0].maxItems,
      ScoreQuestion.properties.criteria.maxItems,
    ]).toEqual([REQUEST_LIMITS.questions, REQUEST_LIMITS.choiceOptions, REQUEST_LIMITS.scoreLevels]);
  });

  it('finishes its requests on SIGTERM and ends with 0', async () => {
    const other = await startCli(['--model', 'laya-tiny', '--workers', '1'], env);
    const running = ask(other.url, LONG);
    while (JSON.parse((await send(other.url, '/health')).text).queue.running === 0) await new Promise(setImmediate);
    other.child.kill('SIGTERM');
    expect((await running).status).toBe(200);
    expect(await other.ended).toBe(0);
    const events = other
      .log()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).event);
    expect(events).toEqual(expect.arrayContaining(['listening', 'model_ready', 'request', 'stopping', 'stopped']));
    expect(other.log()).not.toContain('order');
  });

  it('has its document from the package', () => {
    const generated = readFileSync('schemas/generated/openapi.json', 'utf8');
    expect(JSON.parse(generated).openapi).toBe('3.1.0');
  });
});

describe('a server that can not start', () => {
  it.each([
    [2, 'whole number', ['--port', 'abc']],
    [2, 'whole number', ['--port', '65536']],
    [2, 'whole number', ['--workers', '0']],
    [2, 'error USAGE', ['--checkpoint', 'x']],
    [1, 'error BIND_REFUSED', ['--host', '0.0.0.0']],
    [1, 'error BIND_REFUSED', ['--host', '::ffff:127.0.0.1']],
    [1, 'error API_KEY_MISSING', ['--host', '0.0.0.0', '--allow-remote']],
    [1, 'error MODEL_UNKNOWN', ['--model', 'nobody']],
    [1, 'error NO_MODEL', ['--port', '0', '--model', 'laya']],
    [1, 'error NO_MODEL', ['--port', '0', '--model', 'laya-tiny', '--device', 'ane']],
  ])('ends with %d, %s', async (code, text, args) => {
    const run = await cli(['serve', ...args], { ...env, LAYA_API_KEY: '' });
    expect([run.code, run.stderr]).toEqual([code, expect.stringContaining(text)]);
  });
});
