// Takes a lock, says so, and holds it until its stdin closes: node lock.mjs ROOT
import { once } from 'node:events';
import { lockTarget } from '../../../registry/lock.js';
import { KEY } from '../artifact.js';

const signal = new AbortController().signal;
const lock = await lockTarget(process.argv[2]!, KEY, { signal, now: () => new Date('2026-01-02T03:04:05Z') });
process.stdout.write('held\n');
process.stdin.resume();
await once(process.stdin, 'end');
await lock.release();
