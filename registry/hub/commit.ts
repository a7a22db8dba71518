import { HubError } from './errors.js';
import { displayUrl } from './reply.js';
import { isCommit } from './revision.js';
import type { HubTransport } from './transport.js';
import type { LargeFile } from './upload.js';

/** What one commit changes. Contents of large files are uploaded before. */
export interface NewCommit {
  readonly repo: string;
  readonly branch: string;
  /** The commit that the branch must be at; otherwise nothing happens. */
  readonly parent: string;
  readonly message: string;
  readonly large: readonly (LargeFile & { readonly target: string })[];
  readonly texts: readonly { readonly target: string; readonly text: string }[];
  /** Paths that the commit no longer has. */
  readonly removed: readonly string[];
}

/**
 * Makes one commit, or none. Not repeated: after an error that leaves open what happened, the branch tells.
 * Throws HubError; HUB_CONFLICT when the branch is not at the parent any more.
 */
export async function makeCommit(transport: HubTransport, commit: NewCommit): Promise<string> {
  const { repo, branch, parent, message, large, texts, removed } = commit;
  const header = { summary: message, description: '', parentCommit: parent };
  const files = texts.map(({ target, text }) => {
    return { key: 'file', value: { content: Buffer.from(text).toString('base64'), path: target, encoding: 'base64' } };
  });
  const pointers = large.map(({ target, sha256, bytes }) => {
    return { key: 'lfsFile', value: { path: target, algo: 'sha256', oid: sha256, size: bytes } };
  });
  const gone = removed.map((path) => ({ key: 'deletedFile', value: { path } }));
  const lines = [{ key: 'header', value: header }, ...files, ...pointers, ...gone].map((line) => JSON.stringify(line));
  const url = transport.url(['api', 'models', ...repo.split('/'), 'commit', branch]);
  const reply = await transport.post(url, `${lines.join('\n')}\n`, 'application/x-ndjson');
  const oid = (reply as { commitOid?: unknown } | undefined)?.commitOid;
  if (typeof oid === 'string' && isCommit(oid)) return oid;
  throw new HubError('HUB_UPLOAD', 'the hub did not tell the commit that it made', {
    where: displayUrl(url),
    expected: 'commitOid: 40 hex digits',
    found: typeof oid,
    transient: true,
  });
}

/** Makes a model repository; one that is there already stays as it is. */
export async function createRepository(transport: HubTransport, repo: string, isPrivate: boolean): Promise<void> {
  const [organization, name] = repo.split('/');
  const body = JSON.stringify({ type: 'model', name, organization, private: isPrivate });
  await made(() => transport.retrying(() => transport.post(transport.url(['api', 'repos', 'create']), body)));
}

/** Makes a branch from the main one. */
export async function createBranch(transport: HubTransport, repo: string, branch: string): Promise<void> {
  const url = transport.url(['api', 'models', ...repo.split('/'), 'branch', branch]);
  await made(() => transport.retrying(() => transport.post(url, '{}')));
}

/** Tags a commit. Throws HubError HUB_EXISTS when the tag is there. */
export async function createTag(transport: HubTransport, repo: string, commit: string, tag: string): Promise<void> {
  const url = transport.url(['api', 'models', ...repo.split('/'), 'tag', commit]);
  await transport.retrying(() => transport.post(url, JSON.stringify({ tag })));
}

async function made(make: () => Promise<unknown>): Promise<void> {
  await make().catch((error: unknown) => {
    if (!(error instanceof HubError) || error.code !== 'HUB_EXISTS') throw error;
  });
}
