import type { ServerResponse } from 'node:http';

/** What a route answers, before faults. A header that is undefined is not sent. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
}

/** One thing that goes wrong with one request. */
export type Fault =
  /** Another answer altogether. */
  | {
      readonly kind: 'reply';
      readonly status: number;
      readonly headers?: Reply['headers'];
      readonly body?: string | Buffer;
    }
  /** Refused before anything is done about the request; every other fault comes after that. */
  | { readonly kind: 'refuse'; readonly status: number; readonly headers?: Reply['headers'] }
  /** The right answer with other headers; undefined drops one, also Content-Length. */
  | { readonly kind: 'headers'; readonly headers: Reply['headers'] }
  /** The connection closes: before anything, or after so many bytes of the body and what `until` waits for. */
  | { readonly kind: 'cut'; readonly after?: number; readonly until?: Promise<unknown> }
  /** Nothing more comes after so many bytes of the body. */
  | { readonly kind: 'stall'; readonly after: number };

export const html = '<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>Please sign in.</body></html>\n';

export const text = (status: number, body: string, headers: Reply['headers'] = {}): Reply => ({
  status,
  headers: { 'content-type': 'text/plain', ...headers },
  body: Buffer.from(body),
});

export const json = (value: unknown, headers: Reply['headers'] = {}, status = 200): Reply => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: Buffer.from(JSON.stringify(value)),
});

/** The hub's way to say what isn't there. */
export const missing = (code: 'RepoNotFound' | 'RevisionNotFound' | 'EntryNotFound'): Reply =>
  text(404, code, { 'x-error-code': code });

/** The part of a content that a Range header asks for. */
export function content(bytes: Buffer, range: string | undefined, headers: Reply['headers']): Reply {
  const asked = /^bytes=(\d+)-(\d*)$/.exec(range ?? '');
  const common = { 'accept-ranges': 'bytes', 'content-type': 'application/octet-stream', ...headers };
  if (!asked) return { status: 200, headers: common, body: bytes };
  const first = Number(asked[1]);
  const last = asked[2] ? Math.min(Number(asked[2]), bytes.length - 1) : bytes.length - 1;
  if (first >= bytes.length) return text(416, '', { 'content-range': `bytes */${bytes.length}` });
  const part = { ...common, 'content-range': `bytes ${first}-${last}/${bytes.length}` };
  return { status: 206, headers: part, body: bytes.subarray(first, last + 1) };
}

/** Sends a reply with its fault. Without a Content-Length the body goes out in chunks. */
export function send(response: ServerResponse, reply: Reply, fault: Fault | undefined, isHead: boolean): void {
  if (fault?.kind === 'cut' && fault.after === undefined) {
    response.destroy();
    return;
  }
  const { status, headers, body } = withFault(reply, fault);
  const all = { 'content-length': String(body.length), ...headers };
  for (const [name, value] of Object.entries(all)) if (value !== undefined) response.setHeader(name, value);
  response.statusCode = status;
  if (isHead) response.end();
  else if (fault?.kind === 'cut') {
    const { until = Promise.resolve() } = fault;
    response.write(body.subarray(0, fault.after), () => void until.then(() => response.destroy()));
  } else if (fault?.kind === 'stall') response.write(body.subarray(0, fault.after));
  else response.end(body);
}

function withFault(reply: Reply, fault: Fault | undefined): Reply {
  if (fault?.kind === 'headers') return { ...reply, headers: { ...reply.headers, ...fault.headers } };
  if (fault?.kind !== 'reply') return reply;
  return { status: fault.status, headers: fault.headers ?? {}, body: Buffer.from(fault.body ?? '') };
}
