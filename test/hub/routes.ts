import { content, json, missing, type Reply, text } from './replies.js';
import type { Commit, Repository } from './repos.js';

/** A request as routes see it. */
export interface HubRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
}

/** What routes know of the hub. */
export interface HubState {
  readonly repositories: ReadonlyMap<string, Repository>;
  /** The endpoint. */
  readonly url: string;
  /** Base URL that large files are redirected to: another origin than the hub's. */
  readonly contentUrl: string;
  /** Large files above so many bytes are uploaded in parts of that size. */
  readonly partSize: number;
  /** Finds a repository or makes it. */
  repository(name: string): Repository;
  /** Entries on one page of a listing. */
  readonly pageSize: number;
}

export interface Route {
  readonly methods: readonly string[];
  readonly path: RegExp;
  readonly answer: (request: HubRequest, match: Record<string, string>, state: HubState) => Reply;
}

export const REPO = '(?<repo>[^/]+/[^/]+)';

/** The reading half of the hub's API, as its official clients use it. */
export const readRoutes: readonly Route[] = [
  { methods: ['GET'], path: new RegExp(`^/api/models/${REPO}/tree/(?<revision>[^/]+)$`), answer: tree },
  { methods: ['GET'], path: new RegExp(`^/api/models/${REPO}(/revision/(?<revision>[^/]+))?$`), answer: info },
  { methods: ['GET', 'HEAD'], path: new RegExp(`^/${REPO}/resolve/(?<revision>[^/]+)/(?<file>.+)$`), answer: resolve },
];

/** What the other origin serves. */
export const contentRoutes: readonly Route[] = [
  { methods: ['GET', 'HEAD'], path: /^\/lfs\/(?<owner>[^/]+)\/(?<name>[^/]+)\/(?<digest>[0-9a-f]{64})$/, answer: lfs },
];

/** The repository and commit a request is about, or the refusal. */
export function locate(request: HubRequest, match: Record<string, string>, state: HubState): Commit | Reply {
  const repository = state.repositories.get(match.repo ?? '');
  if (!repository) return missing('RepoNotFound');
  const allowed = repository.token === undefined || request.headers.authorization === `Bearer ${repository.token}`;
  if (!allowed) return text(401, 'Invalid credentials', { 'x-error-code': 'RepoNotFound' });
  return repository.find(decodeURIComponent(match.revision ?? 'main')) ?? missing('RevisionNotFound');
}

export const isReply = (found: Commit | Reply): found is Reply => 'status' in found;

function tree(request: HubRequest, match: Record<string, string>, state: HubState): Reply {
  const commit = locate(request, match, state);
  if (isReply(commit)) return commit;
  const entries = treeEntries(commit, request.url.searchParams.get('recursive') === 'true');
  const start = Number(request.url.searchParams.get('cursor') ?? 0);
  const page = entries.slice(start, start + state.pageSize);
  if (start + state.pageSize >= entries.length) return json(page);
  const next = new URL(request.url);
  next.searchParams.set('cursor', String(start + state.pageSize));
  return json(page, { link: `<${next.href}>; rel="next"` });
}

function treeEntries(commit: Commit, recursive: boolean): unknown[] {
  const folders = new Set<string>();
  const files: unknown[] = [];
  for (const [path, { bytes, lfs, oid, sha256 }] of commit.files) {
    const parts = path.split('/');
    for (let depth = 1; depth < parts.length; depth++) folders.add(parts.slice(0, depth).join('/'));
    if (!recursive && parts.length > 1) continue;
    const pointer = lfs ? { lfs: { oid: sha256, size: bytes.length, pointerSize: 134 } } : {};
    files.push({ type: 'file', oid, size: bytes.length, ...pointer, path });
  }
  const shown = [...folders].filter((path) => recursive || !path.includes('/'));
  return [...shown.map((path) => ({ type: 'directory', oid: '0'.repeat(40), size: 0, path })), ...files];
}

function info(request: HubRequest, match: Record<string, string>, state: HubState): Reply {
  const commit = locate(request, match, state);
  if (isReply(commit)) return commit;
  const siblings = [...commit.files.keys()].map((rfilename) => ({ rfilename }));
  const { isPrivate } = state.repository(match.repo ?? '');
  return json({
    _id: '0'.repeat(24),
    id: match.repo,
    modelId: match.repo,
    sha: commit.sha,
    private: isPrivate,
    gated: false,
    downloads: 0,
    likes: 0,
    lastModified: new Date(0).toISOString(),
    siblings,
  });
}

function resolve(request: HubRequest, match: Record<string, string>, state: HubState): Reply {
  const commit = locate(request, match, state);
  if (isReply(commit)) return commit;
  const file = commit.files.get(decodeURIComponent(match.file ?? ''));
  if (!file)
    return { ...missing('EntryNotFound'), headers: { 'x-error-code': 'EntryNotFound', 'x-repo-commit': commit.sha } };
  if (!file.lfs) {
    return content(file.bytes, request.headers.range, { etag: `"${file.oid}"`, 'x-repo-commit': commit.sha });
  }
  return text(302, '', {
    location: `${state.contentUrl}/lfs/${match.repo}/${file.sha256}?signature=secret-of-${file.sha256.slice(0, 8)}`,
    etag: `"${file.oid}"`,
    'x-linked-etag': `"${file.sha256}"`,
    'x-linked-size': String(file.bytes.length),
    'x-repo-commit': commit.sha,
  });
}

function lfs(request: HubRequest, match: Record<string, string>, state: HubState): Reply {
  const repository = state.repositories.get(`${match.owner}/${match.name}`);
  const bytes = repository?.lfsContent(match.digest ?? '');
  return bytes ? content(bytes, request.headers.range, { etag: `"${match.digest}"` }) : text(404, 'no such object');
}
