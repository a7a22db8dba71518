import { describe, expect, it } from '@jest/globals';
import { hostOf, isLoopback, isLoopbackRequest, isOwnOrigin } from '../../../runtime/serve/loopback.js';

// Fault S12: one function decides for the bound address and for the Host header.
describe('isLoopback', () => {
  it.each(['localhost', 'LOCALHOST', '127.0.0.1', '127.0.0.2', '127.255.255.254', '::1', '0:0:0:0:0:0:0:1'])(
    'takes %s',
    (host) => expect(isLoopback(host)).toBe(true),
  );

  it.each([
    ...['evil.example', 'localhost.', 'localhost.evil.example', '127.0.0.1.evil.example', '', ' ', '0.0.0.0', '::'],
    ...['127.1', '0177.0.0.1', '0x7f.0.0.1', '2130706433', '::ffff:127.0.0.1', '::ffff:7f00:1', '::1%lo', '[::1]'],
    ...['128.0.0.1', '10.0.0.1', '::2', '127.0.0.256', '127.0.0.1 '],
  ])('does not take %p', (host) => expect(isLoopback(host)).toBe(false));
});

describe('hostOf', () => {
  it.each([
    ['localhost', 'localhost'],
    ['localhost:8642', 'localhost'],
    ['127.0.0.1:1', '127.0.0.1'],
    ['[::1]', '::1'],
    ['[::1]:8642', '::1'],
  ])('reads %s', (authority, host) => expect(hostOf(authority)).toBe(host));

  it.each([
    '[::1',
    '[::1]x',
    '::1',
    '127.0.0.1:abc',
    '127.0.0.1:',
    '127.0.0.1:99999',
    'a b',
    'user@localhost',
    'a:1:2',
    '',
  ])('refuses %p', (authority) => expect(hostOf(authority)).toBeUndefined());
});

describe('isLoopbackRequest', () => {
  it('wants exactly one Host, in any case', () => {
    expect(isLoopbackRequest(['hOST', 'localhost:8642'])).toBe(true);
    expect(isLoopbackRequest([])).toBe(false);
    expect(isLoopbackRequest(['Host', 'localhost', 'host', 'localhost'])).toBe(false);
    expect(isLoopbackRequest(['Host', 'localhost', 'host', 'evil.example'])).toBe(false);
    expect(isLoopbackRequest(['X', 'localhost', 'host', 'localhost.'])).toBe(false);
  });
});

describe('isOwnOrigin', () => {
  const call = (origin: string, host = '127.0.0.1:8642'): boolean => isOwnOrigin(['Host', host, 'Origin', origin]);

  it('lets programs through, which send none', () => expect(isOwnOrigin(['Host', 'localhost'])).toBe(true));

  it.each([
    ['http://127.0.0.1:8642', '127.0.0.1:8642'],
    ['HTTP://LocalHost:8642', 'localhost:8642'],
    ['http://localhost', 'localhost:80'],
    ['https://laya.example', 'laya.example'],
    ['https://laya.example:443', 'laya.example'],
  ])('takes %s for %s', (origin, host) => expect(call(origin, host)).toBe(true));

  it.each([
    ...['null', '', 'http://evil.example', 'http://localhost:8642', 'http://127.0.0.1:3000', 'http://127.0.0.1'],
    ...[
      'chrome-extension://abc',
      'http://127.0.0.1:8642/path',
      'http://user@127.0.0.1:8642',
      'file://',
      '127.0.0.1:8642',
    ],
  ])('refuses %p', (origin) => expect(call(origin)).toBe(false));

  it('refuses two origins', () => {
    const own = 'http://localhost';
    expect(isOwnOrigin(['Host', 'localhost', 'Origin', own, 'Origin', own])).toBe(false);
  });
});
