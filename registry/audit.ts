import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readRecord } from '../schemas/door.js';
import { isSystemError, type LayaError } from '../schemas/errors.js';
import type { Rejected } from '../schemas/generated/types.js';
import { rejected as validator } from '../schemas/generated/validators.js';
import { readMarker } from './markers.js';
import { BUILDING, rejectedFolder, stagingFolder } from './paths.js';
import { asProblem } from './problems.js';
import { processState } from './processes.js';
import { planPrune } from './prune.js';
import { listQuarantine } from './quarantine-entries.js';

/** Something in the store that is no registered artifact. */
export interface AuditRow {
  readonly kind: 'rejected' | 'quarantined' | 'staging' | 'copy';
  /** Path below the root. */
  readonly path: string;
  readonly note: string;
  /** Why a record can't be read. */
  readonly problem?: LayaError;
}

/** Rejected and quarantined records, what builds left or work on, and copies beside artifacts. Changes nothing. */
export async function auditStore(root: string, now: Date): Promise<AuditRow[]> {
  const quarantined = (await listQuarantine(root)).map(({ name, record, problem }): AuditRow => {
    const path = `artifacts/quarantine/${name}`;
    return { kind: 'quarantined', path, note: record?.reason ?? 'no record', ...(problem ? { problem } : {}) };
  });
  return [...(await rejectedRows(root)), ...quarantined, ...stagingRows(root), ...(await copyRows(root, now))];
}

async function rejectedRows(root: string): Promise<AuditRow[]> {
  const rows: AuditRow[] = [];
  for (const name of namesIn(rejectedFolder(root))) {
    const row = { kind: 'rejected', path: `artifacts/rejected/${name}` } as const;
    try {
      const record = await readRecord<Rejected>(join(rejectedFolder(root), name), validator);
      rows.push({ ...row, note: `${record.code ?? 'refused'}: ${record.rejected_because}` });
    } catch (error) {
      rows.push({ ...row, note: 'not a record', problem: asProblem(error, row.path) });
    }
  }
  return rows;
}

function stagingRows(root: string): AuditRow[] {
  return namesIn(stagingFolder(root)).map((name) => {
    const marker = readMarker(join(stagingFolder(root), name, BUILDING));
    return { kind: 'staging', path: `artifacts/.staging/${name}`, note: stagingNote(marker) };
  });
}

function stagingNote(marker: Record<string, unknown> | undefined): string {
  if (marker === undefined) return 'left without a marker';
  if (marker.abandoned === true) return `abandoned in ${marker.stage ?? 'some stage'}`;
  const state = { alive: 'at work', dead: 'left by', unknown: 'of' }[processState(marker.pid, marker.host)];
  return `${state} process ${marker.pid ?? '?'}${marker.host === undefined ? '' : ` on ${marker.host}`}`;
}

/** Kept, failed and claimed copies beside registered artifacts. */
async function copyRows(root: string, now: Date): Promise<AuditRow[]> {
  const plan = await planPrune(root, { superseded: false, quarantined: false, now });
  const copies = plan.entries.filter(({ path }) => path.split('/').length === 4);
  return [...plan.kept.map(({ path, why }) => ({ path, note: why })), ...copies.map(withReason)].map((row) => ({
    kind: 'copy',
    ...row,
  }));
}

const withReason = ({ path, reason }: { path: string; reason: string }) => ({ path, note: reason });

function namesIn(folder: string): string[] {
  try {
    return lstatSync(folder).isDirectory() ? readdirSync(folder).sort() : [];
  } catch (error) {
    if (isSystemError(error)) return [];
    throw error;
  }
}
