import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Step, Switches } from './switches.js';

/** Waits until the files of a step's gates are there; ends when whoever started this process is gone. */
export async function gate(switches: Switches, step: Step): Promise<void> {
  const parent = process.ppid;
  for (const { at, file } of switches.gates) {
    while (at === step && !existsSync(file)) {
      if (process.ppid !== parent) process.exit(1);
      await pause(5);
    }
  }
}
