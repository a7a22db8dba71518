import type { Emit, Event } from './events.js';
import { safeText } from './text.js';

/** How each event reads as a line; undefined where it is no news of its own. */
const LINES: { [K in Event['kind']]: (event: Extract<Event, { kind: K }>) => string | undefined } = {
  stage_started: ({ stage, bucket }) => `${label(bucket)}${stage} ...`,
  stage_ended: ({ stage, bucket, seconds }) => `${label(bucket)}${stage} ${seconds.toFixed(1)} s`,
  progress: ({ label: what, done, total }) =>
    total ? `${what} ${bar(done / total)} ${done}/${total}` : `${what} ${done}`,
  tool_install: ({ tool, detail }) => `installing ${tool}: ${detail}`,
  tool_ready: ({ tool, seconds }) => `${tool} installed in ${seconds.toFixed(1)} s`,
  waiting: ({ what, holder }) => `waiting for ${what}: being built by ${holder}`,
  skipped: ({ bucket, reason }) => `L${bucket}: ${reason}`,
  rejected: ({ bucket, record }) => `L${bucket} refused, see ${record}`,
};

/** Events that a plain log keeps; the others only move the status line of a terminal. */
const LOGGED = new Set<Event['kind']>(['stage_ended', 'tool_ready', 'waiting', 'skipped', 'rejected']);
/** In a plain log a tool's installation speaks at most so often, in milliseconds. */
const QUIET_MS = 5000;

const label = (bucket: number | undefined): string => (bucket === undefined ? '' : `L${bucket} `);

function bar(share: number): string {
  const full = Math.round(Math.min(1, Math.max(0, share)) * 20);
  return `[${'#'.repeat(full)}${'.'.repeat(20 - full)}]`;
}

/** Writes events to stderr: a status line that is redrawn on a terminal, plain lines elsewhere. */
export function consoleEmitter(stream: NodeJS.WriteStream, clock: () => number): Emit {
  let spoke = Number.NEGATIVE_INFINITY;
  return (event) => {
    const line = (LINES[event.kind] as (event: Event) => string | undefined)(event);
    if (line === undefined) return;
    const text = safeText(line);
    if (stream.isTTY) {
      const keep = LOGGED.has(event.kind);
      stream.write(`\r\u001b[2K${text.slice(0, (stream.columns ?? 80) - 1)}${keep ? '\n' : ''}`);
      return;
    }
    const due = LOGGED.has(event.kind) || clock() - spoke >= QUIET_MS;
    if (!due || event.kind === 'stage_started') return;
    spoke = clock();
    stream.write(`${text}\n`);
  };
}
