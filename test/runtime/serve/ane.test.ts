import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from '@jest/globals';
import { jsonLog } from '../../../runtime/serve/log.js';
import { type Served, type ServeOptions, serve } from '../../../runtime/serve/serve.js';
import { appleStores, isAlive } from '../ane/apple-store.js';
import { ask, codeIn, send } from './client.js';

const { rooted, probe, folder } = appleStores();
const workerUrl = pathToFileURL('dist/runtime/serve/worker.js');
const running: Served[] = [];
afterEach(async () => {
  for (const served of running.splice(0)) await served.stop();
});

/** A server of laya-tiny on the simulated probe. */
async function started(change: Partial<ServeOptions> & Pick<ServeOptions, 'root' | 'probe'>) {
  const lines: Record<string, unknown>[] = [];
  const log = jsonLog(
    'debug',
    (line) => void lines.push(JSON.parse(line)),
    () => new Date(0),
  );
  const served = await serve({
    ...{ models: ['laya-tiny'], host: '127.0.0.1', port: 0, device: 'auto', allowRemote: false, apiKey: undefined },
    ...{ version: '0', log, workerUrl },
    ...change,
  });
  running.push(served);
  await served.ready();
  const stop = (): Promise<boolean> => {
    running.splice(running.indexOf(served), 1);
    return served.stop();
  };
  return { url: served.url, stop, lines };
}

const body = (...questions: string[]): string =>
  JSON.stringify({
    state: 'I was charged twice.',
    questions: Object.fromEntries(questions.map((text) => [text, { type: 'noul', instructions: text }])),
  });
const SHORT = body('Is this about billing?');
const runtimeIn = (text: string): Record<string, unknown> => JSON.parse(text).laya_artifacts;
const aneOf = async (url: string): Promise<unknown> => JSON.parse((await send(url, '/health')).text).ane['laya-tiny'];

describe('a server with the Neural Engine', () => {
  it('answers short questions there and others on the cpu, at the same time', async () => {
    const { url, lines } = await started({ root: await rooted([64]), probe: probe() });
    const asked = Array.from({ length: 12 }, (_, i) => ask(url, i % 3 ? SHORT : body('Is it late?', 'Is it urgent?')));
    for (const [i, { text }] of (await Promise.all(asked)).entries()) {
      const { device, routing_reason: reason } = runtimeIn(text);
      const short = ['ane validated_short_single_question_path', 'cpu ane_backlog_shorter_on_cpu'];
      expect(i % 3 ? short : ['cpu multiple_questions']).toContain(`${device} ${reason}`);
    }
    expect(await aneOf(url)).toEqual({ status: 'ready' });
    // One worker: each would have a laya-probe of its own.
    expect(lines.find(({ event }) => event === 'listening')).toMatchObject({ workers: 1 });
    expect(lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  /** A server whose laya-probe dies at its first request, and whose next one never gets ready. */
  async function startedAndLost(change: Partial<ServeOptions> & Pick<ServeOptions, 'root'>) {
    const first = join(folder(), 'first');
    await writeFile(first, '');
    const dies = probe({ faults: [{ at: 3, does: 'kill' }], gates: [{ at: 'hello', file: first }] });
    const served = await started({ probe: dies, ...change });
    await rm(first);
    return served;
  }
  /** Down, or being started again already when this machine is slow. */
  const LOST = { status: expect.stringMatching(/^(unavailable|warming)$/), reason: 'ane_runtime_unavailable' };

  it('warns when more workers are asked for, each with a laya-probe of its own', async () => {
    const root = await rooted([64]);
    const warned = async (device: 'auto' | 'cpu') => {
      const { lines, stop } = await started({ root, probe: probe(), workers: 2, device });
      await stop();
      return lines.flatMap(({ level, event, workers }) => (event === 'several_probes' ? [[level, workers]] : []));
    };
    expect([await warned('auto'), await warned('cpu')]).toEqual([[['warning', 2]], []]);
  });

  it('goes on with the cpu when it is lost, and tells so', async () => {
    const { url, lines } = await startedAndLost({ root: await rooted([64]) });
    const lost = await ask(url, SHORT);
    expect([lost.status, codeIn(lost), lost.headers['retry-after']]).toEqual([503, 'DEVICE_UNAVAILABLE', '1']);
    const next = await ask(url, SHORT);
    expect(runtimeIn(next.text)).toMatchObject({ device: 'cpu', routing_reason: 'ane_runtime_unavailable' });
    expect(await aneOf(url)).toEqual(LOST);
    expect((await send(url, '/ready')).status).toBe(200);
    expect(lines.find(({ event }) => event === 'ane_changed')).toMatchObject({ level: 'warning', model: 'laya-tiny' });
  });

  it('leaves no process behind, also when it has to cut a request', async () => {
    const gate = join(folder(), 'never');
    const { url, stop, lines } = await started({
      root: await rooted([64]),
      probe: probe({ gates: [{ at: 3, file: gate }] }),
      limits: { drainMs: 50 },
    });
    const [pid] = lines.find(({ event }) => event === 'processes')!.pids as string[];
    expect(isAlive(Number(pid))).toBe(true);
    const cut = ask(url, SHORT).catch(() => 'cut');
    while (JSON.parse((await send(url, '/health')).text).queue.running === 0) await new Promise(setImmediate);
    expect([await stop(), await cut]).toEqual([false, 'cut']);
    while (isAlive(Number(pid))) await new Promise(setImmediate);

    const whole = await started({ root: await rooted([64]), probe: probe() });
    const [other] = whole.lines.find(({ event }) => event === 'processes')!.pids as string[];
    expect(await whole.stop()).toBe(true);
    expect(isAlive(Number(other))).toBe(false);
  });

  it('has nothing to fall back to when it was asked for alone', async () => {
    const { url } = await startedAndLost({ root: await rooted([64], ['artifacts']), device: 'ane' });
    expect(codeIn(await ask(url, SHORT))).toBe('DEVICE_UNAVAILABLE');
    expect(await aneOf(url)).toEqual(LOST);
  });
});
