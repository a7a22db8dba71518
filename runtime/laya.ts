import { fromPlain } from '../schemas/json.js';
import { parseMinConfidence } from './confidence-gate.js';
import { BackendUnavailableError } from './errors.js';
import { executePlan, executeOnAne as onAne, warmUp } from './execute.js';
import type { RowOutputs } from './forward.js';
import { backlogOf } from './info.js';
import { type OpenModel, type OpenOptions, openModel } from './open.js';
import { planRequest, servesCpu, sizeOf } from './plan.js';
import { type Prepared, prepare } from './prompt.js';
import { parseQuestions } from './questions.js';
import { type PredictOptions, type Progress, type Request, type Result, resultOf, traceOf } from './request.js';
import type { LayaRouter, Routed, RoutedResult } from './router.js';
import type { Shortlisted, ShortlistOptions } from './shortlist.js';
import { infoOf, type LayaInfo } from './status.js';
import type { AnswersOf, Checked } from './typed.js';

type AnyRouter = LayaRouter<Request, Result, [options?: PredictOptions]>;

/** What `Laya.open('auto')` gives: a router whose answers have the questions' types, as `Laya.predict`'s have. */
export interface AutoLaya extends Omit<AnyRouter, 'predict' | 'info'> {
  predict<const Q>(
    request: Request<Q> & { readonly questions: Checked<Q> },
    options?: PredictOptions,
  ): Promise<RoutedResult<Result<AnswersOf<Q>>>>;
  info(): Readonly<Record<Routed, LayaInfo>>;
}

/** The Neural Engine went away before the turn of a request that has yet to run. */
const GONE = new Error('the device went away');

/**
 * A Laya model ready to answer.
 *
 *     await using laya = await Laya.open('laya-tiny');
 *     const { answers } = await laya.predict({
 *       context: 'I was charged twice.',
 *       questions: { topic: { type: 'choice', instructions: 'What is it about?', criteria: ['billing', 'other'] } },
 *     });
 *     answers.topic.choice; // 'billing' | 'other'
 *
 * Requests may be made at once: they are prepared side by side and run one after the other.
 */
export class Laya {
  readonly #model: OpenModel;
  #closing: Promise<void> | undefined;

  private constructor(model: OpenModel) {
    this.#model = model;
  }

  /** Opens `laya` and `laya-multilingual`, of which the language of each request's state chooses one. */
  static open(model: 'auto', options?: OpenOptions): Promise<AutoLaya>;
  /** Opens a model by name. Throws UnsupportedModelError, BackendUnavailableError, Artifact*Error, CheckpointError. */
  static open(model: string, options?: OpenOptions): Promise<Laya>;
  static async open(model: string, options: OpenOptions = {}): Promise<Laya | AutoLaya> {
    if (model !== 'auto') return new Laya(await openModel(model, options));
    const { LayaRouter } = await import('./router.js');
    const router = await LayaRouter.open<Request, Result, [options?: PredictOptions]>(
      (name, each) => Laya.open(name as string, each),
      options,
    );
    return router as unknown as AutoLaya;
  }

  /** Requests that wait or run. */
  get pending(): number {
    const { cpu, ane } = this.#model.loads;
    return cpu.length + ane.length;
  }

  /** Loads, verifies and runs once everything that may answer. Throws what `predict` throws for these. */
  async warmUp(): Promise<void> {
    this.#requireOpen();
    const model = this.#model;
    await model.loads.cpu.run(() => warmUp(model));
    if (!servesCpu(model)) await model.aneDevice?.session();
  }

  /** Waits until the Neural Engine serves. Throws why it does not: BackendUnavailableError, Artifact*Error. */
  async waitForAne(signal?: AbortSignal): Promise<void> {
    this.#requireOpen();
    const { aneDevice, ane } = this.#model;
    if (aneDevice) await aneDevice.session(signal);
    else
      throw new BackendUnavailableError('DEVICE_UNAVAILABLE', 'the Neural Engine is not used by this model', {
        expected: 'device auto or ane, a laya-probe, and an artifact with Apple evidence',
        found: ane.absence,
        hint: 'see docs/devices.md',
      });
  }

