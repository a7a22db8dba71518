import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { hubFetch } from '../../../registry/hub/fetch.js';
import { hubSettings } from '../../../registry/hub/settings.js';
import { HubTransport } from '../../../registry/hub/transport.js';
import { TestProxy } from '../../hub/proxy.js';
import { TestHub } from '../../hub/server.js';
import { failure, quickClock } from './fixture.js';

let hub: TestHub;
let proxy: TestProxy;
beforeAll(async () => {
  hub = await TestHub.start();
  proxy = await TestProxy.start();
});
afterAll(async () => {
  await hub.close();
  await proxy.close();
});
afterEach(() => {
  hub.reset();
  proxy.tunnels.length = 0;
  proxy.credentials.length = 0;
});

async function read(env: Record<string, string>): Promise<unknown> {
  const { sha } = hub.repository('owner/model').commit({ 'model.safetensors': '"weights"' });
  const settings = hubSettings(env, { endpoint: hub.url });
  const one = new HubTransport(settings, { fetch: await hubFetch(settings.proxy), ...quickClock() });
  return (await one.json(one.url(['owner', 'model', 'resolve', sha, 'model.safetensors']), 1000)).value;
}

const host = (url: string) => new URL(url).host;

// F18: one dispatcher for every request, redirects to the other origin too.
describe('a proxy', () => {
  test.each(['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy'])('in %s is used for every request', async (name) => {
    expect(await read({ [name]: `http://${proxy.host}` })).toBe('weights');
    expect(proxy.tunnels).toEqual([host(hub.url), host(hub.contentUrl)]);
  });

  test('may be written without a scheme and with credentials', async () => {
    expect(await read({ http_proxy: `user:pa55word@${proxy.host}` })).toBe('weights');
    expect(proxy.credentials).toEqual(Array(2).fill(`Basic ${Buffer.from('user:pa55word').toString('base64')}`));
  });

  test('is not used for hosts in NO_PROXY', async () => {
    for (const none of ['127.0.0.1,localhost', '*', 'other.example, .localhost 127.0.0.1']) {
      expect(await read({ HTTP_PROXY: `http://${proxy.host}`, NO_PROXY: none })).toBe('weights');
    }
    expect(proxy.tunnels).toEqual([]);
  });

  test('is not used when only another protocol has one', async () => {
    expect(await read({ HTTPS_PROXY: 'http://127.0.0.1:9' })).toBe('weights');
  });

  test('that is dead is named by its variable, without its credentials', async () => {
    const dead = await TestProxy.start();
    const address = dead.host;
    await dead.close();
    const error = await failure(read({ HTTP_PROXY: `http://user:pa55word@${address}` }));
    expect(error).toMatchObject({ code: 'HUB_UNREACHABLE', hint: expect.stringContaining('HTTP_PROXY') });
    expect(inspect(error, { depth: 10 }) + JSON.stringify(error)).not.toMatch(/pa55word|dXNlcj/);
  });
});
