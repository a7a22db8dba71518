import { type ChildProcess, spawn } from 'node:child_process';
import { ProbeError } from './errors.js';
import { checkRunnable } from './runnable.js';

/** How laya-probe is started. */
export interface ProbeProgram {
  /** Path of the executable. */
  readonly executable: string;
  /** The whole environment of the process. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Gets each piece of the probe's log. */
  readonly onLog?: (text: string) => void;
}

/** How a process ended. */
export interface ProbeExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const LOG_TAIL = 4000;

/** A started laya-probe: its streams, the last of its log, its end. Goes with this process. */
export class ProbeProcess {
  /** Resolves when the process is gone and its output was read to the end; never rejects. */
  readonly ended: Promise<ProbeExit>;
  readonly #child: ChildProcess;
  readonly #executable: string;
  #log = '';
  #startFailure: Error | undefined;

  private constructor(program: ProbeProgram, args: readonly string[], onOutput: (bytes: Buffer) => void) {
    const env = Object.fromEntries(Object.entries(program.env).filter(([, value]) => value !== undefined));
    const child = spawn(program.executable, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    const killNow = (): void => this.kill();
    process.once('exit', killNow);
    this.#child = child;
    this.#executable = program.executable;
    child.stdout.on('data', onOutput);
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#log = (this.#log + text).slice(-LOG_TAIL);
      program.onLog?.(text);
    });
    // A pipe that broke says nothing beyond what the process's end says.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => undefined);
    this.ended = new Promise((resolve) => {
      child.on('error', (error) => {
        this.#startFailure = error;
        if (child.pid === undefined) resolve({ code: null, signal: null });
      });
      child.on('close', (code, signal) => resolve({ code, signal }));
    });
    void this.ended.then(() => process.removeListener('exit', killNow));
  }

  /** Starts the program once it was found runnable. Throws ProbeError (see `checkRunnable`). */
  static async start(
    program: ProbeProgram,
    args: readonly string[],
    onOutput: (bytes: Buffer) => void,
  ): Promise<ProbeProcess> {
    await checkRunnable(program.executable);
    return new ProbeProcess(program, args, onOutput);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Hands bytes to the probe; `sent` is called when they may be changed again. */
  write(bytes: Buffer, sent: () => void = () => undefined): void {
    this.#child.stdin?.write(bytes, sent);
  }

  /** Ends the probe's input: it answers what it accepted and goes. */
  endInput(): void {
    this.#child.stdin?.end();
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** Why a probe that said nothing is gone: not a word about any model (fault F28). */
  startError(exit: ProbeExit): ProbeError {
    const { code, signal } = exit;
    const where = this.#executable;
    if (signal !== null) {
      return new ProbeError('PROBE_KILLED_AT_START', `laya-probe was killed at its start by ${signal}`, {
        where,
        found: this.#found(exit),
        hint: `look for a quarantine mark and a broken signature: xattr -d com.apple.quarantine ${where}; codesign --force --sign - ${where}`,
      });
    }
    return new ProbeError('PROBE_START_FAILED', `laya-probe ended at its start, with ${code ?? 'no exit code'}`, {
      where,
      found: this.#startFailure?.message ?? this.#found(exit),
      hint: `run it by hand: ${where} version`,
      ...(this.#startFailure ? { cause: this.#startFailure } : {}),
    });
  }

  /** Why a probe that had started is gone. */
  crashError(exit: ProbeExit, during: string): ProbeError {
    const how = exit.signal ?? `exit code ${exit.code}`;
    return new ProbeError('PROBE_CRASHED', `laya-probe ended ${during}, with ${how}`, {
      where: this.#executable,
      found: this.#found(exit),
      hint: 'start it again; what it logged is above',
    });
  }

  #found(exit: ProbeExit): string {
    return this.#log.trim().slice(-600) || exit.signal || `exit code ${exit.code}`;
  }
}
