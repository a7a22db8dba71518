/** Upper bounds of the histograms' buckets, in seconds. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

type Labels = Readonly<Record<string, string>>;

interface Histogram {
  readonly counts: number[];
  sum: number;
  count: number;
}

/** A value that is read when the metrics are. */
export interface Gauge {
  readonly name: string;
  readonly help: string;
  readonly value: number;
  readonly labels?: Labels;
}

/** Counters and histograms in Prometheus' text format. Labels are names from fixed sets, never a client's text. */
export class Metrics {
  readonly #help = new Map<string, string>();
  readonly #counters = new Map<string, Map<string, number>>();
  readonly #histograms = new Map<string, Map<string, Histogram>>();

  count(name: string, help: string, labels: Labels, amount = 1): void {
    const series = this.#series(this.#counters, name, help);
    const key = labelText(labels);
    series.set(key, (series.get(key) ?? 0) + amount);
  }

  observe(name: string, help: string, labels: Labels, seconds: number): void {
    const series = this.#series(this.#histograms, name, help);
    const key = labelText(labels);
    const histogram = series.get(key) ?? { counts: BOUNDS.map(() => 0), sum: 0, count: 0 };
    series.set(key, histogram);
    const bucket = BOUNDS.findIndex((bound) => seconds <= bound);
    if (bucket >= 0) histogram.counts[bucket]! += 1;
    histogram.sum += seconds;
    histogram.count += 1;
  }

  /** Everything that was counted, and the gauges. */
  text(gauges: readonly Gauge[]): string {
    const lines: string[] = [];
    for (const [name, series] of this.#counters) {
      lines.push(`# HELP ${name} ${this.#help.get(name)}`, `# TYPE ${name} counter`);
      for (const [labels, value] of series) lines.push(`${name}${labels} ${value}`);
    }
    for (const [name, series] of this.#histograms) {
      lines.push(`# HELP ${name} ${this.#help.get(name)}`, `# TYPE ${name} histogram`);
      for (const [labels, histogram] of series) lines.push(...histogramLines(name, labels, histogram));
    }
    const described = new Set<string>();
    for (const { name, help, value, labels = {} } of gauges) {
      if (!described.has(name)) lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} gauge`);
      described.add(name);
      lines.push(`${name}${labelText(labels)} ${value}`);
    }
    return `${lines.join('\n')}\n`;
  }

  #series<T>(kind: Map<string, Map<string, T>>, name: string, help: string): Map<string, T> {
    this.#help.set(name, help);
    const series = kind.get(name) ?? new Map<string, T>();
    kind.set(name, series);
    return series;
  }
}

function histogramLines(name: string, labels: string, { counts, sum, count }: Histogram): string[] {
  const within = (bound: string): string => `${labels === '' ? '{' : `${labels.slice(0, -1)},`}le="${bound}"}`;
  let total = 0;
  const buckets = BOUNDS.map((bound, index) => {
    total += counts[index]!;
    return `${name}_bucket${within(String(bound))} ${total}`;
  });
  return [
    ...buckets,
    `${name}_bucket${within('+Inf')} ${count}`,
    `${name}_sum${labels} ${sum}`,
    `${name}_count${labels} ${count}`,
  ];
}

function labelText(labels: Labels): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${value.replace(/["\\\n]/g, '_')}"`);
  return parts.length === 0 ? '' : `{${parts.join(',')}}`;
}
