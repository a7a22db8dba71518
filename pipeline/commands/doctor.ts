import { type Examination, examine, ROLES, type Role, type RoleState } from '../doctor/examine.js';
import { openContext, printData } from '../edge.js';
import type { GlobalOptions } from '../options.js';
import { safeText, table } from '../text.js';

interface DoctorOptions extends GlobalOptions {
  readonly role?: Role;
}

/**
 * `doctor`: what this machine can be used for, and what is missing. Exit code 1 when a role that it can have does not
 * work, or the one that was asked for.
 */
export async function doctor(options: DoctorOptions): Promise<void> {
  const context = openContext(options);
  const { role } = options;
  const machine = { platform: process.platform, arch: process.arch, node: process.versions.node };
  const found = await examine(role === undefined ? ROLES : [role], context, machine);
  await printData(options.json ? JSON.stringify(found, null, 1) : text(found, context.env.HOME));
  if (found.roles.some(({ state }) => state === 'fails' || (role !== undefined && state !== 'works')))
    process.exitCode = 1;
}

/** Paths below the home folder are shortened, and commands stand below the table, so that it fits a terminal. */
function text({ roles, checks, locks, models }: Examination, home: string | undefined): string {
  const short = (found: string): string => (home ? found.replaceAll(`${home}/`, '~/') : found);
  const lines = checks.map(({ check, state, found }) => [check, state, short(found)]);
  const notes = [
    ...checks.flatMap(({ check, fix }) => (fix ? [`${check}: ${fix}`] : [])),
    ...locks.map(({ artifact, pid, host, state }) => `lock of ${artifact}: process ${pid} on ${host}, ${state}`),
    ...models.map(({ artifact, evidence, problem }) => `registered: ${artifact} (${problem ?? evidence})`),
    ...(models.length === 0 ? ['nothing is registered; next: laya-artifacts build laya-tiny'] : []),
  ];
  return [
    table(['ROLE', 'STATE', 'MISSING'], roles.map(roleLine)),
    '',
    table(['CHECK', 'STATE', 'FOUND'], lines),
    '',
    ...notes.map(safeText),
  ].join('\n');
}

const roleLine = ({ role, state, missing }: RoleState): string[] => [role, state, missing.join(', ') || '-'];
