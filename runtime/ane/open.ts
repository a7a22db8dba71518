import { AneDevice } from './device.js';
import { type AneStartOptions, startAne } from './session.js';

/** The Neural Engine for one model; its first start has begun. */
export function openAneDevice(options: AneStartOptions): AneDevice {
  return new AneDevice({
    start: (signal) => startAne(options, signal),
    now: options.now,
    warn: (message) => process.emitWarning(message, { type: 'LayaWarning', code: 'ANE_LOST' }),
  });
}
