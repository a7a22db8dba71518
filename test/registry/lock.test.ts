import { existsSync, mkdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { type LockHolder, type LockOptions, lockTarget } from '../../registry/lock.js';
import { breakLock, LockFolderSystem } from '../../registry/lock-folder.js';
import { lockPath } from '../../registry/paths.js';
import { bundle, ended, lineOf, startChild } from '../child.js';
import { codeOf, workspace } from '../workspace.js';
import { KEY } from './artifact.js';

const folder = workspace();
const HOLDER = bundle('registry/children/lock.ts');
const options = (change: Partial<LockOptions> = {}): LockOptions => ({
  signal: new AbortController().signal,
  now: () => new Date(),
  patience: 0,
  ...change,
});
const folderOf = (root: string): string => `${lockPath(root, KEY)}.d`;
const recordOf = (root: string): string => `${lockPath(root, KEY)}.holder.json`;

/** A process that holds the lock of the root. */
async function holder(root: string) {
  const child = startChild(HOLDER, [root]);
  await lineOf(child, 'held');
  return child;
}

/** Makes the lock look as if its holder had not renewed it for so long. */
function age(root: string, seconds: number): void {
  const then = Date.now() / 1000 - seconds;
  utimesSync(folderOf(root), then, then);
}

describe('lockTarget', () => {
  // R11
  it('lets one process in at a time and names the holder to the others', async () => {
    const root = folder();
    const child = await holder(root);
    const told: (LockHolder | undefined)[] = [];
    const error = await lockTarget(root, KEY, options({ onWait: (one) => told.push(one) })).catch((one) => one);
    const expected = { pid: child.pid, host: hostname(), since: '2026-01-02T03:04:05.000Z' };
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', found: expected });
    expect(error.hint).toContain(String(child.pid));
    expect(told).toEqual([expected]);
    child.stdin!.end();
    expect((await ended(child)).code).toBe(0);
    await (await lockTarget(root, KEY, options())).release();
    expect(existsSync(folderOf(root))).toBe(false);
  });

  it('makes a second builder of the same process wait, too', async () => {
    const root = folder();
    const first = await lockTarget(root, KEY, options());
    const second = lockTarget(root, KEY, options({ patience: 60_000, onWait: () => void first.release() }));
    await (await second).release();
  });

  // The heartbeat would let a dead holder's lock stand for half a minute.
  it.each(['SIGKILL', 'SIGSTOP'] as const)(
    'takes over from a holder after %s when it is dead, not before',
    async (name) => {
      const root = folder();
      const child = await holder(root);
      child.kill(name);
      if (name === 'SIGKILL') await ended(child);
      const taken = await codeOf(async () => (await lockTarget(root, KEY, options())).release());
      expect(taken).toBe(name === 'SIGKILL' ? 'no error' : 'LOCK_TIMEOUT');
      child.kill('SIGKILL');
    },
  );

  it('does not break a fresh lock whose record still names the dead holder before', async () => {
    const root = folder();
    const child = await holder(root);
    child.kill('SIGKILL');
    await ended(child);
    rmSync(folderOf(root), { recursive: true });
    mkdirSync(folderOf(root));
    expect(await codeOf(() => lockTarget(root, KEY, options()))).toBe('LOCK_TIMEOUT');
  });

  // R04: stopped, asleep or blocked for longer than the others wait.
  it('tells a holder that was stopped that its lock is gone, and leaves the new one alone', async () => {
    const root = folder();
    const first = await lockTarget(root, KEY, options());
    await first.assertHeld();
    age(root, 60);
    const second = await lockTarget(root, KEY, options());
    expect(await codeOf(() => first.assertHeld())).toBe('LOCK_LOST');
    await first.release();
    await second.assertHeld();
    await second.release();
  });

  it('recovers a lock that nobody took although it was not renewed in time', async () => {
    const root = folder();
    const lock = await lockTarget(root, KEY, options());
    age(root, 60);
    await lock.assertHeld();
    await lock.release();
  });

  it.each([
    ['a thief that removes the folder', (root: string) => rmSync(folderOf(root), { recursive: true })],
    [
      'a thief that makes the folder anew',
      (root: string) => {
        rmSync(folderOf(root), { recursive: true });
        mkdirSync(folderOf(root));
      },
    ],
    ['a record of another holder', (root: string) => writeFileSync(recordOf(root), '{"pid": 1, "token": "x"}')],
  ])('notices %s', async (_name, steal) => {
    const root = folder();
    const lock = await lockTarget(root, KEY, options());
    steal(root);
    expect(await codeOf(() => lock.assertHeld())).toBe('LOCK_LOST');
    await lock.release();
  });

  it.each(['', '{', '[]', '{"pid": "x"}', '{"pid": -1, "lock": {}}'])(
    'is not misled by the record %j',
    async (text) => {
      const root = folder();
      const lock = await lockTarget(root, KEY, options());
      writeFileSync(recordOf(root), text);
      await lock.assertHeld();
      expect(await codeOf(() => lockTarget(root, KEY, options()))).toBe('LOCK_TIMEOUT');
      await lock.release();
    },
  );

  // A clock that was set back leaves locks from the future; only the holder's death ends them.
  it("takes a dead holder's lock from the future", async () => {
    const root = folder();
    const child = await holder(root);
    age(root, -86_400);
    expect(await codeOf(() => lockTarget(root, KEY, options()))).toBe('LOCK_TIMEOUT');
    child.kill('SIGKILL');
    await ended(child);
    await (await lockTarget(root, KEY, options())).release();
  });

  it('stops waiting when it is told to stop', async () => {
    const root = folder();
    const lock = await lockTarget(root, KEY, options());
    const controller = new AbortController();
    const onWait = (): void => controller.abort(new Error('stop'));
    const waiting = lockTarget(root, KEY, options({ patience: 60_000, signal: controller.signal, onWait }));
    await expect(waiting).rejects.toThrow('stop');
    await lock.release();
  });
});

describe('LockFolderSystem', () => {
  // R03: both see a stale lock; the slow one must not remove what the quick one has made since.
  it('removes the lock that was looked at, not the one that took its place', async () => {
    const path = `${folder()}/lock.d`;
    mkdirSync(path);
    const slow = new LockFolderSystem();
    await new Promise((resolve) => slow.stat(path, resolve));
    rmSync(path, { recursive: true });
    mkdirSync(path);
    utimesSync(path, 1, 1);
    const fresh = statSync(path, { bigint: true });
    expect(await new Promise((resolve) => slow.rmdir(path, resolve))).toBeNull();
    expect(statSync(path, { bigint: true }).birthtimeNs).toBe(fresh.birthtimeNs);
    slow.rmdirSync(path);
    expect(existsSync(path)).toBe(true);
  });

  it('lets one of many remove a stale lock', async () => {
    const path = `${folder()}/lock.d`;
    mkdirSync(path);
    const { ino } = statSync(path, { bigint: true });
    const broken = await Promise.all(Array.from({ length: 8 }, () => breakLock(path, (found) => found.ino === ino)));
    expect(broken.filter(Boolean)).toHaveLength(1);
  });
});

describe('the lock of the Python runtime', () => {
  const EXLOCK = 0x20;
  const system = (openFile: (path: string, flags: number) => Promise<FileHandle>) => ({
    platform: 'darwin' as const,
    open: openFile,
  });

  it('is taken where open(2) takes it, says who has it, and is given back', async () => {
    const root = folder();
    const flags: number[] = [];
    const opened: FileHandle[] = [];
    const peer = system(async (path, wanted) => {
      flags.push(wanted);
      const file = await open(path, wanted & ~EXLOCK, 0o644);
      opened.push(file);
      return file;
    });
    const lock = await lockTarget(root, KEY, options({ peer, now: () => new Date('2026-01-02T03:04:05Z') }));
    expect(flags.map((one) => one & EXLOCK)).toEqual([EXLOCK]);
    const { readFileSync } = await import('node:fs');
    const record = JSON.parse(readFileSync(lockPath(root, KEY), 'utf8'));
    expect(record).toEqual({ pid: process.pid, since: '2026-01-02T03:04:05.000Z' });
    await lock.release();
    await turn();
    await expect(opened[0]!.stat()).rejects.toThrow();
  });

  it('is waited for, and its holder is named', async () => {
    const root = folder();
    const lock = await lockTarget(root, KEY, options());
    await lock.release();
    writeFileSync(lockPath(root, KEY), '{"pid": 4242, "since": "2026-05-06T07:08:09+00:00"}');
    const busy = system(() => Promise.reject(Object.assign(new Error('busy'), { code: 'EAGAIN' })));
    const told: (LockHolder | undefined)[] = [];
    const waiting = lockTarget(root, KEY, options({ peer: busy, onWait: (one) => told.push(one) }));
    expect(await codeOf(() => waiting)).toBe('LOCK_TIMEOUT');
    expect(told).toEqual([{ pid: 4242, host: hostname(), since: '2026-05-06T07:08:09+00:00' }]);
    // Ours was given back.
    await (await lockTarget(root, KEY, options())).release();
  });

  it('is left where the file system has no such locks', async () => {
    const root = folder();
    const none = system(() => Promise.reject(Object.assign(new Error('no locks'), { code: 'ENOTSUP' })));
    await (await lockTarget(root, KEY, options({ peer: none }))).release();
  });
});
