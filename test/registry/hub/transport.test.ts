import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { hubFetch } from '../../../registry/hub/fetch.js';
import { type HubOverrides, hubSettings } from '../../../registry/hub/settings.js';
import { HubTransport, type TransportOptions } from '../../../registry/hub/transport.js';
import { html } from '../../hub/replies.js';
import { TestHub } from '../../hub/server.js';

const TOKEN = 'hf_abcdefghijklmnop';
const REPO = 'owner/model';

let hub: TestHub;
let waits: number[];
beforeAll(async () => {
  hub = await TestHub.start();
});
afterAll(() => hub.close());
afterEach(() => hub.reset());

async function transport(overrides: HubOverrides = {}, options: Partial<TransportOptions> = {}): Promise<HubTransport> {
  waits = [];
  const clock = {
    now: () => Date.parse('2026-01-01T00:00:00Z'),
    sleep: async (ms: number) => {
      waits.push(ms);
    },
  };
  const settings = hubSettings({}, { endpoint: hub.url, ...overrides });
  return new HubTransport(settings, { fetch: await hubFetch(undefined), clock, ...options });
}

const readAll = async (one: HubTransport, path: string): Promise<string> => {
  const response = await one.get(one.url(path.split('/')));
  const chunks: Uint8Array[] = [];
  for (let chunk = await response.next(); chunk; chunk = await response.next()) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
};

const failure = (promise: Promise<unknown>): Promise<Error & Record<string, unknown>> =>
  promise.then(
    () => Promise.reject(new Error('nothing was thrown')),
    (error) => error,
  );