  /** What this model is and how its devices do. */
  info(): LayaInfo {
    return infoOf(this.#model);
  }

  /**
   * Answers every question of the request. Throws InvalidRequestError for a malformed request, UnsupportedShapeError for
   * a row that nothing registered holds (nothing is cut or sent elsewhere to make it fit), BackendUnavailableError
   * QUEUE_FULL, CLOSED, or the probe's code when the Neural Engine is lost (docs/devices.md §4), and the signal's reason.
   */
  async predict<const Q>(
    request: Request<Q> & { readonly questions: Checked<Q> },
    options: PredictOptions = {},
  ): Promise<Result<AnswersOf<Q>>> {
    const started = performance.now();
    const progress: Progress = { started, preparedAt: started, wait: 0, run: 0 };
    let failure: unknown;
    try {
      return (await this.#answer(request, options.signal, progress)) as Result<AnswersOf<Q>>;
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      options.onTrace?.(traceOf(this.#model, progress, failure));
    }
  }

  async #answer(request: Request, signal: AbortSignal | undefined, progress: Progress): Promise<Result> {
    this.#requireOpen();
    signal?.throwIfAborted();
    const model = this.#model;
    const minConfidence = parseMinConfidence(request.minConfidence ?? request.min_confidence);
    const questions = parseQuestions(fromPlain(request.questions));
    const prepared = await prepare(model.tokenizer, model.checkpoint.agent, fromPlain(request.context), questions);
    Object.assign(progress, { prepared, preparedAt: performance.now() });
    for (;;) {
      const outputs = await this.#attempt(prepared, signal, progress);
      if (outputs) return resultOf(model, progress, outputs, minConfidence);
    }
  }

  /** Plans the rows and runs them; undefined when the device went away before their turn, so that they are planned again. */
  async #attempt(
    { rows }: Prepared,
    signal: AbortSignal | undefined,
    progress: Progress,
  ): Promise<RowOutputs[] | undefined> {
    const model = this.#model;
    const { aneDevice, loads } = model;
    const needsAne = model.device === 'ane' || !servesCpu(model);
    if (rows.length > 0) {
      if (needsAne) await aneDevice!.session(signal);
      else aneDevice?.wake();
    }
    const plan = planRequest(rows, model);
    const session = plan.device === 'ane' ? aneDevice?.current : undefined;
    Object.assign(progress, { plan, session, backlog: backlogOf(model) });
    if (plan.device === 'none') return [];
    if (plan.device === 'ane' && !session) return undefined;
    const queued = performance.now();
    const work = async (): Promise<RowOutputs[]> => {
      const began = performance.now();
      progress.wait += began - queued;
      if (session !== undefined && aneDevice?.current !== session) throw GONE;
      const run =
        session === undefined ? executePlan(model, plan, rows, signal) : onAne(model, session, plan, rows, signal);
      const outputs = await run;
      progress.run = performance.now() - began;
      return outputs;
    };
    try {
      return (await loads[plan.device].run(work, signal, sizeOf(rows))).value;
    } catch (error) {
      if (error === GONE) return undefined;
      throw error;
    }
  }

  /**
   * Vectors of texts by the model's own encoder, d values each: the mean of its states over `[CLS] text [SEP]`, of which
   * the start is kept where a text is longer than the model takes. Runs on the any-length graph, on the cpu.
   * Throws ArtifactMissingError where none with that output is registered, BackendUnavailableError, InvalidRequestError
   * TEXT_INVALID; the signal's reason.
   */
  async embed(texts: readonly string[], { signal }: Pick<PredictOptions, 'signal'> = {}): Promise<Float32Array[]> {
    this.#requireOpen();
    const { embedTexts } = await import('./embed.js');
    return embedTexts(this.#model, texts, signal);
  }

  /**
   * `predict` with every choice question of more than `k` labels cut to the `k` that `embed` finds most similar to the
   * state. Throws ShortlistError, and what `predict` throws.
   */
  async predictShortlist(
    request: Request,
    options: ShortlistOptions,
    predictOptions: PredictOptions = {},
  ): Promise<Shortlisted<Result>> {
    const { predictShortlist } = await import('./shortlist.js');
    return predictShortlist<Request, Result, [PredictOptions]>(this, request, options, predictOptions);
  }

  #requireOpen(): void {
    if (this.#closing === undefined) return;
    throw new BackendUnavailableError('CLOSED', 'the model was closed', { hint: 'open it again' });
  }

  /** Takes no more requests, finishes those it has, and releases the model's memory. May be called again. */
  close(): Promise<void> {
    this.#closing ??= this.#model.close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
