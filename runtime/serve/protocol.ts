import type { ProbeSettings } from '../ane/program.js';
import type { Device, GraphChoice } from '../plan.js';
import type { Target } from './target.js';

/** What a worker is started with. */
export interface WorkerOrder {
  readonly models: readonly string[];
  readonly device: Device;
  readonly threads: number;
  readonly graph?: GraphChoice;
  readonly probe?: string | ProbeSettings;
  readonly root?: string;
  readonly checkpoint?: string;
}

/** One request for a worker. The body is the text that the client sent, already within the limits. */
export interface Job {
  readonly id: number;
  readonly body: string;
  readonly target: Target;
  readonly requestId: string;
  /** When it came, in milliseconds since 1970. */
  readonly since: number;
}

export type ToWorker =
  | { readonly kind: 'job'; readonly job: Job }
  /** Nobody waits for the job any more; its outcome is still told. */
  | { readonly kind: 'cancel'; readonly id: number }
  | { readonly kind: 'close' };

/** How the Neural Engine does for a model, in the words of `/health`. */
export interface AneHealth {
  readonly status: 'warming' | 'ready' | 'unavailable';
  readonly reason?: string;
}

/** Where a model runs, learnt from its first answer. */
export interface Placement {
  readonly device: string;
  readonly reason: string;
  readonly revision: string;
  readonly ane: AneHealth;
}

/** What logs and metrics tell of an answer. */
export interface AnswerFacts {
  readonly model: string;
  readonly device: string;
  readonly questions: number;
  readonly inputTokens: number;
  readonly truncated: boolean;
  readonly latencyMs: number;
  /** From its arrival to the start of its work. */
  readonly queueMs: number;
}

/** Milliseconds since 1970 with a fraction: the same clock in all threads. */
export const sharedNow = (): number => performance.timeOrigin + performance.now();

/** An error as it crosses from a worker. */
export interface Fault {
  /** `lost`: the device that was asked for does not serve now. */
  readonly kind: 'refused' | 'unavailable' | 'lost' | 'failed';
  readonly code: string;
  /** For the client where `kind` is `refused`, else for the log only. */
  readonly message: string;
  readonly where?: string;
  readonly expected?: unknown;
  readonly hint?: string;
}

export type FromWorker =
  | { readonly kind: 'ready'; readonly model: string; readonly placement: Placement }
  | { readonly kind: 'unavailable'; readonly model: string; readonly fault: Fault }
  | { readonly kind: 'ane'; readonly model: string; readonly ane: AneHealth }
  /** Processes that the worker has now, which end with it. */
  | { readonly kind: 'processes'; readonly pids: readonly number[] }
  | { readonly kind: 'opened' }
  | { readonly kind: 'answer'; readonly id: number; readonly body: string; readonly facts: AnswerFacts }
  | { readonly kind: 'fault'; readonly id: number; readonly fault: Fault };