describe('get', () => {
  test('reads a file and percent-encodes its path', async () => {
    const name = 'a b/ü#?%2F.txt';
    const { sha } = hub.repository(REPO).commit({ [name]: 'hello' });
    expect(await readAll(await transport(), `${REPO}/resolve/${sha}/${name}`)).toBe('hello');
    expect(hub.log()).toEqual([`GET /owner/model/resolve/${sha}/a%20b/%C3%BC%23%3F%252F.txt`]);
  });

  test('asks for no compression', async () => {
    const { sha } = hub.repository(REPO).commit({ a: '1' });
    await readAll(await transport(), `${REPO}/resolve/${sha}/a`);
    expect(hub.arrivals[0]?.headers['accept-encoding']).toBe('identity');
  });

  test('works below an endpoint with a path', async () => {
    const endpoint = `${hub.url}/mirror/hf/`;
    const one = await transport({ endpoint });
    await failure(one.get(one.url(['owner', 'model'])));
    expect(hub.log()).toEqual(['GET /mirror/hf/owner/model']);
  });

  // F17, F19: large files come from another origin, which must not see the token.
  test('sends the token to the own origin only, also after a redirect', async () => {
    const repository = hub.repository(REPO);
    repository.token = TOKEN;
    const { sha } = repository.commit({ 'model.safetensors': 'weights' });
    expect(await readAll(await transport({ token: TOKEN }), `${REPO}/resolve/${sha}/model.safetensors`)).toBe(
      'weights',
    );
    expect(hub.arrivals.map(({ at, headers }) => [at, headers.authorization])).toEqual([
      ['hub', `Bearer ${TOKEN}`],
      ['content', undefined],
    ]);
  });

  test('sends no token after a redirect that comes back by another name of the host', async () => {
    const back = hub.url.replace('127.0.0.1', 'localhost');
    hub.failNext(/first/, { kind: 'reply', status: 307, headers: { location: `${back}/second` } });
    await failure(readAll(await transport({ token: TOKEN }), 'first'));
    expect(hub.arrivals.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${TOKEN}`, undefined]);
  });

  test('follows relative redirects', async () => {
    const { sha } = hub.repository(REPO).commit({ a: 'moved' });
    hub.failNext(/first/, { kind: 'reply', status: 308, headers: { location: `/${REPO}/resolve/${sha}/a` } });
    expect(await readAll(await transport(), 'first')).toBe('moved');
  });

  test.each([undefined, '', 'http://', 'ftp://host/file', 'file:///etc/passwd', 'javascript:1'])(
    'refuses a redirect to %j',
    async (location) => {
      hub.failNext(/x/, { kind: 'reply', status: 302, headers: { location } });
      expect(await failure(readAll(await transport(), 'x'))).toMatchObject({ code: 'HUB_REDIRECT' });
    },
  );

  test('refuses a redirect from https to http, as a sign-in page makes it', async () => {
    const fetch: TransportOptions['fetch'] = async () => ({
      status: 302,
      headers: new Headers({ location: 'http://portal.example/login?token=1' }),
      body: null,
    });
    const error = await failure(readAll(await transport({ endpoint: 'https://hub.example' }, { fetch }), 'x'));
    expect(error).toMatchObject({ code: 'HUB_REDIRECT', found: 'http://portal.example' });
  });

  test('refuses redirects without end', async () => {
    hub.failAlways(/loop/, { kind: 'reply', status: 302, headers: { location: '/loop' } });
    expect(await failure(readAll(await transport(), 'loop'))).toMatchObject({ code: 'HUB_REDIRECT' });
    expect(hub.arrivals).toHaveLength(6);
  });

  test.each([
    [401, 'HUB_ACCESS', false],
    [403, 'HUB_ACCESS', false],
    [404, 'HUB_NOT_FOUND', false],
    [410, 'HUB_STATUS', false],
    [416, 'HUB_STATUS', false],
    [204, 'HUB_STATUS', false],
    [429, 'HUB_RATE_LIMITED', true],
    [500, 'HUB_SERVER', true],
    [503, 'HUB_SERVER', true],
  ])('tells status %d as %s', async (status, code, transient) => {
    hub.failNext(/x/, { kind: 'reply', status, headers: { 'x-error-code': 'EntryNotFound' } });
    const error = await failure(readAll(await transport(), 'x'));
    expect(error).toMatchObject({ code, transient, where: `${hub.url}/x`, found: `${status} EntryNotFound` });
  });

  // C03: what a server says must not reach a terminal as it is.
  test('does not repeat what a hostile error header says', async () => {
    hub.failNext(/x/, { kind: 'reply', status: 404, headers: { 'x-error-code': `${'A'.repeat(500)} evil` } });
    expect(await failure(readAll(await transport(), 'x'))).toMatchObject({ code: 'HUB_NOT_FOUND', found: 404 });
  });

  // F05: no socket, whatever the cache has.
  test('opens no socket offline', async () => {
    const fetch = () => Promise.reject(new Error('a socket was opened'));
    const one = await transport({ offline: true }, { fetch });
    expect(await failure(readAll(one, 'x'))).toMatchObject({ code: 'OFFLINE' });
    expect(waits).toEqual([]);
  });

  test('tells a closed port by the endpoint and the system code', async () => {
    const other = await TestHub.start();
    const endpoint = other.url;
    await other.close();
    const error = await failure(readAll(await transport({ endpoint, token: TOKEN }), 'x'));
    expect(error).toMatchObject({
      code: 'HUB_UNREACHABLE',
      found: 'ECONNREFUSED',
      where: `${endpoint}/x`,
      transient: true,
    });
    expect(error.message).toContain(endpoint);
  });

  // F15: silence before the headers and inside the body.
  test('gives up after a silence and names the URL without its query', async () => {
    const { sha } = hub.repository(REPO).commit({ 'model.safetensors': 'x'.repeat(1000) });
    hub.failAlways(/lfs/, { kind: 'stall', after: 300 });
    const one = await transport({}, { inactivityMs: 40 });
    const error = await failure(readAll(one, `${REPO}/resolve/${sha}/model.safetensors`));
    expect(error).toMatchObject({ code: 'HUB_TIMEOUT', transient: true });
    expect(JSON.stringify(error) + error.message).not.toMatch(/signature|secret/);

    const silent = await transport({}, { inactivityMs: 40, fetch: () => new Promise(() => {}) });
    expect(await failure(readAll(silent, 'x'))).toMatchObject({ code: 'HUB_TIMEOUT' });
  });

  test('stops with the reason of the caller', async () => {
    const { sha } = hub.repository(REPO).commit({ a: 'x'.repeat(1000) });
    const controller = new AbortController();
    const one = await transport({}, { signal: controller.signal });
    hub.failAlways(/resolve/, { kind: 'stall', after: 300 });
    const response = await one.get(one.url([...REPO.split('/'), 'resolve', sha, 'a']));
    await response.next();
    const reason = new Error('enough');
    const read = failure(response.next());
    controller.abort(reason);
    expect(await read).toBe(reason);
    expect(await failure(one.get(one.url(['x'])))).toBe(reason);
  });
});

describe('json', () => {
  // F13
  test('waits and repeats after 429 and 5xx', async () => {
    const { sha } = hub.repository(REPO).commit({ a: '1' });
    hub.failNext(
      /tree/,
      { kind: 'reply', status: 429, headers: { 'retry-after': '7' } },
      { kind: 'reply', status: 429, headers: { 'retry-after': 'Thu, 01 Jan 2026 00:00:09 GMT' } },
      { kind: 'reply', status: 502 },
    );
    const one = await transport();
    const { value } = await one.json(one.url(['api', 'models', 'owner', 'model', 'tree', sha]), 1 << 20);
    expect(value).toMatchObject([{ path: 'a' }]);
    expect(waits).toEqual([7000, 9000, 2000]);
  });

  test('repeats after a connection that breaks before and inside the reply', async () => {
    const { sha } = hub.repository(REPO).commit({ a: '1' });
    hub.failNext(/tree/, { kind: 'cut' }, { kind: 'cut', after: 5 });
    const one = await transport();
    await one.json(one.url(['api', 'models', 'owner', 'model', 'tree', sha]), 1 << 20);
    expect(hub.arrivals).toHaveLength(3);
  });

  // F13: other 4xx are answers, not accidents.
  test.each([400, 401, 404, 416])('does not repeat after %d', async (status) => {
    hub.failAlways(/x/, { kind: 'reply', status });
    const one = await transport();
    await failure(one.json(one.url(['x']), 100));
    expect(hub.arrivals).toHaveLength(1);
    expect(waits).toEqual([]);
  });

  test('says how long the hub asked to wait when that is too long', async () => {
    hub.failAlways(/x/, { kind: 'reply', status: 429, headers: { 'retry-after': '86400' } });
    const one = await transport();
    const error = await failure(one.json(one.url(['x']), 100));
    expect(error).toMatchObject({ code: 'HUB_RATE_LIMITED', retryAfter: 86_400_000 });
    expect(error.message).toContain('86400 s');
    expect(hub.arrivals).toHaveLength(1);
  });

  // F01
  test('tells a web page from other bodies that are not JSON', async () => {
    hub.failNext(/x/, { kind: 'reply', status: 200, body: html }, { kind: 'reply', status: 200, body: '[1,' });
    const one = await transport();
    expect(await failure(one.json(one.url(['x']), 1000))).toMatchObject({ code: 'HUB_HTML' });
    expect(await failure(one.json(one.url(['x']), 1000))).toMatchObject({ code: 'HUB_LISTING' });
  });

  test('stops at the size limit', async () => {
    hub.failNext(/x/, { kind: 'reply', status: 200, body: '"'.padEnd(5000) });
    const one = await transport();
    expect(await failure(one.json(one.url(['x']), 1000))).toMatchObject({ code: 'HUB_LISTING' });
  });

  // F17
  test('keeps the token out of every error', async () => {
    const repository = hub.repository(REPO);
    repository.token = 'another';
    const { sha } = repository.commit({ a: '1' });
    hub.failNext(/unreachable/, { kind: 'cut' }, { kind: 'cut' }, { kind: 'cut' }, { kind: 'cut' });
    const one = await transport({ token: TOKEN });
    for (const path of [`${REPO}/resolve/${sha}/a`, 'unreachable', 'none']) {
      const error = await failure(readAll(one, path));
      const { inspect } = await import('node:util');
      expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(TOKEN.slice(0, 8));
    }
  });
});
