import { type Constant, constantElements, derivedConstant } from '../constants.js';
import type { Step } from '../program.js';
import { isMatrix, matrixDims, type Value } from '../values.js';
import { bothOrders, hasNumbers, operandNumbers, operandValue } from './match.js';
import type { Links, NormStep } from './plan.js';

/** Scale and shift of a norm, the value they lead to, and the steps that applied them. */
interface Affine {
  readonly scale: Constant;
  readonly shift: Constant | undefined;
  readonly output: Value;
  readonly parts: readonly Step[];
}

/** The constant of one number per channel that an operation combines with the value. */
function perChannel(step: Step, value: Value): Constant | undefined {
  const other = bothOrders(step).find(([x]) => x === value)?.[1];
  const fits = other && isMatrix(other) && String(matrixDims(other)) === String([value.shape[1], 1]);
  return fits ? other.constant : undefined;
}

/**
 * A batch norm as one scale and one shift per channel: `gamma / sqrt(variance + epsilon)` and `beta - mean * scale`.
 * Undefined when one of its tensors is computed.
 */
export function batchAffine(step: Step): Pick<Affine, 'scale' | 'shift'> | undefined {
  const x = operandValue(step, 'x');
  const [mean, variance] = [operandValue(step, 'mean')?.constant, operandValue(step, 'variance')?.constant];
  const [gamma, beta] = ['gamma', 'beta'].map((name) => operandValue(step, name));
  const epsilon = step.operands.has('epsilon') ? operandNumbers(step, 'epsilon')?.[0] : 1e-5;
  if (!x || !mean || !variance || epsilon === undefined) return undefined;
  if ((gamma && !gamma.constant) || (beta && !beta.constant)) return undefined;
  const shape = [1, x.shape[1] as number, 1, 1];
  const sources = [mean, variance, gamma?.constant, beta?.constant];
  const key = `${sources.map((source) => source?.key).join(';')};${epsilon}`;
  const scales = () => {
    const factors = gamma?.constant && constantElements(gamma.constant);
    return Float64Array.from(constantElements(variance), (v, i) => (factors?.[i] ?? 1) / Math.sqrt(v + epsilon));
  };
  return {
    scale: derivedConstant('fp32', shape, `batch scale(${key})`, () => Float32Array.from(scales())),
    shift: derivedConstant('fp32', shape, `batch shift(${key})`, () => {
      const [means, shifts, factors] = [
        constantElements(mean),
        beta?.constant && constantElements(beta.constant),
        scales(),
      ];
      return Float32Array.from(means, (m, i) => (shifts?.[i] ?? 0) - m * (factors[i] as number));
    }),
  };
}

/** What follows a norm without settings of its own: a product, perhaps a sum, or a batch norm. */
function matchAffine(links: Links, value: Value): Affine | undefined {
  const reader = links.onlyReader(value);
  const output = reader?.outputs[0];
  if (!reader || !output) return undefined;
  if (reader.op === 'batch_norm') {
    const affine = batchAffine(reader);
    return affine && { ...affine, output, parts: [reader] };
  }
  const scale = reader.op === 'mul' ? perChannel(reader, value) : undefined;
  if (!scale) return undefined;
  const next = links.onlyReader(output);
  const shift = next?.op === 'add' ? perChannel(next, output) : undefined;
  if (!next || !shift) return { scale, shift: undefined, output, parts: [reader] };
  return { scale, shift, output: next.outputs[0] as Value, parts: [reader, next] };
}

/** A norm over the channels and the scale and shift that follow it, as one step. */
export function matchNorm(links: Links, step: Step): NormStep | undefined {
  const x = operandValue(step, 'x');
  const plain = step.op === 'layer_norm' && !step.operands.has('gamma') && !step.operands.has('beta');
  const epsilon = step.operands.has('epsilon') ? operandNumbers(step, 'epsilon')?.[0] : 1e-5;
  if (!plain || !x || !isMatrix(x) || !hasNumbers(step, 'axes', 1) || epsilon === undefined) return undefined;
  const affine = matchAffine(links, step.outputs[0] as Value);
  if (!affine || String(affine.output.shape) !== String(x.shape)) return undefined;
  const { scale, shift, output, parts } = affine;
  return { kind: 'norm', x, epsilon, scale, shift, outputs: [output], parts: [step, ...parts] };
}
