import { once } from 'node:events';
import { afterEach, describe, expect, it } from '@jest/globals';
import { HttpError } from '../../../runtime/serve/errors.js';
import { REQUEST_LIMITS } from '../../../runtime/serve/limits.js';
import type { ServerOptions } from '../../../runtime/serve/server.js';
import { codeOf } from '../../workspace.js';
import { ask, codeIn, exchange, open, send } from './client.js';
import { type Started, startStandIn } from './stand-in.js';

const VALID = '{"state":"x","questions":{"q":{"type":"noul","instructions":"x"}}}';
const HEAD = 'POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
const servers: Started[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

async function start(change: Partial<ServerOptions> = {}): Promise<Started> {
  const server = await startStandIn(change);
  servers.push(server);
  return server;
}

// Fault S12: names that only look like loopback, pages of other sites, forms.
describe('who is answered', () => {
  it.each([
    ...['evil.example', '', '[::1', '127.0.0.1:abc', '[::ffff:127.0.0.1]', 'localhost.', '127.1'],
    ...['Host: localhost\r\nHost: localhost', 'localhost\r\nHost: evil.example'],
  ])('421 for the Host %j', async (host) => {
    const { url } = await start();
    expect(await exchange(url, `GET /health HTTP/1.1\r\nHost: ${host}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 421 /);
  });

  it('421 without a Host', async () => {
    const { url, standIn } = await start();
    for (const version of ['1.0', '1.1'])
      expect(await exchange(url, `GET / HTTP/${version}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 421 /);
    expect(standIn.asked).toEqual([]);
  });

  it.each(['localhost', 'LOCALHOST:1', '127.0.0.2', '[::1]:8642'])('200 for the Host %s', async (host) => {
    const { url } = await start();
    const text = await exchange(url, `GET /health HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('403 for the pages of other sites, 200 for its own', async () => {
    const { url } = await start();
    for (const origin of ['http://evil.example', 'null', 'http://localhost:3000']) {
      const reply = await ask(url, VALID, { headers: { Origin: origin } });
      expect([reply.status, codeIn(reply), reply.headers['access-control-allow-origin']]).toEqual([
        403,
        'ORIGIN_FOREIGN',
        undefined,
      ]);
    }
    expect((await ask(url, VALID, { headers: { Origin: url } })).status).toBe(200);
  });

  it('grants no preflight', async () => {
    const { url } = await start();
    const reply = await send(url, '/v1/systemone', { method: 'OPTIONS' });
    expect([reply.status, reply.headers['access-control-allow-origin']]).toEqual([405, undefined]);
  });

  it.each(['', 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'application/jsonx'])(
    '415 for the type %j',
    async (type) => {
      const { url } = await start();
      expect(await ask(url, VALID, { headers: { 'Content-Type': type } })).toMatchObject({ status: 415 });
    },
  );

  it('400 for a target that is a whole address', async () => {
    const { url } = await start();
    const text = await exchange(url, 'GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n');
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe('the key', () => {
  const withKey = (key: string) => ({ headers: { Authorization: `Bearer ${key}` } });

  it('guards everything but liveness and the page', async () => {
    const { url, standIn } = await start({ apiKey: 'secret' });
    for (const sent of [{}, withKey('wrong'), withKey('s\u00e9cret')]) {
      const reply = await ask(url, VALID, sent);
      expect([reply.status, reply.headers['www-authenticate']]).toEqual([401, 'Bearer']);
      for (const path of ['/v1/models', '/metrics', '/openapi.json'])
        expect((await send(url, path, sent)).status).toBe(401);
      expect(JSON.parse((await send(url, '/health', sent)).text)).toEqual({ status: 'ok' });
    }
    expect((await send(url, '/')).status).toBe(200);
    expect(standIn.asked).toEqual([]);
    expect((await ask(url, VALID, withKey('secret'))).status).toBe(200);
    expect((await send(url, '/metrics', withKey('secret'))).status).toBe(200);
  });

  it('is any key when none is set', async () => {
    const { url } = await start();
    expect((await ask(url, VALID, withKey('any'))).status).toBe(200);
  });

  it('is needed, and asked for, to serve other machines', async () => {
    const remote = { host: '0.0.0.0' };
    expect(await codeOf(() => start(remote))).toBe('BIND_REFUSED');
    expect(await codeOf(() => start({ ...remote, allowRemote: true }))).toBe('API_KEY_MISSING');
    expect(await codeOf(() => start({ ...remote, allowRemote: true, apiKey: '' }))).toBe('API_KEY_MISSING');
    const { url } = await start({ ...remote, allowRemote: true, apiKey: 'secret' });
    const sent = { headers: { Host: 'laya.example', ...withKey('secret').headers } };
    expect((await send(url.replace('0.0.0.0', '127.0.0.1'), '/v1/models', sent)).status).toBe(200);
  });
});

// Fault S13: sizes and times, whatever a client declares.
describe('what a client may send', () => {
  const { bodyBytes } = REQUEST_LIMITS;

  it('413 by the declared length, before a byte of the body', async () => {
    const { url } = await start();
    expect(await exchange(url, `${HEAD}Content-Length: ${bodyBytes + 1}\r\nConnection: close\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 413 /,
    );
  });

  it('413 for a body without a length, as soon as it is too large', async () => {
    const { url, standIn } = await start();
    const socket = open(url);
    socket.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    const feed = (): void => {
      while (socket.writable && socket.write(chunk));
    };
    socket.on('drain', feed);
    feed();
    const [head] = await once(socket, 'data');
    expect(String(head)).toMatch(/^HTTP\/1\.1 413 /);
    await new Promise((resolve) => socket.on('close', resolve));
    expect(standIn.asked).toEqual([]);
  });

  it('takes a body of exactly the limit', async () => {
    const { url } = await start();
    expect((await ask(url, VALID.padEnd(bodyBytes))).status).toBe(200);
    expect((await ask(url, VALID.padEnd(bodyBytes + 1))).status).toBe(413);
  });

  it('does not take more than the declared length for the body', async () => {
    const { url, standIn } = await start();
    const text = await exchange(url, `${HEAD}Content-Length: 2\r\n\r\n{}${VALID}`);
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
    expect(standIn.asked).toEqual([]);
  });

  it('408 for a body that does not come', async () => {
    const { url } = await start({ limits: { bodyMs: 50 } });
    const text = await exchange(url, `${HEAD}Content-Length: 100\r\n\r\n{`);
    expect(text).toMatch(/^HTTP\/1\.1 408 .*"BODY_SLOW"/s);
  });

  it('408 for a header that does not come', async () => {
    const { url } = await start({ limits: { headersMs: 100 } });
    expect(await exchange(url, 'GET /health HTTP/1.1\r\nHost: local')).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('431 for a header without end', async () => {
    const { url } = await start();
    expect(await exchange(url, `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}`)).toMatch(
      /^HTTP\/1\.1 431 /,
    );
  });

  it.each([
    [400, 'BODY_NOT_JSON', '{'],
    [400, 'BODY_NOT_JSON', Buffer.from('{"state":"\xff","questions":{}}', 'latin1')],
    [400, 'BODY_INVALID', '[]'],
    [413, 'STATE_TOO_LARGE', `{"state":"${'x'.repeat(50_001)}","questions":{}}`],
    [422, 'BODY_TOO_DEEP', `{"state":${'['.repeat(100_000)}`],
    [503, 'MODEL_NOT_SERVED', '{"model":"laya","state":"x","questions":{}}'],
  ])('%d %s', async (status, code, body) => {
    const { url, standIn } = await start();
    const reply = await ask(url, body);
    expect([reply.status, codeIn(reply)]).toEqual([status, code]);
    expect(standIn.asked).toEqual([]);
  });

  it('503 for more than it bears, and serves again afterwards', async () => {
    const { url, standIn } = await start({ limits: { pending: 2 } });
    const held: (() => void)[] = [];
    standIn.respond = () => new Promise((resolve) => held.push(() => resolve('{}')));
    const first = [ask(url, VALID), ask(url, VALID)];
    while (held.length < 2) await new Promise(setImmediate);
    const busy = await ask(url, VALID);
    expect([busy.status, codeIn(busy), busy.headers['retry-after']]).toEqual([503, 'BUSY', '1']);
    for (const release of held) release();
    expect((await Promise.all(first)).map(({ status }) => status)).toEqual([200, 200]);
    standIn.respond = async () => '{}';
    expect((await ask(url, VALID)).status).toBe(200);
  });
});

describe('paths and methods', () => {
  it.each([
    [404, 'GET', '/v1'],
    [404, 'GET', '/v1/systemone/'],
    [404, 'GET', '/../etc/passwd'],
    [404, 'GET', '/__proto__'],
    [405, 'GET', '/v1/systemone'],
    [405, 'DELETE', '/v1/systemone'],
    [405, 'POST', '/health'],
    [200, 'HEAD', '/health'],
  ])('%d for %s %s', async (status, method, path) => {
    const { url } = await start();
    expect((await send(url, path, { method })).status).toBe(status);
  });

  it('serves its page under a policy of its own script and style', async () => {
    const { url } = await start();
    const { headers, text } = await send(url, '/');
    expect(headers['content-security-policy']).toMatch(
      /^default-src 'none'; script-src 'sha256-\S+'; style-src 'sha256-\S+'; connect-src 'self'/,
    );
    expect(text).not.toMatch(/(src|href)="(?!data:)/);
    expect([headers['x-content-type-options'], headers['x-frame-options']]).toEqual(['nosniff', 'DENY']);
  });
});

describe('what is told of a request', () => {
  it("has the client's id, or one of its own", async () => {
    const { url, standIn } = await start();
    const reply = await ask(url, VALID, { headers: { 'X-Request-Id': 'abc-1' } });
    expect([reply.headers['x-request-id'], standIn.asked[0]!.requestId]).toEqual(['abc-1', 'abc-1']);
    const odd = await ask(url, VALID, { headers: { 'X-Request-Id': 'a b"' } });
    expect(odd.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('has no texts, keys or paths in the log', async () => {
    const { url, lines } = await start({ apiKey: 'sesame' });
    const headers = { Authorization: 'Bearer sesame' };
    await ask(url, VALID.replace('"x"', '"private words"'), { headers });
    await ask(url, '{"private words"', { headers });
    await send(url, '/private?words=1&key=sesame', { headers });
    await ask(url, VALID, { headers: { Authorization: 'Bearer guessed' } });
    expect(lines.map((line) => JSON.parse(line)).filter(({ event }) => event === 'request')).toMatchObject([
      { route: '/v1/systemone', method: 'POST', status: 200 },
      { route: '/v1/systemone', status: 400 },
      { route: 'other', status: 404 },
      { route: '/v1/systemone', status: 401 },
    ]);
    expect(lines.join('')).not.toMatch(/private|words|sesame|guessed/);
  });

  it('counts by route and status', async () => {
    const { url } = await start();
    await ask(url, VALID);
    await ask(url, '[]');
    const { text } = await send(url, '/metrics');
    expect(text).toContain('laya_requests_total{route="/v1/systemone",method="POST",status="200"} 1\n');
    expect(text).toContain('laya_requests_total{route="/v1/systemone",method="POST",status="400"} 1\n');
    expect(text).toContain('laya_refused_total{code="BODY_INVALID"} 1\n');
    expect(text).toContain('laya_model_ready{model="laya-tiny"} 1\n');
  });

  it('says nothing of the cause when the inference fails', async () => {
    const { url, standIn, lines } = await start();
    standIn.respond = async () => {
      throw new TypeError('at /secret/path');
    };
    const reply = await ask(url, VALID);
    expect([reply.status, codeIn(reply)]).toEqual([500, 'INFERENCE_FAILED']);
    expect(reply.text).not.toContain('secret');
    expect(lines.join('')).toContain('TypeError: at /secret/path');
  });
});

describe('clients that leave and servers that stop', () => {
  it('tells the pool that the client has left, and takes it for no fault', async () => {
    const { url, standIn, lines } = await start();
    standIn.respond = () =>
      new Promise((_, reject) => {
        const [signal] = standIn.signals;
        signal!.addEventListener('abort', () => reject(new HttpError('CLIENT_GONE', 'the client left')));
      });
    const client = new AbortController();
    const gone = ask(url, VALID, { signal: client.signal }).catch(() => 'gone');
    while (standIn.signals.length === 0) await new Promise(setImmediate);
    client.abort();
    expect(await gone).toBe('gone');
    const [signal] = standIn.signals;
    if (!signal!.aborted) await once(signal!, 'abort');
    expect(signal!.aborted).toBe(true);
    while (!lines.some((line) => line.includes('"status":499'))) await new Promise(setImmediate);
    expect(lines.map((line) => JSON.parse(line).level)).toEqual(['info']);
  });

  it('finishes requests in progress and takes no new ones', async () => {
    const { url, standIn, stop } = await start();
    let release = (): void => undefined;
    standIn.respond = () =>
      new Promise((resolve) => {
        release = () => resolve('{"done":true}');
      });
    const running = ask(url, VALID);
    const kept = open(url);
    kept.write('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(kept, 'data');
    while (standIn.asked.length === 0) await new Promise(setImmediate);
    const stopped = stop();
    expect(await ask(url, VALID).catch(({ code }) => code)).toBe('ECONNREFUSED');
    release();
    const reply = await running;
    expect([reply.status, reply.text, reply.headers.connection]).toEqual([200, '{"done":true}', 'close']);
    expect(await stopped).toBe(true);
  });

  it('cuts what does not end', async () => {
    const { url, standIn, stop } = await start({ limits: { drainMs: 20 } });
    standIn.respond = () => new Promise(() => undefined);
    const cut = ask(url, VALID).catch(({ code }) => code);
    while (standIn.asked.length === 0) await new Promise(setImmediate);
    expect(await stop()).toBe(false);
    expect(await cut).toBe('ECONNRESET');
  });

  it('tells that a port is taken', async () => {
    const { url } = await start();
    expect(await codeOf(() => start({ port: Number(new URL(url).port) }))).toBe('LISTEN_FAILED');
  });
});
