import { findModel } from '../../registry/models.js';
import type { PoolStatus } from './pool.js';
import type { ModelState } from './slot.js';
import { AUTO, AUTO_MODELS, type Offer } from './target.js';

export interface HealthFacts {
  readonly status: PoolStatus;
  readonly offer: Offer;
  readonly device: string;
  readonly version: string;
}

/** True when the server's default can answer now. */
export function isReady({ status, offer }: HealthFacts): boolean {
  const needed = offer.defaultModel === AUTO ? AUTO_MODELS : [offer.defaultModel];
  return needed.every((name) => status.models.get(name)?.status === 'ready');
}

/** One word for the whole: a server that answers at all is `ok`, whatever its models do. */
export function overallStatus({ status }: HealthFacts): 'ok' | 'warming' | 'unavailable' {
  const states = Array.from(status.models.values(), (state) => state.status);
  if (states.includes('ready')) return 'ok';
  return states.includes('warming') ? 'warming' : 'unavailable';
}

/** The body of `/health` for a caller who may know everything. */
export function healthBody(facts: HealthFacts): string {
  const { status, offer, device, version } = facts;
  const models = [...status.models];
  const ready = models.filter(([, state]) => state.status === 'ready');
  return JSON.stringify({
    status: overallStatus(facts),
    version,
    ready: isReady(facts),
    default_model: offer.defaultModel,
    loaded: ready.map(([name]) => name).sort(),
    revisions: Object.fromEntries(ready.map(([name]) => [name, findModel(name).revision])),
    device,
    models: Object.fromEntries(models.map(([name, state]) => [name, withoutAne(state)])),
    ane: Object.fromEntries(models.map(([name, state]) => [name, aneStatus(state)])),
    queue: { waiting: status.queued, running: status.running, workers: status.workers },
  });
}

function withoutAne(state: ModelState): object {
  if (state.status !== 'ready') return state;
  const { ane: _, ...own } = state;
  return own;
}

const aneStatus = (state: ModelState): object => (state.status === 'ready' ? state.ane : state);

/** The body of `/v1/models`. */
export function modelsBody({ status, offer }: HealthFacts): string {
  const isLoaded = (name: string): boolean => status.models.get(name)?.status === 'ready';
  const entry = (name: string, description: string, loaded: boolean) => ({
    name,
    description,
    release_date: '',
    loaded,
    default: name === offer.defaultModel,
  });
  const entries = offer.models.map((name) => {
    const { repo, revision, encoder, maxLen } = findModel(name);
    return entry(name, `${repo}@${revision.slice(0, 12)} (${encoder}, ${maxLen} tokens)`, isLoaded(name));
  });
  if (offer.defaultModel === AUTO)
    entries.unshift(entry(AUTO, 'laya for English, laya-multilingual otherwise', AUTO_MODELS.every(isLoaded)));
  return JSON.stringify({ models: entries });
}
