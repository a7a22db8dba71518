import { json, missing, type Reply, text } from './replies.js';
import type { Commit, NewFile, Repository } from './repos.js';
import { gitSha1, sha256 } from './repos.js';
import { type HubRequest, type HubState, isReply, locate, REPO, type Route } from './routes.js';

type Match = Record<string, string>;

/** The writing half of the hub's API, as its official clients use it. */
export const writeRoutes: readonly Route[] = [
  { methods: ['GET'], path: /^\/api\/whoami-v2$/, answer: whoAmI },
  { methods: ['POST'], path: /^\/api\/repos\/create$/, answer: create },
  { methods: ['POST'], path: /^\/api\/validate-yaml$/, answer: () => json({ errors: [], warnings: [] }) },
  { methods: ['POST'], path: new RegExp(`^/api/models/${REPO}/branch/(?<name>.+)$`), answer: branch },
  { methods: ['POST'], path: new RegExp(`^/api/models/${REPO}/tag/(?<revision>[^/]+)$`), answer: tag },
  { methods: ['POST'], path: new RegExp(`^/api/models/${REPO}/preupload/(?<revision>[^/]+)$`), answer: preupload },
  { methods: ['POST'], path: new RegExp(`^/api/models/${REPO}/paths-info/(?<revision>[^/]+)$`), answer: pathsInfo },
  { methods: ['GET'], path: new RegExp(`^/api/models/${REPO}/commits/(?<revision>[^/]+)$`), answer: commits },
  { methods: ['POST'], path: new RegExp(`^/api/models/${REPO}/commit/(?<revision>[^/]+)$`), answer: commit },
  { methods: ['POST'], path: new RegExp(`^/${REPO}\\.git/info/lfs/objects/batch$`), answer: batch },
  { methods: ['POST'], path: new RegExp(`^/${REPO}\\.git/info/lfs/verify$`), answer: verify },
  { methods: ['POST'], path: new RegExp(`^/${REPO}\\.git/info/lfs/complete$`), answer: complete },
];

/** What the other origin takes. */
export const storeRoutes: readonly Route[] = [
  { methods: ['PUT'], path: new RegExp(`^/upload/${REPO}/(?<digest>[0-9a-f]{64})(/(?<part>[0-9]+))?$`), answer: put },
];

const ATTRIBUTES = '*.gz filter=lfs diff=lfs merge=lfs -text\n*.safetensors filter=lfs diff=lfs merge=lfs -text\n';
const isLarge = (path: string): boolean => /\.(gz|safetensors)$/.test(path);
const parse = ({ body }: HubRequest): Record<string, unknown> => JSON.parse(body.toString() || '{}');
const repositoryOf = (match: Match, state: HubState): Repository => state.repository(match.repo ?? '');

function whoAmI({ headers }: HubRequest): Reply {
  if (!headers.authorization) return text(401, 'Invalid credentials');
  return json({ type: 'user', name: 'owner', orgs: [], auth: { type: 'access_token' } });
}

function create(request: HubRequest, _match: Match, state: HubState): Reply {
  const { name, organization, private: isPrivate } = parse(request);
  if (!request.headers.authorization) return text(401, 'Invalid credentials');
  const id = `${organization ?? 'owner'}/${name}`;
  const url = `${state.url}/${id}`;
  if (state.repositories.has(id)) return json({ error: 'You already created this model repo', url }, {}, 409);
  const repository = state.repository(id);
  repository.isPrivate = isPrivate === true;
  repository.commit({ '.gitattributes': ATTRIBUTES });
  return json({ url, name: id, id: '0'.repeat(24) });
}

function branch(request: HubRequest, match: Match, state: HubState): Reply {
  const { startingPoint = 'main' } = parse(request);
  const from = locate(request, { ...match, revision: String(startingPoint) }, state);
  if (isReply(from)) return from;
  const name = decodeURIComponent(match.name ?? '');
  if (repositoryOf(match, state).find(name)) return json({ error: 'Reference already exists' }, {}, 409);
  repositoryOf(match, state).setBranch(name, from.sha);
  return json({}, {}, 201);
}

function tag(request: HubRequest, match: Match, state: HubState): Reply {
  const at = locate(request, match, state);
  if (isReply(at)) return at;
  const { tags } = repositoryOf(match, state);
  const name = String(parse(request).tag);
  if (tags.has(name)) return json({ error: 'Tag already exists' }, {}, 409);
  tags.set(name, at.sha);
  return json({}, {}, 201);
}

function preupload(request: HubRequest, match: Match, state: HubState): Reply {
  const at = locate(request, match, state);
  if (isReply(at)) return at;
  const files = (parse(request).files as { path: string }[]).map(({ path }) => {
    const uploadMode = isLarge(path) ? 'lfs' : 'regular';
    return { path, uploadMode, shouldIgnore: false, oid: at.files.get(path)?.oid ?? null };
  });
  return json({ files });
}

function pathsInfo(request: HubRequest, match: Match, state: HubState): Reply {
  const at = locate(request, match, state);
  if (isReply(at)) return at;
  const form = request.headers['content-type']?.includes('form') && new URLSearchParams(request.body.toString());
  const paths = form ? form.getAll('paths') : (parse(request).paths as string[]);
  const found = paths.flatMap((path) => {
    const file = at.files.get(path);
    if (!file) return [];
    const { oid, lfs, bytes, sha256: digest } = file;
    const pointer = lfs ? { lfs: { oid: digest, size: bytes.length, pointerSize: 134 } } : {};
    return [{ type: 'file', path, oid, size: bytes.length, ...pointer }];
  });
  return json(found);
}

