import { describe, expect, test } from '@jest/globals';
import { hubSettings, parseEndpoint, parseToken } from '../../../registry/hub/settings.js';

const thrown = (run: () => unknown): Error & Record<string, unknown> => {
  try {
    run();
  } catch (error) {
    return error as Error & Record<string, unknown>;
  }
  throw new Error('nothing was thrown');
};

describe('the endpoint', () => {
  // F19: mirrors are written in many ways.
  test.each([
    [undefined, 'https://huggingface.co'],
    ['', 'https://huggingface.co'],
    ['  \t', 'https://huggingface.co'],
    ['https://mirror.example/', 'https://mirror.example'],
    ['https://mirror.example///', 'https://mirror.example'],
    [' http://mirror.example:8080/hf/ ', 'http://mirror.example:8080/hf'],
    ['HTTPS://Mirror.Example', 'https://mirror.example'],
  ])('%j is read as %s', (value, endpoint) => {
    expect(parseEndpoint(value)).toBe(endpoint);
  });

  test.each(['mirror.example', 'ftp://mirror.example', 'https://', 'https://a?x=1', 'https://a#b', '//mirror.example'])(
    '%j is refused',
    (value) => {
      expect(thrown(() => parseEndpoint(value))).toMatchObject({ code: 'HUB_ENDPOINT', where: 'HF_ENDPOINT' });
    },
  );

  test('with credentials is refused without quoting them', () => {
    const error = thrown(() => parseEndpoint('https://user:pa55word@mirror.example'));
    expect(error).toMatchObject({ code: 'HUB_ENDPOINT' });
    expect(JSON.stringify(error) + error.message).not.toContain('pa55word');
  });
});

describe('the token', () => {
  test.each([
    [undefined, undefined],
    ['', undefined],
    [' \n', undefined],
    ['  hf_abc\n', 'hf_abc'],
    ['no-prefix', 'no-prefix'],
  ])('%j is read as %j', (value, token) => {
    expect(parseToken(value)).toBe(token);
  });

  // F17: a token that can't stand in a header is refused before Node quotes it.
  test.each([
    'hf_secret\nrest-of-it',
    'hf_secret\trest',
    'hf_sec\u200bret',
    'hf_se cret',
    'hf_s\u00e9cret',
    'hf_\u0000secret',
  ])('%j is refused without quoting it', (value) => {
    const error = thrown(() => parseToken(value));
    expect(error).toMatchObject({ code: 'HUB_TOKEN', where: 'HF_TOKEN' });
    expect(JSON.stringify(error) + error.message + error.stack).not.toContain(value.slice(0, 6));
  });
});

describe('offline', () => {
  test.each([
    [{ HF_HUB_OFFLINE: '1' }, 'HF_HUB_OFFLINE'],
    [{ HF_HUB_OFFLINE: 'Yes' }, 'HF_HUB_OFFLINE'],
    [{ HF_HUB_OFFLINE: 'true', TRANSFORMERS_OFFLINE: '0' }, 'HF_HUB_OFFLINE'],
    [{ HF_HUB_OFFLINE: '', TRANSFORMERS_OFFLINE: 'on' }, 'TRANSFORMERS_OFFLINE'],
    [{ HF_HUB_OFFLINE: '0', TRANSFORMERS_OFFLINE: '1' }, undefined],
    [{ HF_HUB_OFFLINE: 'no' }, undefined],
    [{}, undefined],
  ])('%j means %j', (env, reason) => {
    expect(hubSettings(env).offline).toBe(reason);
  });

  test('is switched on by the option alone', () => {
    expect(hubSettings({}, { offline: true }).offline).toBeDefined();
    expect(hubSettings({ HF_HUB_OFFLINE: '1' }, { offline: false }).offline).toBe('HF_HUB_OFFLINE');
  });
});

describe('hubSettings', () => {
  test('prefers options to the environment', () => {
    const env = { HF_ENDPOINT: 'https://a.example', HF_TOKEN: 'from-env' };
    expect(hubSettings(env)).toEqual({ endpoint: 'https://a.example', token: 'from-env' });
    expect(hubSettings(env, { endpoint: 'https://b.example', token: 'given' })).toEqual({
      endpoint: 'https://b.example',
      token: 'given',
    });
  });

  // F18: the usual variables, in both spellings.
  test.each([
    [{ HTTPS_PROXY: 'http://p:1' }, { http: '', https: 'http://p:1', variable: 'HTTPS_PROXY' }],
    [
      { https_proxy: 'http://low:1', HTTPS_PROXY: 'http://up:1' },
      { https: 'http://low:1', variable: 'https_proxy' },
    ],
    [{ ALL_PROXY: 'socks5://p:1' }, { http: 'socks5://p:1', https: 'socks5://p:1', variable: 'ALL_PROXY' }],
    [{ http_proxy: 'proxy:3128' }, { http: 'http://proxy:3128', https: '', variable: 'http_proxy' }],
    [{ HTTPS_PROXY: 'http://p:1', NO_PROXY: 'a.example' }, { none: 'a.example' }],
  ])('reads the proxy of %j', (env, proxy) => {
    expect(hubSettings(env).proxy).toMatchObject(proxy);
  });

  test('has no proxy where all variables are blank', () => {
    expect(hubSettings({ HTTPS_PROXY: '', http_proxy: '  ', NO_PROXY: '*' }).proxy).toBeUndefined();
  });

  test('refuses a proxy that is no URL without quoting its credentials', () => {
    const error = thrown(() => hubSettings({ HTTPS_PROXY: 'gopher://user:pa55word@proxy' }));
    expect(error).toMatchObject({ code: 'HUB_PROXY', where: 'HTTPS_PROXY' });
    expect(JSON.stringify(error) + error.message).not.toContain('pa55word');
  });
});
