import { Laya } from '../runtime/laya.js';
import type { Device, GraphChoice } from '../runtime/plan.js';
import type { GlobalOptions } from './options.js';

/** Options of `predict`, for one request and for many. */
export interface PredictOptions extends GlobalOptions {
  readonly context?: string;
  readonly questions?: string;
  readonly input?: string;
  readonly minConfidence?: string;
  readonly device: Device;
  readonly graph?: GraphChoice;
  readonly checkpoint?: string;
}

/** The model that the options ask for. */
export function openLaya(model: string, { device, graph, checkpoint }: PredictOptions): Promise<Laya> {
  return Laya.open(model, {
    device,
    ...(graph === undefined ? {} : { graph }),
    ...(checkpoint === undefined ? {} : { checkpoint }),
  });
}
