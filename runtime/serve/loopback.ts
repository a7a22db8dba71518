import { isIPv4, isIPv6 } from 'node:net';

/**
 * The one loopback test, for the address that is bound and for the Host header: `localhost`, an address of 127.0.0.0/8
 * as four plain decimal numbers, or ::1. Anything that two readers might read differently (`localhost.`, IPv4 inside
 * IPv6, zones, octal or short forms) is not loopback.
 */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase();
  if (name === 'localhost') return true;
  if (isIPv4(name)) return name.startsWith('127.');
  return isIPv6(name) && !/[.%]/.test(name) && new URL(`http://[${name}]/`).hostname === '[::1]';
}

/** The host of a Host header or an origin, without brackets; undefined for anything but `host`, `host:port`, `[v6]:port`. */
export function hostOf(authority: string): string | undefined {
  const [, v6, name, port] = /^(?:\[([0-9a-fA-F:.%]+)\]|([A-Za-z0-9._-]+))(?::([0-9]{1,5}))?$/.exec(authority) ?? [];
  if (port !== undefined && Number(port) > 65535) return undefined;
  return v6 ?? name;
}

/**
 * True when a request may be answered by a server that is bound to loopback: exactly one Host header, and a loopback
 * name in it. A page that got here through its own DNS name sends that name.
 */
export function isLoopbackRequest(rawHeaders: readonly string[]): boolean {
  const hosts = valuesOf(rawHeaders, 'host');
  const host = hosts.length === 1 ? hostOf(hosts[0]!) : undefined;
  return host !== undefined && isLoopback(host);
}

/** True when the request carries no Origin (not a browser's cross-site call), or the server's own. */
export function isOwnOrigin(rawHeaders: readonly string[]): boolean {
  const origins = valuesOf(rawHeaders, 'origin');
  if (origins.length === 0) return true;
  const [, scheme, authority] = /^(https?):\/\/([^/?#@\s]+)$/i.exec(origins[0]!) ?? [];
  if (origins.length > 1 || authority === undefined || hostOf(authority) === undefined) return false;
  const port = scheme?.toLowerCase() === 'https' ? ':443' : ':80';
  const [own] = valuesOf(rawHeaders, 'host');
  const plain = (text: string): string => text.toLowerCase().replace(new RegExp(`${port}$`), '');
  return own !== undefined && plain(authority) === plain(own);
}

/** All values of a header, in the order they were sent; `name` in lower case. */
function valuesOf(rawHeaders: readonly string[], name: string): string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]!.toLowerCase() === name);
}
