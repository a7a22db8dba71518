/** What the simulated probe does wrong, and where. */
export type Misdeed =
  /** Dies by SIGKILL, or leaves with exit code 3. */
  | 'kill'
  | 'exit'
  /** Goes on without doing it. */
  | 'hang'
  /** Prints text on stdout. */
  | 'garbage'
  /** Announces a payload of 4 GB. */
  | 'oversized'
  /** Sends half of it and leaves with exit code 0. */
  | 'truncated'
  /** Answers another request, or with another length. */
  | 'wrong-id'
  | 'wrong-length'
  /** Sends the answer twice. */
  | 'twice';

/** A step of a session: HELLO, READY, or the n-th request, from 1; or a command, any but `version` or by its name. */
export type Step = 'hello' | 'ready' | 'command' | 'version' | 'device' | 'compile' | 'plan' | number;

export interface Switches {
  /** `stand-in` computes what the Linux build's stand-in for Core ML does. */
  readonly models: 'stand-in' | 'portable';
  readonly faults: readonly { readonly at: Step; readonly does: Misdeed }[];
  /** A step that waits until a file is there. */
  readonly gates: readonly { readonly at: Step; readonly file: string }[];
  /** Fields of the identity or HELLO that are told otherwise. */
  readonly tells: Readonly<Record<string, unknown>>;
  /** A model whose path contains this is refused. */
  readonly refuses: string | null;
  /** Operators that prefer the CPU, or the GPU. */
  readonly onCpu: readonly string[];
  readonly onGpu: readonly string[];
  /** Microseconds that a prediction is said to take, by compute units. */
  readonly micros: Readonly<Record<string, number>>;
  /** `nan`: every element of every output is not a number. */
  readonly answers: 'model' | 'nan';
  /** What `device` tells beyond or instead of a made-up Mac. */
  readonly device: Readonly<Record<string, unknown>>;
  /** The portable compiler's executable, for `compile`. */
  readonly compiler: string | null;
  readonly queue: number;
}

const NONE: Switches = {
  models: 'stand-in',
  faults: [],
  gates: [],
  tells: {},
  refuses: null,
  onCpu: [],
  onGpu: [],
  micros: { cpuAndNeuralEngine: 1, cpuOnly: 4 },
  answers: 'model',
  device: {},
  compiler: null,
  queue: 8,
};

export function readSwitches(text: string | undefined): Switches {
  return { ...NONE, ...(text ? (JSON.parse(text) as Partial<Switches>) : {}) };
}

export function misdeedAt(switches: Switches, step: Step): Misdeed | undefined {
  return switches.faults.find(({ at }) => at === step)?.does;
}
