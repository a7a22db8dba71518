import { AneDevice, type AneDeviceOptions } from './device.js';
import { type AneStartOptions, startAne } from './session.js';

/** The Neural Engine for one model; its first start has begun. */
export function openAneDevice({ warn, ...options }: AneStartOptions & Pick<AneDeviceOptions, 'warn'>): AneDevice {
  return new AneDevice({ start: (signal) => startAne(options, signal), now: options.now, warn });
}
