import { appleToolchain } from '../../pipeline/toolchain/apple.js';
import type { Toolchain } from '../../pipeline/toolchain/toolchain.js';
import { ensureCompiler } from '../../pipeline/tools/compiler.js';
import type { UsableProbe } from '../../pipeline/tools/probe.js';
import { simulatedProbe } from '../probe/programs.js';
import type { Switches } from '../probe/switches.js';

/** Limits under which a simulated probe that hangs is found out soon; one that works needs a fraction of them. */
const PATIENCE = { hello: 20_000, load: 20_000, answer: 20_000, close: 20_000, command: 20_000 };

/**
 * For a test file: apple toolchains over simulated probes whose models run on the portable executor and are compiled by
 * the portable compiler. The only way to one: no option or variable of a command leads here.
 */
export function simulatedMac() {
  const simulated = simulatedProbe();
  return (
    switches: Partial<Switches> = {},
    more: { maxRatio?: number; patience?: Partial<typeof PATIENCE>; change?: (probe: UsableProbe) => UsableProbe } = {},
  ): Toolchain => {
    const { change = (probe) => probe, patience = {}, maxRatio } = more;
    return appleToolchain({
      patience: { ...PATIENCE, ...patience },
      ...(maxRatio === undefined ? {} : { maxRatio }),
      probe: {
        check: async () => undefined,
        ensure: async (context) => {
          const { executable: compiler } = await ensureCompiler(context);
          return change(simulated({ models: 'portable', compiler, ...switches }));
        },
      },
    });
  };
}
