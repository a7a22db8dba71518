// The protocol's conformance suite: against the simulated probe in `npm test`, against laya-probe itself, built with the
// stand-in for Core ML, in `npm run test:swift`. It shares no code with the client.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { probeUnderTest } from './programs.js';
import { answersOf, CANCEL, jsonOf, PREDICT, rawFrame, rawTensors, runRaw } from './raw.js';
import { SMALL, standInAnswer, writeSmallModel } from './small-model.js';

const program = probeUnderTest();
const parent = mkdtempSync(join(tmpdir(), 'laya-conformance-'));
let model = '';

beforeAll(async () => {
  model = await writeSmallModel(parent);
});
afterAll(() => rmSync(parent, { recursive: true, force: true }));

const A = Uint16Array.from({ length: 33 }, (_, i) => 0x3c00 + i);
const B = Uint16Array.of(0x7e01, 0x8000);
const good = (id: number, index = 0): Buffer => rawFrame(PREDICT, id, rawTensors([A, B], index));
const serve = (...frames: Uint8Array[]) => runRaw(program(), ['serve', model], Buffer.concat(frames));

/** A request and its answer as they are on the wire; the answer's 8 bytes of times, from 4 on, are measured. */
const RECORDED = {
  request:
    '4c415950100000002a0000000001000000000200000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000003c013c023c033c043c053c063c073c083c093c0a3c0b3c0c3c0d3c0e3c0f3c103c113c123c133c143c153c163c173c183c193c1a3c1b3c1c3c1d3c1e3c1f3c203c0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000017e0080000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000',
  header: '4c415950030000002a00000040010000',
  y: '003c0080023c0080',
};

describe('a session', () => {
  test('starts with HELLO and READY and ends with its input', async () => {
    const run = await serve();
    expect(run.frames.map(({ kind, id }) => [kind, id])).toEqual([
      [1, 0],
      [2, 0],
    ]);
    expect(jsonOf(run.frames[0])).toMatchObject({
      name: 'laya-probe',
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      protocol: 1,
      protocols: [1],
      core_ml: program().accept[0],
      units: 'cpuAndNeuralEngine',
      limits: { frame: 64 << 20, queue: 8 },
    });
    expect(jsonOf(run.frames[1]).models).toEqual([{ path: model, ...SMALL }]);
    expect([run.code, run.rest.length]).toEqual([0, 0]);
  });

  test('answers the recorded request with the recorded bytes', async () => {
    const request = Buffer.from(RECORDED.request, 'hex');
    expect(request.equals(good(42))).toBe(true);
    const { frames } = await serve(request);
    const answer = frames[2]!;
    expect(rawFrame(answer.kind, answer.id, answer.payload).subarray(0, 16).toString('hex')).toBe(RECORDED.header);
    expect(answer.payload.toString('hex', 0, 4)).toBe('00000200');
    expect(answer.payload.subarray(12, 64).every((byte) => byte === 0)).toBe(true);
    expect(answer.payload.toString('hex', 64, 72)).toBe(RECORDED.y);
    const z = new Uint16Array(Uint8Array.from(answer.payload.subarray(128, 128 + 192)).buffer);
    expect(Array.from(z)).toEqual(standInAnswer([A, B], 96));
  });

  test('serves several models, by their index', async () => {
    const other = await writeSmallModel(parent, 'other.mlmodelc', {
      inputs: [{ name: 'x', shape: [2, 2] }],
      outputs: [{ name: 'out', shape: [2] }],
    });
    const request = rawFrame(PREDICT, 9, rawTensors([Uint16Array.of(5, 6, 7, 8)], 1));
    const run = await runRaw(program(), ['serve', model, other], Buffer.concat([good(1), request]));
    const answer = run.frames.find(({ id }) => id === 9)!;
    expect(answer.payload.toString('hex', 0, 4)).toBe('01000100');
    expect(answer.payload.toString('hex', 64, 68)).toBe('05000600');
    expect(answersOf(run).sort()).toEqual(['1 RESULT', '9 RESULT']);
  });

  test('answers everything it accepted after its input ended', async () => {
    const ids = [1, 2, 3, 4, 5, 6, 7, 8];
    const run = await serve(...ids.map((id) => good(id)));
    expect(answersOf(run)).toEqual(ids.map((id) => `${id} RESULT`));
    expect(run.code).toBe(0);
  });

  test('answers a cancelled request exactly once', async () => {
    const run = await serve(good(1), good(2), rawFrame(CANCEL, 2), rawFrame(CANCEL, 77), good(3));
    const answers = answersOf(run);
    expect(answers.map((answer) => answer.split(' ')[0]).sort()).toEqual(['1', '2', '3']);
    expect(['2 RESULT', '2 CANCELLED']).toContain(answers.find((answer) => answer.startsWith('2')));
    expect(run.code).toBe(0);
  });
});

describe('a request that is wrong', () => {
  const reserved = rawTensors([A, B]);
  reserved[63] = 1;
  const cases: readonly [string, Buffer, string][] = [
    ['of no request', rawFrame(PREDICT, 0, rawTensors([A, B])), '0 REQUEST_ID'],
    ['to a model that is not there', good(5, 1), '5 REQUEST_MODEL'],
    ['without a payload', rawFrame(PREDICT, 5), '5 REQUEST_SHAPE'],
    ['of 63 bytes', rawFrame(PREDICT, 5, Buffer.alloc(63)), '5 REQUEST_SHAPE'],
    ['that lacks a tensor', rawFrame(PREDICT, 5, rawTensors([A])), '5 REQUEST_SHAPE'],
    ['with a tensor too many', rawFrame(PREDICT, 5, rawTensors([A, B, B])), '5 REQUEST_SHAPE'],
    ['with another count than tensors', rawFrame(PREDICT, 5, rawTensors([A, B], 0, 3)), '5 REQUEST_SHAPE'],
    ['with a byte that must be zero', rawFrame(PREDICT, 5, reserved), '5 REQUEST_SHAPE'],
  ];

  test.each(cases)('%s is refused and the next one answered', async (_, bytes, answer) => {
    const run = await serve(bytes, good(6));
    expect(answersOf(run).sort()).toEqual([answer, '6 RESULT'].sort());
    expect(run.code).toBe(0);
  });
});

