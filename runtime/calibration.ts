const LOWEST = 0.5;
const HIGHEST = 5;

/** Temperatures as a checkpoint's configuration holds them: any JSON values. */
export interface RawTemperatures {
  /** For choice, score and noul. */
  readonly temperature: readonly unknown[];
  /** By "type:size", such as "choice:3-5"; goes before `temperature`. */
  readonly temperatureByOptions: Readonly<Record<string, unknown>>;
}

/** A configured temperature that isn't used as it is; confidences under it are not calibrated. */
export interface ReplacedTemperature {
  readonly name: string;
  readonly found: unknown;
  readonly applied: number;
}

/** Temperatures ready for use. */
export interface Calibration {
  readonly byType: readonly number[];
  readonly byOptions: ReadonlyMap<string, number>;
  readonly replaced: readonly ReplacedTemperature[];
}

/** Clamps a checkpoint's temperatures to [0.5, 5]; what is no finite number counts as 1. */
export function temperatures(config: RawTemperatures): Calibration {
  const replaced: ReplacedTemperature[] = [];
  const use = (name: string, found: unknown): number => {
    const isNumber = typeof found === 'number' && Number.isFinite(found);
    const applied = isNumber ? Math.min(HIGHEST, Math.max(LOWEST, found)) : 1;
    if (applied !== found) replaced.push({ name, found, applied });
    return applied;
  };
  const byType = config.temperature.map((value, index) => use(`temperature[${index}]`, value));
  const entries = Object.entries(config.temperatureByOptions);
  const byOptions = new Map(entries.map(([bucket, value]) => [bucket, use(`temperature_by_options.${bucket}`, value)]));
  return { byType, byOptions, replaced };
}

const TYPE_NAMES = ['choice', 'score', 'noul'] as const;
const SIZES = ['2', '3-5', '6-10', '11+'] as const;

/** Every name that `optionBucket` gives. */
export const OPTION_BUCKETS: readonly string[] = TYPE_NAMES.flatMap((type) => SIZES.map((size) => `${type}:${size}`));

/** The bucket of a question with `k` options, such as "choice:3-5"; `qtype` is 0 choice, 1 score, 2 noul. */
export function optionBucket(qtype: 0 | 1 | 2, k: number): string {
  const size = k <= 2 ? 0 : k <= 5 ? 1 : k <= 10 ? 2 : 3;
  return `${TYPE_NAMES[qtype]}:${SIZES[size]}`;
}

/**
 * The probabilities of a row's options: `logits` has one number per option, `qtype` is 0 choice, 1 score, 2 noul.
 */
export function probabilities(logits: readonly number[], qtype: 0 | 1 | 2, calibration: Calibration): number[] {
  const bySize = calibration.byOptions.get(optionBucket(qtype, logits.length));
  return softmax(logits, bySize ?? calibration.byType[qtype]);
}

/**
 * softmax(logits / temperature) as float32 numbers: every step is rounded to float32, as upstream computes them, so
 * that four decimals come out the same.
 */
export function softmax(logits: readonly number[], temperature = 1): number[] {
  const scaled = logits.map((logit) => Math.fround(Math.fround(logit) / Math.fround(temperature)));
  const highest = Math.max(...scaled);
  const powers = scaled.map((value) => Math.fround(Math.exp(Math.fround(value - highest))));
  const total = pairwiseSum(powers, Math.fround);
  return powers.map((power) => Math.fround(power / total));
}

/**
 * What the action head reads beside the CLS state, from a row's first `k` logits without temperature:
 * [top1, top1 - top2, entropy / ln(max(k, 2)), max(k, 2) / 255], as float32 numbers.
 */
export function actionFeatures(logits: readonly number[], k: number): [number, number, number, number] {
  const p = softmax(logits.slice(0, k));
  const [top1 = 1, top2 = 0] = [...p].sort((a, b) => b - a);
  const entropy = -p.reduce((sum, value) => sum + value * Math.log(Math.max(value, 1e-9)), 0);
  const count = Math.max(k, 2);
  const features = [top1, top1 - top2, entropy / Math.log(count), count / 255];
  return features.map(Math.fround) as [number, number, number, number];
}

/** How concentrated `p` is: 1 - entropy / ln k, within [0, 1]; 1 for less than two options. */
export function concentration(p: readonly number[]): number {
  if (p.length < 2) return 1;
  const floor = Math.fround(1e-12);
  const terms = p.map((value) => {
    const logarithm = Math.fround(Math.log(Math.min(1, Math.max(floor, value))));
    return Math.fround(value * logarithm);
  });
  return unit(1 + pairwiseSum(terms, Math.fround) / Math.log(p.length));
}

/** The expected level of a score. */
export function expectedLevel(p: readonly number[]): number {
  const terms = p.map((value, level) => value * level);
  return pairwiseSum(terms, (value) => value);
}

/** The value, moved to the nearest end when outside [0, 1]. */
export function unit(value: number): number {
  return Math.min(1, Math.max(0, value));
}

/** The four decimals that Python's `round(value, 4)` keeps: the nearest ones, the even one where both are as near. */
export function roundTo4(value: number): number {
  // Only odd multiples of 1/32 lie exactly between two such numbers; toFixed rounds those up, and all others rightly.
  const isTie = Math.abs((value * 32) % 2) === 1;
  if (!isTie) return Number(value.toFixed(4));
  const below = Math.floor(value * 10_000);
  return (below % 2 === 0 ? below : below + 1) / 10_000;
}

const PAIRWISE_BLOCK = 128;

/** NumPy's order of summation, which decides the last bits; `round` brings every partial sum to the element type. */
function pairwiseSum(values: readonly number[], round: (value: number) => number): number {
  const n = values.length;
  if (n < 8) return values.reduce((sum, value) => round(sum + value), 0);
  if (n > PAIRWISE_BLOCK) {
    const half = Math.floor(n / 2) - (Math.floor(n / 2) % 8);
    return round(pairwiseSum(values.slice(0, half), round) + pairwiseSum(values.slice(half), round));
  }
  const lanes = values.slice(0, 8);
  const whole = n - (n % 8);
  for (let i = 8; i < whole; i += 1) lanes[i % 8] = round(lanes[i % 8]! + values[i]!);
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = lanes;
  const left = round(round(a + b) + round(c + d));
  const right = round(round(e + f) + round(g + h));
  return values.slice(whole).reduce((sum, value) => round(sum + value), round(left + right));
}
