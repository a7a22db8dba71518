import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Step, Switches } from './switches.js';

/** Waits until the files of a step's gates are there. */
export async function gate(switches: Switches, step: Step): Promise<void> {
  for (const { at, file } of switches.gates) {
    while (at === step && !existsSync(file)) await pause(5);
  }
}