describe('a stream that is wrong', () => {
  const kind = good(2);
  kind[4] = 3;
  const reserved = good(2);
  reserved[6] = 1;
  const cases: readonly [string, Buffer, string][] = [
    ['starts otherwise', Buffer.from('GET / HTTP/1.1\r\n\r\n'), 'FRAME_MAGIC'],
    ['has a kind that clients do not send', kind, 'FRAME_KIND'],
    ['has reserved bytes', reserved, 'FRAME_RESERVED'],
    ['announces too much', rawFrame(PREDICT, 2, Buffer.alloc(0), (64 << 20) + 1), 'FRAME_TOO_LARGE'],
    ['announces 4 GB', rawFrame(PREDICT, 2, Buffer.alloc(0), 0xffffffff), 'FRAME_TOO_LARGE'],
    ['cancels with a payload', rawFrame(CANCEL, 2, Buffer.alloc(1)), 'FRAME_TOO_LARGE'],
    ['ends within a header', good(2).subarray(0, 15), 'FRAME_TRUNCATED'],
    ['ends within a payload', good(2).subarray(0, -1), 'FRAME_TRUNCATED'],
    ['ends before a payload', good(2).subarray(0, 16), 'FRAME_TRUNCATED'],
  ];

  test.each(cases)('%s: what came before is answered, then it ends', async (_, bytes, code) => {
    const run = await serve(good(1), bytes);
    expect(answersOf(run).sort()).toEqual([`0 ${code}`, '1 RESULT']);
    expect([run.code, run.rest.length]).toEqual([2, 0]);
  });
});

describe('a start that fails', () => {
  const refused = async (...args: string[]) => {
    const run = await runRaw(program(), args, Buffer.alloc(0));
    const last = run.frames.at(-1);
    return {
      kinds: run.frames.map(({ kind }) => kind),
      code: jsonOf(last).code,
      exit: run.code,
      rest: run.rest.length,
    };
  };

  test('is an ERROR frame in place of HELLO for wrong arguments', async () => {
    const usage = { kinds: [4], code: 'USAGE', exit: 64, rest: 0 };
    expect(await refused('serve')).toEqual(usage);
    expect(await refused('serve', model, '--units', 'gpu')).toEqual(usage);
    expect(await refused('serve', model, '--fast', 'yes')).toEqual(usage);
    expect(await refused('serve', model, '--protocol', '2')).toEqual({ ...usage, code: 'PROTOCOL_VERSION', exit: 1 });
  });

  test('names a model that is missing or of another kind, after HELLO', async () => {
    const outcome = { kinds: [1, 4], code: 'MODEL_MISSING', exit: 1, rest: 0 };
    expect(await refused('serve', model, join(parent, 'nowhere'))).toEqual(outcome);
    const wide = await writeSmallModel(parent, 'wide.mlmodelc', {
      inputs: [{ name: 'x', shape: [2], dataType: 'Float32' }],
      outputs: SMALL.outputs,
    });
    expect(await refused('serve', wide)).toEqual({ ...outcome, code: 'MODEL_INTERFACE' });
  });
});

describe('a command', () => {
  // B15: whatever Core ML prints, stdout is one JSON document.
  const document = async (...args: string[]) => {
    const run = await runRaw(program(), args, Buffer.alloc(0));
    const text = run.rest.toString('utf8');
    expect(text).toMatch(/^\{.*\}\n$/);
    return { exit: run.code, ...(JSON.parse(text) as { probe: unknown; result?: object; error?: { code: string } }) };
  };

  test('says who answers', async () => {
    const { exit, probe } = await document('version');
    expect(exit).toBe(0);
    expect(probe).toMatchObject({ name: 'laya-probe', protocol: 1, core_ml: program().accept[0] });
  });

  test('describes the machine', async () => {
    const { result } = await document('device');
    expect(result).toMatchObject({
      architecture: expect.any(String),
      system: { name: expect.any(String), version: expect.any(String) },
      memory_bytes: expect.any(Number),
      compute_devices: expect.any(Array),
    });
  });

  test('predicts', async () => {
    const { result } = await document('predict', '--units', 'cpuOnly', '--repeat', '2', '--', model);
    const zeros = (count: number) => Buffer.alloc(count * 2).toString('base64');
    expect(result).toMatchObject({
      units: 'cpuOnly',
      outputs: [
        { name: 'y', shape: [1, 4], fp16: zeros(4) },
        { name: 'z', shape: [3, 32], fp16: zeros(96) },
      ],
      repeated_equal: true,
    });
  });

  test.each([
    [[], 'USAGE', 64],
    [['fly'], 'USAGE', 64],
    [['plan', 'a', '--units', 'ANE'], 'USAGE', 64],
    [['plan', '/nowhere'], 'MODEL_MISSING', 1],
    [['predict', '/nowhere'], 'MODEL_MISSING', 1],
    [['compile', '/nowhere', '/nowhere/out'], 'PACKAGE_MISSING', 1],
  ])('%j fails with a code', async (args, code, exit) => {
    expect(await document(...args)).toMatchObject({ exit, error: { code } });
  });
});
