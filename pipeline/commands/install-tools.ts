import { openContext, printData } from '../edge.js';
import type { GlobalOptions } from '../options.js';
import { portableToolchain } from '../toolchain/portable.js';
import { installTools as install } from '../tools/all.js';

/** `install-tools`: everything that a build needs, ready before the first one. */
export async function installTools(options: GlobalOptions): Promise<void> {
  const context = openContext(options);
  await install(portableToolchain(), context);
  await printData(`the conversion environment and the compiler are in ${context.tools}`);
}
