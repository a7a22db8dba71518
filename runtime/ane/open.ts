import { AneDevice, type AneDeviceOptions } from './device.js';
import { type AneStartOptions, startAne } from './session.js';

export interface AneOpenOptions extends AneStartOptions, Pick<AneDeviceOptions, 'warn'> {
  /** `required` and `wait` wait for the first start; what it throws counts where nothing else serves. */
  readonly startup: 'required' | 'wait' | 'background';
}

/** The Neural Engine for one model. Throws what the first start threw when it is required; nothing is left running. */
export async function openAneDevice({ warn, startup, ...options }: AneOpenOptions): Promise<AneDevice> {
  const device = new AneDevice({ start: (signal) => startAne(options, signal), now: options.now, warn });
  if (startup === 'background') return device;
  try {
    await device.session();
  } catch (error) {
    if (startup === 'wait') return device;
    await device.close();
    throw error;
  }
  return device;
}
