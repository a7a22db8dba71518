import { openContext, printData } from '../edge.js';
import type { GlobalOptions } from '../options.js';
import { hereToolchain, type ToolchainOptions } from '../toolchain/here.js';
import { installTools as install } from '../tools/all.js';

/** `install-tools`: everything that a build needs, ready before the first one. */
export async function installTools(options: GlobalOptions & ToolchainOptions): Promise<void> {
  const context = openContext(options);
  const toolchain = hereToolchain(options, context);
  await install(toolchain, context);
  const own = toolchain.kind === 'apple' ? 'laya-probe' : 'the compiler';
  await printData(`the conversion environment and ${own} are in ${context.tools}`);
}
