import type { IncomingMessage } from 'node:http';
import { HttpError } from './errors.js';

export interface BodyLimits {
  readonly bytes: number;
  /** Milliseconds for the whole body. */
  readonly ms: number;
}

/**
 * Reads a body as UTF-8 text and keeps no more of it than the limit, whatever its declared length says.
 *
 * @throws HttpError BODY_TOO_LARGE, BODY_SLOW, BODY_NOT_JSON for bytes that are not UTF-8, CLIENT_GONE
 */
export async function readBody(incoming: IncomingMessage, limits: BodyLimits): Promise<string> {
  const declared = Number(incoming.headers['content-length'] ?? 0);
  if (declared > limits.bytes) throw tooLarge(limits.bytes);
  const bytes = await collect(incoming, limits);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new HttpError('BODY_NOT_JSON', 'the request body must be UTF-8 text', { cause });
  }
}

function collect(incoming: IncomingMessage, { bytes, ms }: BodyLimits): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let total = 0;
    const timer = setTimeout(() => end(new HttpError('BODY_SLOW', 'the request body was not received in time')), ms);
    const onData = (chunk: Buffer): void => {
      total += chunk.length;
      if (total > bytes) end(tooLarge(bytes));
      else chunks.push(chunk);
    };
    const onEnd = (): void => end();
    const onGone = (): void => end(new HttpError('CLIENT_GONE', 'the client left before its request was complete'));
    const end = (error?: HttpError): void => {
      clearTimeout(timer);
      incoming.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
      if (error === undefined) resolve(Buffer.concat(chunks, total));
      else {
        incoming.pause().on('error', () => undefined);
        reject(error);
      }
    };
    incoming.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  });
}

function tooLarge(bytes: number): HttpError {
  return new HttpError('BODY_TOO_LARGE', 'the request body is too large', { expected: `at most ${bytes} bytes` });
}
