import type { Context, Event } from '../../pipeline/events.js';
import type { BuildOrder } from '../../pipeline/order.js';
import { portableToolchain } from '../../pipeline/toolchain/portable.js';
import type { Toolchain } from '../../pipeline/toolchain/toolchain.js';
import { findModel } from '../../registry/models.js';
import { toolsRoot } from '../../registry/paths.js';

/** A context over a root of the test's own; the tools are the user's, so that nothing is installed twice. */
export function testContext(root: string, change: Partial<Context> = {}): Context & { readonly events: Event[] } {
  const events: Event[] = [];
  return {
    env: process.env,
    root,
    tools: toolsRoot(process.env),
    offline: false,
    now: () => new Date('2026-01-02T03:04:05Z'),
    signal: new AbortController().signal,
    emit: (event) => void events.push(event),
    ...change,
    events,
  };
}

/** An order for laya-tiny; `toolchain` changes parts of the real one. */
export function testOrder(change: Partial<BuildOrder> = {}, toolchain: Partial<Toolchain> = {}): BuildOrder {
  return {
    model: findModel('laya-tiny'),
    buckets: [64],
    force: false,
    toolchain: { ...portableToolchain(), ...toolchain },
    ...change,
  };
}
