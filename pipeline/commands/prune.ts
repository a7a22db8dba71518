import { join } from 'node:path';
import { executePrune, type PruneEntry, type PruneOutcome, type PrunePlan, planPrune } from '../../registry/prune.js';
import { openContext, printData } from '../edge.js';
import type { GlobalOptions } from '../options.js';
import { bytesText, durationText, safeText, table } from '../text.js';

interface PruneCommandOptions extends GlobalOptions {
  readonly yes?: boolean;
  readonly superseded?: boolean;
  readonly quarantined?: boolean;
}

/** `prune`: lists what may go; with `--yes` removes it. Exit code 1 when something could not be removed or looked at. */
export async function prune(options: PruneCommandOptions): Promise<void> {
  const { root, now } = openContext(options);
  const rules = { superseded: options.superseded === true, quarantined: options.quarantined === true, now: now() };
  const plan = await planPrune(root, rules);
  const paths = plan.entries.map(({ path }) => path);
  const outcomes = options.yes ? await executePrune(root, paths, rules) : undefined;
  const report = options.json ? JSON.stringify(record(root, plan, outcomes), null, 1) : text(root, plan, outcomes);
  await printData(report);
  const isIncomplete = outcomes?.some(({ outcome }) => outcome === 'failed' || outcome === 'stays');
  if (isIncomplete || plan.problems.length > 0) process.exitCode = 1;
}

function text(root: string, plan: PrunePlan, outcomes: readonly PruneOutcome[] | undefined): string {
  const rows = plan.entries.map((entry, i) => row(entry, outcomes?.[i]));
  const head = ['PATH', 'REASON', 'SIZE', 'AGE', ...(outcomes ? ['RESULT'] : [])];
  const notes = [
    ...plan.problems.map(({ path, problem }) => `${path}: can't be looked at: ${problem}`),
    ...(outcomes ?? []).flatMap(({ path, problem }) => (problem ? [`${path}: ${problem.message}`] : [])),
    ...plan.kept.map(({ path, why }) => `kept, never removed: ${join(root, path)} (${why})`),
    ...(rows.length === 0 ? [] : [summary(plan, outcomes)]),
  ];
  return [rows.length === 0 ? `nothing to prune below ${root}` : table(head, rows), ...notes.map(safeText)].join('\n');
}

const row = ({ path, reason, bytes, age }: PruneEntry, outcome: PruneOutcome | undefined): string[] => [
  path,
  reason,
  bytesText(bytes),
  durationText(age),
  ...(outcome ? [outcome.outcome] : []),
];

function summary({ entries, bytes, freedBytes }: PrunePlan, outcomes: readonly PruneOutcome[] | undefined): string {
  const removed = outcomes?.filter(({ outcome }) => outcome === 'removed' || outcome === 'gone').length;
  if (removed !== undefined) return `${removed} of ${entries.length} removed`;
  const sizes = `${bytesText(bytes)}, ${bytesText(freedBytes)} of them not shared`;
  return `${entries.length} entries, ${sizes}; nothing was removed\nnext: the same command with --yes`;
}

function record(root: string, plan: PrunePlan, outcomes: readonly PruneOutcome[] | undefined) {
  return {
    root,
    removed: outcomes !== undefined,
    entries: plan.entries.map(({ path, reason, bytes, age }, i) => ({
      path,
      reason,
      bytes,
      age_s: age,
      outcome: outcomes?.[i]?.outcome ?? null,
      problem: outcomes?.[i]?.problem?.toJSON() ?? null,
    })),
    kept: plan.kept,
    problems: plan.problems,
    bytes: plan.bytes,
    freed_bytes: plan.freedBytes,
  };
}
