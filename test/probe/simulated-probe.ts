/**
 * SIMULATED laya-probe, for tests only: speaks docs/probe-protocol.md and says `core_ml: simulated`, so no client takes
 * its answers for Apple evidence unless a test tells it to. Models run on the stand-in's rule, or on the portable
 * executor. Faults are switched on in the environment variable SIMULATED_PROBE (see switches.ts).
 */
import { runCommand } from './simulated-commands.js';
import { serve } from './simulated-session.js';
import { readSwitches } from './switches.js';

/** @public The bundle that tests start calls it (programs.ts). */
export async function main(): Promise<void> {
  const args = process.argv.slice(2);
  const switches = readSwitches(process.env.SIMULATED_PROBE);
  if (args[0] === 'serve') await serve(args.slice(1), switches);
  else await runCommand(args, switches);
}
