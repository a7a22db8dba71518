import { type IncomingHttpHeaders, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text as readAll } from 'node:stream/consumers';

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface Sent {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
  readonly signal?: AbortSignal;
}

/** One request on a connection of its own. */
export function send(url: string, path: string, { method, headers = {}, body, signal }: Sent = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const options = { method: method ?? (body === undefined ? 'GET' : 'POST'), headers, agent: false as const };
    const call = request(new URL(path, url), { ...options, ...(signal ? { signal } : {}) }, (response) => {
      readAll(response).then(
        (text) => resolve({ status: response.statusCode!, headers: response.headers, text }),
        reject,
      );
    });
    call.on('error', reject);
    call.end(body);
  });
}

/** `POST /v1/systemone` with a JSON body. */
export function ask(url: string, body: string | Buffer, sent: Omit<Sent, 'body'> = {}): Promise<Reply> {
  const headers = { 'Content-Type': 'application/json', ...sent.headers };
  return send(url, '/v1/systemone', { ...sent, headers, body });
}

export const codeIn = (reply: Reply): string => (JSON.parse(reply.text) as { code: string }).code;

/** A bare connection, for bytes that no HTTP client sends. */
export function open(url: string): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  return socket.on('error', () => undefined);
}

/** Sends bytes and gives everything that comes back until the server closes the connection. */
export async function exchange(url: string, bytes: string): Promise<string> {
  const socket = open(url);
  socket.write(bytes);
  let received = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text;
  });
  await new Promise((resolve) => socket.on('close', resolve));
  return received;
}