function commits(request: HubRequest, match: Match, state: HubState): Reply {
  const at = locate(request, match, state);
  if (isReply(at)) return at;
  const list = repositoryOf(match, state).history(at.sha);
  return json(
    list.map(({ sha }) => ({ id: sha, title: 'commit', message: '', authors: [], date: new Date(0).toISOString() })),
  );
}

/** One commit from its lines; 412 when the branch is not at the parent that they name. */
function commit(request: HubRequest, match: Match, state: HubState): Reply {
  const at = locate(request, match, state);
  if (isReply(at)) return at;
  const lines = request.body
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const { parentCommit } = lines[0].value;
  if (parentCommit !== undefined && parentCommit !== null && parentCommit !== at.sha)
    return json({ error: 'The branch has moved since' }, {}, 412);
  const repository = repositoryOf(match, state);
  const files = applyLines(at, lines.slice(1), repository);
  if (!files) return json({ error: 'An LFS object is missing' }, {}, 400);
  const { sha } = repository.commit(files, decodeURIComponent(match.revision ?? 'main'));
  const commitUrl = `${state.url}/${match.repo}/commit/${sha}`;
  return json({ success: true, commitOid: sha, commitUrl, hookOutput: '', pullRequestUrl: null });
}

interface Line {
  readonly key: 'file' | 'lfsFile' | 'deletedFile' | 'deletedFolder';
  readonly value: { readonly path: string; readonly content: string; readonly oid: string; readonly encoding?: string };
}

function applyLines(at: Commit, lines: readonly Line[], repository: Repository): Record<string, NewFile> | undefined {
  const files = new Map<string, NewFile>([...at.files].map(([path, { bytes, lfs }]) => [path, { bytes, lfs }]));
  for (const { key, value } of lines) {
    const { path, content = '', oid } = value;
    if (key === 'file') files.set(path, { bytes: Buffer.from(content, 'base64'), lfs: false });
    else if (key === 'deletedFile') files.delete(path);
    else if (key === 'lfsFile') {
      const bytes = repository.lfsContent(oid);
      if (!bytes) return undefined;
      files.set(path, { bytes, lfs: true });
    }
  }
  return Object.fromEntries(files);
}

function batch(request: HubRequest, match: Match, state: HubState): Reply {
  const at = locate(request, match, state);
  if (isReply(at)) return at;
  const repository = repositoryOf(match, state);
  const { objects, transfers } = parse(request) as { objects: { oid: string; size: number }[]; transfers?: string[] };
  const multipart = transfers?.includes('multipart') === true;
  const answers = objects.map(({ oid, size }) => {
    if (repository.lfsContent(oid)) return { oid, size };
    const base = `${state.url}/${match.repo}.git/info/lfs`;
    const store = `${state.contentUrl}/upload/${match.repo}/${oid}`;
    const signed = (url: string): string => `${url}?signature=secret-of-${oid.slice(0, 8)}`;
    const verifyAction = { href: `${base}/verify`, header: {} };
    if (!multipart || size <= state.partSize)
      return {
        oid,
        size,
        authenticated: true,
        actions: { upload: { href: signed(store), header: {} }, verify: verifyAction },
      };
    const count = Math.ceil(size / state.partSize);
    const parts = Array.from({ length: count }, (_, i) => [String(i + 1), signed(`${store}/${i + 1}`)]);
    const header = { chunk_size: String(state.partSize), ...Object.fromEntries(parts) };
    return {
      oid,
      size,
      authenticated: true,
      actions: { upload: { href: `${base}/complete`, header }, verify: verifyAction },
    };
  });
  const kind = multipart && objects.some(({ size }) => size > state.partSize) ? 'multipart' : 'basic';
  return json({ transfer: kind, objects: answers }, { 'content-type': 'application/vnd.git-lfs+json' });
}

/** A whole content, which must have its digest, or one of its parts. */
function put(request: HubRequest, match: Match, state: HubState): Reply {
  const { digest = '', part } = match;
  const { uploads } = repositoryOf(match, state);
  if (!request.url.searchParams.has('signature')) return text(403, 'not signed');
  if (part === undefined && sha256(request.body) !== digest) return text(400, 'other bytes');
  uploads.set(part === undefined ? digest : `${digest}/${part}`, request.body);
  return text(200, '', { etag: `"${gitSha1(request.body)}"` });
}

function complete(request: HubRequest, match: Match, state: HubState): Reply {
  const { uploads } = repositoryOf(match, state);
  const { oid, parts } = parse(request) as { oid: string; parts: { partNumber: number; etag: string }[] };
  const found = parts.map(({ partNumber, etag }) => {
    const bytes = uploads.get(`${oid}/${partNumber}`);
    return bytes && etag.includes(gitSha1(bytes)) ? bytes : undefined;
  });
  if (found.includes(undefined)) return json({ error: 'a part is missing' }, {}, 400);
  const whole = Buffer.concat(found as Buffer[]);
  if (sha256(whole) !== oid) return json({ error: 'other bytes' }, {}, 400);
  uploads.set(oid, whole);
  return json({});
}

function verify(request: HubRequest, match: Match, state: HubState): Reply {
  const { oid, size } = parse(request);
  const bytes = repositoryOf(match, state).lfsContent(String(oid));
  return bytes?.length === size ? json({}) : missing('EntryNotFound');
}
