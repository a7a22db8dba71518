import { ProbeError } from './errors.js';
import { type Frame, FrameReader } from './frames.js';
import { type ProbeExit, ProbeProcess, type ProbeProgram } from './process.js';

/** A started probe that speaks in frames: whole frames come in, bytes go out, and it ends for one reason. */
export class ProbeLink {
  /** Resolves when the process is gone: with null after an orderly end, else with the reason. Never rejects. */
  readonly ended: Promise<ProbeError | null>;
  readonly reader = new FrameReader();
  readonly #process: ProbeProcess;
  readonly #early: Frame[] = [];
  #onFrame: ((frame: Frame) => void) | undefined;
  #failure: ProbeError | undefined;
  #heard = false;
  #closing = false;

  private constructor(process: ProbeProcess) {
    this.#process = process;
    this.ended = process.ended.then((exit) => this.#reasonOf(exit));
  }

  /** Starts the program. Throws ProbeError (see `ProbeProcess.start`). */
  static async start(program: ProbeProgram, args: readonly string[]): Promise<ProbeLink> {
    const link: ProbeLink = new ProbeLink(await ProbeProcess.start(program, args, (bytes) => link.#take(bytes)));
    return link;
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /**
   * The next frame. Throws the reason when the probe ends first, PROBE_HUNG when it takes longer than `ms`
   * milliseconds; it is killed then.
   */
  async receive(ms: number, what: string): Promise<Frame> {
    const coming = new Promise<Frame>((resolve) => this.consume(resolve, 1));
    const timer = setTimeout(() => this.fail(hung(what, ms)), ms);
    try {
      const first = await Promise.race([coming, this.ended]);
      if (first !== null && 'payload' in first) return first;
      throw (
        first ?? new ProbeError('PROBE_CRASHED', `laya-probe ended before it sent ${what}`, { found: 'exit code 0' })
      );
    } finally {
      clearTimeout(timer);
      this.#onFrame = undefined;
    }
  }

  /** Gives frames to a consumer as they come: so many, or all that will come. */
  consume(onFrame: (frame: Frame) => void, count = Number.POSITIVE_INFINITY): void {
    let left = count;
    this.#onFrame = (frame) => {
      left -= 1;
      if (left === 0) this.#onFrame = undefined;
      onFrame(frame);
    };
    for (const frame of this.#early.splice(0)) this.#deliver(frame);
  }

  send(bytes: Buffer, sent?: () => void): void {
    this.#process.write(bytes, sent);
  }

  /** Kills the probe for a reason; the first one counts. */
  fail(reason: ProbeError): void {
    this.#failure ??= reason;
    this.#process.kill();
  }

  /** Ends the probe's input and waits; a probe that has not gone after `ms` milliseconds is killed. */
  async close(ms: number): Promise<ProbeError | null> {
    this.#closing = true;
    this.#process.endInput();
    const timer = setTimeout(() => this.fail(hung('the end', ms)), ms);
    try {
      return await this.ended;
    } finally {
      clearTimeout(timer);
    }
  }

  #take(bytes: Buffer): void {
    if (this.#failure) return;
    this.#heard = true;
    try {
      for (const frame of this.reader.push(bytes)) {
        this.#deliver(frame);
        if (this.#failure) return;
      }
    } catch (error) {
      if (!(error instanceof ProbeError)) throw error;
      this.fail(error);
    }
  }

  #deliver(frame: Frame): void {
    if (this.#onFrame) this.#onFrame(frame);
    else this.#early.push(frame);
  }

  #reasonOf(exit: ProbeExit): ProbeError | null {
    if (this.#failure) return this.#failure;
    if (!this.#heard && !this.#closing) return this.#process.startError(exit);
    if (exit.code !== 0) return this.#process.crashError(exit, this.#closing ? 'while closing' : 'while it was in use');
    try {
      this.reader.end();
    } catch (error) {
      return error as ProbeError;
    }
    return this.#closing ? null : this.#process.crashError(exit, 'by itself');
  }
}

/** The probe took too long; it is killed. */
export function hung(what: string, ms: number): ProbeError {
  return new ProbeError('PROBE_HUNG', `laya-probe gave no ${what} within ${ms / 1000} s and was killed`, {
    expected: `${what} within ${ms / 1000} s`,
    found: 'nothing',
    hint: 'try again; if it stays so, look at the load of the machine and at the system log for aned',
  });
}
