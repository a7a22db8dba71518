import type { Context } from '../events.js';
import type { Toolchain } from '../toolchain/toolchain.js';
import { ensurePython } from './python.js';

/** Installs the conversion environment and the toolchain's own tools side by side; the first failure stops the other. */
export async function installTools(toolchain: Toolchain, context: Context): Promise<void> {
  const failed = new AbortController();
  const shared = { ...context, signal: AbortSignal.any([context.signal, failed.signal]) };
  const work = [ensurePython('convert', shared), toolchain.prepare(shared)];
  await Promise.all(work).catch(async (error: unknown) => {
    failed.abort(error);
    await Promise.allSettled(work);
    throw error;
  });
}
