import { spawn } from 'node:child_process';
import type { ProgramUnderTest } from './programs.js';

/** A frame as bytes say it, without any of the client's code. */
export interface RawFrame {
  readonly kind: number;
  readonly id: number;
  readonly payload: Buffer;
}

export interface RawRun {
  readonly frames: readonly RawFrame[];
  /** Bytes of stdout that are no whole frame. */
  readonly rest: Buffer;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Starts a probe, writes bytes to it, ends its input, and gives everything it said. */
export function runRaw(program: ProgramUnderTest, args: readonly string[], input: Uint8Array): Promise<RawRun> {
  const env = { ...program.env } as NodeJS.ProcessEnv;
  const child = spawn(program.executable, args, { env, stdio: ['pipe', 'pipe', 'ignore'] });
  const pieces: Buffer[] = [];
  child.stdout.on('data', (piece: Buffer) => pieces.push(piece));
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ ...split(Buffer.concat(pieces)), code, signal }));
  });
}

function split(bytes: Buffer): { frames: RawFrame[]; rest: Buffer } {
  const frames: RawFrame[] = [];
  let at = 0;
  while (bytes.length - at >= 16 && bytes.toString('latin1', at, at + 4) === 'LAYP') {
    const length = bytes.readUInt32LE(at + 12);
    if (bytes.length - at < 16 + length) break;
    const payload = bytes.subarray(at + 16, at + 16 + length);
    frames.push({ kind: bytes.readUInt32LE(at + 4), id: bytes.readUInt32LE(at + 8), payload });
    at += 16 + length;
  }
  return { frames, rest: bytes.subarray(at) };
}

/** A client's frame with any field changed. */
export function rawFrame(kind: number, id: number, payload: Uint8Array = Buffer.alloc(0), length = payload.length) {
  const header = Buffer.alloc(16);
  header.write('LAYP', 'latin1');
  header[4] = kind;
  header.writeUInt32LE(id, 8);
  header.writeUInt32LE(length, 12);
  return Buffer.concat([header, payload]);
}

export const PREDICT = 16;
export const CANCEL = 17;

/** A request's payload: 64 bytes, then each tensor padded to 64. */
export function rawTensors(tensors: readonly Uint16Array[], model = 0, count = tensors.length): Buffer {
  const prefix = Buffer.alloc(64);
  prefix.writeUInt16LE(model, 0);
  prefix.writeUInt16LE(count, 2);
  const padded = tensors.map((tensor) => {
    const bytes = Buffer.alloc(Math.ceil(tensor.byteLength / 64) * 64);
    bytes.set(new Uint8Array(tensor.buffer, tensor.byteOffset, tensor.byteLength));
    return bytes;
  });
  return Buffer.concat([prefix, ...padded]);
}

export const jsonOf = (frame: RawFrame | undefined): Record<string, unknown> =>
  JSON.parse(frame?.payload.toString('utf8') ?? 'null');

/** The answers of a session in short: `7 RESULT`, `0 FRAME_MAGIC`; without HELLO and READY. */
export function answersOf(run: RawRun): string[] {
  return run.frames.slice(2).map((frame) => `${frame.id} ${frame.kind === 3 ? 'RESULT' : String(jsonOf(frame).code)}`);
}
