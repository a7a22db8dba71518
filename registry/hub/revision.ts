import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isSystemError } from '../../schemas/errors.js';
import { makeFolder, writeFileDurably } from '../durable.js';
import { HubError } from './errors.js';
import { type HubPlace, hubPlace } from './layout.js';
import { displayUrl } from './reply.js';
import type { HubTransport } from './transport.js';

const MAX_INFO_BYTES = 64 << 20;

export const isCommit = (revision: string): boolean => /^[0-9a-f]{40}$/.test(revision);

/** Throws HubError HUB_NAME for what can be no branch or tag. */
export function checkRevision(revision: string): void {
  if (/^[A-Za-z0-9][\w./-]{0,199}$/.test(revision) && !/\.\.|\/\/|\/$|\.$/.test(revision)) return;
  throw new HubError('HUB_NAME', `not a branch, tag or commit: ${JSON.stringify(revision.slice(0, 80))}`, {
    expected: 'letters, digits and . _ / -',
    found: revision.slice(0, 80),
  });
}

/** The commit that a branch or tag is at now, from the hub. Throws HubError. */
export async function headCommit(transport: HubTransport, repo: string, revision: string): Promise<string> {
  checkRevision(revision);
  const url = transport.url(['api', 'models', ...repo.split('/'), 'revision', revision]);
  const { value } = await transport.json(url, MAX_INFO_BYTES);
  const sha = (value as { sha?: unknown } | null)?.sha;
  if (typeof sha === 'string' && isCommit(sha)) return sha;
  throw new HubError('HUB_LISTING', 'the hub did not tell the commit', {
    where: displayUrl(url),
    expected: 'sha: 40 hex digits',
    found: typeof sha,
    hint: 'check the endpoint (HF_ENDPOINT)',
  });
}

/**
 * The place in the cache of a commit, or of what a branch or tag is at now. Which commit that was is kept in the cache,
 * as huggingface_hub keeps it; when `offline`, that is what counts.
 *
 * @throws HubError; OFFLINE, by way of the transport, for a branch that the cache does not know
 */
export async function placeOf(
  transport: HubTransport,
  cacheDir: string,
  repo: string,
  revision: string,
  offline: boolean,
): Promise<HubPlace> {
  if (isCommit(revision)) return hubPlace(cacheDir, { repo, revision });
  checkRevision(revision);
  const { refs } = hubPlace(cacheDir, { repo, revision: '0'.repeat(40) });
  const path = join(refs, revision);
  const kept = offline ? await readRef(path) : undefined;
  const commit = kept ?? (await headCommit(transport, repo, revision));
  if (kept === undefined) {
    await makeFolder(dirname(path));
    await writeFileDurably(path, commit);
  }
  return hubPlace(cacheDir, { repo, revision: commit });
}

async function readRef(path: string): Promise<string | undefined> {
  try {
    const commit = (await readFile(path, 'utf8')).trim();
    return isCommit(commit) ? commit : undefined;
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}
