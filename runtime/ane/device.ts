import { ArtifactRevisionError } from '../../registry/errors.js';
import { LayaError } from '../../schemas/errors.js';
import { BackendUnavailableError } from '../errors.js';
import { ProbeError } from '../probe/errors.js';
import { abortable } from './abortable.js';
import type { AneSession } from './session.js';

/** Why `auto` passes the Neural Engine by, whatever the request. */
export type AneAbsence =
  | 'ane_runtime_unavailable'
  | 'ane_artifact_unavailable'
  | 'platform_not_validated'
  | 'ane_starting';

/** What became of the Neural Engine's process, for people. */
export interface AneStatus {
  readonly status: 'starting' | 'ready' | 'down' | 'closed';
  /** Why it does not serve; null while it does. */
  readonly reason: AneAbsence | null;
  /** The last error's code; null when there was none since it was ready. */
  readonly error: string | null;
  /** Starts after the first one. */
  readonly restarts: number;
}

type State =
  | { readonly kind: 'starting'; readonly done: Promise<AneSession> }
  | { readonly kind: 'ready'; readonly session: AneSession }
  | { readonly kind: 'down'; readonly error: LayaError; readonly retryAt: number }
  | { readonly kind: 'closed' };

export interface AneDeviceOptions {
  /** Starts laya-probe and gives it warm; leaves nothing running when it throws. */
  readonly start: (signal: AbortSignal) => Promise<AneSession>;
  /** The clock, in milliseconds. */
  readonly now: () => number;
  /** Told once, when a process that served is lost. */
  readonly warn: (message: string) => void;
}

/** Milliseconds from a loss to the next start; doubled for each further loss without an answer in between. */
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 300_000;

/**
 * The Neural Engine behind one laya-probe, with the policy of docs/devices.md §4: no timer runs; a lost process is
 * started again by the first request that comes after the wait.
 */
export class AneDevice {
  readonly #options: AneDeviceOptions;
  readonly #stop = new AbortController();
  #state: State;
  #starts = 0;
  #losses = 0;
  #warned = false;

  /** Begins the first start; `session` waits for it. */
  constructor(options: AneDeviceOptions) {
    this.#options = options;
    this.#state = { kind: 'starting', done: this.#begin() };
  }

  /** What serves now. */
  get current(): AneSession | undefined {
    return this.#state.kind === 'ready' ? this.#state.session : undefined;
  }

  get absence(): AneAbsence | null {
    if (this.#state.kind === 'ready') return null;
    if (this.#state.kind === 'starting') return this.#starts > 1 ? 'ane_runtime_unavailable' : 'ane_starting';
    return this.#state.kind === 'down' ? absenceOf(this.#state.error) : 'ane_runtime_unavailable';
  }

  get status(): AneStatus {
    const { kind } = this.#state;
    const error = this.#state.kind === 'down' ? this.#state.error.code : null;
    return { status: kind, reason: this.absence, error, restarts: Math.max(0, this.#starts - 1) };
  }

  /** Begins a start that is due, without waiting for it. */
  wake(): void {
    if (this.#state.kind === 'down' && this.#options.now() >= this.#state.retryAt) this.#restart();
  }

  /**
   * What serves now; waits for a start that is under way or due. Throws the start's error: BackendUnavailableError with
   * the probe's code, Artifact*Error, ComputeUnitMismatchError; DEVICE_UNAVAILABLE while no start is due, CLOSED; the
   * signal's reason.
   */
  async session(signal?: AbortSignal): Promise<AneSession> {
    this.wake();
    const state = this.#state;
    if (state.kind === 'ready') return state.session;
    if (state.kind === 'starting') return abortable(state.done, signal);
    if (state.kind === 'down') throw this.#refusal(state.error, state.retryAt);
    throw new BackendUnavailableError('CLOSED', 'the model was closed', { hint: 'open it again' });
  }

  /** A request was answered: what is lost after this is a first loss again. */
  answered(): void {
    this.#losses = 0;
  }

  /** Stops a start, lets the process answer what it has, and resolves when it is gone; may be called again. */
  async close(): Promise<void> {
    const state = this.#state;
    this.#state = { kind: 'closed' };
    this.#stop.abort();
    if (state.kind === 'starting') await state.done.catch(() => undefined);
    if (state.kind === 'ready') await state.session.close();
  }

  #restart(): void {
    this.#state = { kind: 'starting', done: this.#begin() };
  }

  #begin(): Promise<AneSession> {
    this.#starts += 1;
    const done = this.#open();
    done.catch(() => undefined);
    return done;
  }

  async #open(): Promise<AneSession> {
    try {
      const session = await Promise.resolve(this.#stop.signal).then(this.#options.start);
      if (this.#stop.signal.aborted) {
        await session.close();
        this.#stop.signal.throwIfAborted();
      }
      this.#state = { kind: 'ready', session };
      void session.ended.then((error) => this.#lost(session, error));
      return session;
    } catch (cause) {
      if (this.#stop.signal.aborted) throw closedMeanwhile(cause);
      const error = asUnavailable(cause);
      this.#down(error);
      throw error;
    }
  }

  #lost(session: AneSession, error: ProbeError | null): void {
    if (this.current !== session) return;
    const reason = asUnavailable(error ?? new ProbeError('PROBE_CRASHED', 'laya-probe ended by itself'));
    this.#down(reason);
    if (this.#warned) return;
    this.#warned = true;
    this.#options.warn(`the Neural Engine's process was lost (${reason.code}): ${reason.message}`);
  }

  #down(error: LayaError): void {
    const wait = Math.min(FIRST_WAIT_MS * 2 ** this.#losses, LONGEST_WAIT_MS);
    this.#losses += 1;
    this.#state = { kind: 'down', error, retryAt: this.#options.now() + wait };
  }

  #refusal(error: LayaError, retryAt: number): BackendUnavailableError {
    const seconds = Math.max(1, Math.ceil((retryAt - this.#options.now()) / 1000));
    return new BackendUnavailableError('DEVICE_UNAVAILABLE', `the Neural Engine does not serve: ${error.message}`, {
      expected: 'a laya-probe that runs',
      found: error.code,
      hint: `it is tried again in ${seconds} s; ${error.hint ?? 'use --device auto'}`,
      cause: error,
    });
  }
}

function absenceOf(error: LayaError): AneAbsence {
  if (error instanceof ArtifactRevisionError && error.code === 'PROFILE_MISMATCH') return 'platform_not_validated';
  return error instanceof BackendUnavailableError ? 'ane_runtime_unavailable' : 'ane_artifact_unavailable';
}

/** An error of the probe under its own code, as the device's; other errors of ours as they are. */
export function asUnavailable(error: unknown): LayaError {
  if (error instanceof LayaError && !(error instanceof ProbeError)) return error;
  const { where, expected, found, hint } = error instanceof ProbeError ? error : ({} as ProbeError);
  return new BackendUnavailableError(
    error instanceof ProbeError ? error.code : 'DEVICE_UNAVAILABLE',
    error instanceof Error ? error.message : String(error),
    {
      ...(where === undefined ? {} : { where }),
      ...(expected === undefined ? {} : { expected }),
      ...(found === undefined ? {} : { found }),
      ...(hint === undefined ? {} : { hint }),
      cause: error,
    },
  );
}

const closedMeanwhile = (cause: unknown): BackendUnavailableError =>
  new BackendUnavailableError('CLOSED', 'the model was closed while the Neural Engine started', { cause });
