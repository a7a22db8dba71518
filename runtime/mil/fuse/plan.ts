import type { Constant } from '../constants.js';
import type { ResolvedProgram, Step } from '../program.js';
import type { Value } from '../values.js';

/** Cosines and sines of rotary positions, each (1, D/2, 1, L). */
export interface Rotation {
  readonly cos: Constant;
  readonly sin: Constant;
}

/** Attention of all heads at once; `q`, `k`, `v` and the output are (1, heads * D, 1, length). */
export interface AttentionStep {
  readonly kind: 'attention';
  readonly q: Value;
  readonly k: Value;
  readonly v: Value;
  readonly heads: number;
  readonly rotation: Rotation | undefined;
  readonly scale: number;
  /** Added to the scores: (1, keys, 1, queries). */
  readonly mask: Value | undefined;
  readonly outputs: readonly [Value];
  readonly parts: readonly Step[];
}

/** A norm over the channels of a (1, C, 1, L) tensor with its scale and shift, each (1, C, 1, 1). */
export interface NormStep {
  readonly kind: 'norm';
  readonly x: Value;
  readonly epsilon: number;
  readonly scale: Constant;
  readonly shift: Constant | undefined;
  readonly outputs: readonly [Value];
  readonly parts: readonly Step[];
}

export type FusedStep = AttentionStep | NormStep;
export type PlannedStep = Step | FusedStep;

export function isFused(step: PlannedStep): step is FusedStep {
  return 'kind' in step;
}

/** Visits the tensors a step reads. */
export function eachInput(step: PlannedStep, visit: (value: Value) => void): void {
  if (isFused(step)) {
    const values = step.kind === 'norm' ? [step.x] : [step.q, step.k, step.v, step.mask];
    for (const value of values) if (value) visit(value);
    return;
  }
  for (const operand of step.operands.values()) {
    if (operand.kind === 'value') visit(operand.value);
    else if (operand.kind === 'list') operand.values.forEach(visit);
  }
}

/** Which step computes a value, and how many read it. */
export class Links {
  private readonly producers = new Map<Value, Step>();
  private readonly readers = new Map<Value, Step | undefined>();
  private readonly results: ReadonlySet<Value>;

  constructor(program: ResolvedProgram) {
    this.results = new Set(program.outputs);
    for (const step of program.steps) {
      for (const output of step.outputs) this.producers.set(output, step);
      eachInput(step, (input) => {
        // Two readers are as good as many: only a single one is ever asked for.
        this.readers.set(input, this.readers.has(input) ? undefined : step);
      });
    }
  }

  /** The step of this kind that computes the value. */
  producer(value: Value | undefined, op: string): Step | undefined {
    const step = value && this.producers.get(value);
    return step?.op === op ? step : undefined;
  }

  /** The one step that reads the value; undefined when there are more, or the program returns it. */
  onlyReader(value: Value): Step | undefined {
    return this.results.has(value) ? undefined : this.readers.get(value);
  }
}

/** Keeps the steps that the outputs depend on. */
export function liveSteps(steps: readonly PlannedStep[], outputs: readonly Value[]): PlannedStep[] {
  const needed = new Set(outputs);
  const live = steps.toReversed().filter((step) => {
    if (!step.outputs.some((output) => needed.has(output))) return false;
    eachInput(step, (input) => needed.add(input));
    return true;
  });
  return live.reverse();
}
