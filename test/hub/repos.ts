import { createHash } from 'node:crypto';

/** One file of a commit, with the digests the hub names it by. */
export interface HubFile {
  readonly bytes: Buffer;
  readonly lfs: boolean;
  readonly sha256: string;
  /** Git's SHA-1 of the blob: of the pointer text for an LFS file. */
  readonly oid: string;
}

export type NewFile = string | Buffer | { readonly bytes: Buffer; readonly lfs: boolean };

export interface Commit {
  readonly sha: string;
  /** Empty for the first one. */
  readonly parent: string;
  readonly files: ReadonlyMap<string, HubFile>;
}

export const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
export const gitSha1 = (bytes: Buffer): string =>
  createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');

export const pointerText = (bytes: Buffer): string =>
  `version https://git-lfs.github.com/spec/v1\noid sha256:${sha256(bytes)}\nsize ${bytes.length}\n`;

/** A repository: commits that never change, and branches that point to them. */
export class Repository {
  /** When set, requests without this bearer token get 401. */
  token: string | undefined;
  readonly name: string;
  isPrivate = false;
  /** Contents of large files that no commit points to yet, by SHA-256. */
  readonly uploads = new Map<string, Buffer>();
  readonly tags = new Map<string, string>();
  private readonly commits = new Map<string, Commit>();
  private readonly branches = new Map<string, string>();

  constructor(name: string) {
    this.name = name;
  }

  /** Adds a commit with exactly these files and moves the branch to it. Weights are LFS files when nothing is said. */
  commit(files: Readonly<Record<string, NewFile>>, branch = 'main'): Commit {
    const stored = new Map(Object.entries(files).map(([path, file]) => [path, store(path, file)]));
    const parent = this.branches.get(branch) ?? '';
    const text = [parent, this.commits.size, ...[...stored].map(([path, { oid }]) => `${path} ${oid}`)].join('\n');
    const commit = { parent, sha: createHash('sha1').update(text).digest('hex'), files: stored };
    this.commits.set(commit.sha, commit);
    this.branches.set(branch, commit.sha);
    return commit;
  }

  /** A commit by its hash, a branch or a tag. */
  find(revision: string): Commit | undefined {
    return this.commits.get(this.branches.get(revision) ?? this.tags.get(revision) ?? revision);
  }

  /** Makes a branch at a commit, or moves it there. */
  setBranch(branch: string, commit: string): void {
    this.branches.set(branch, commit);
  }

  /** Commits of a branch, the newest first. */
  history(revision: string): Commit[] {
    const found: Commit[] = [];
    for (let commit = this.find(revision); commit; commit = this.commits.get(commit.parent)) found.push(commit);
    return found;
  }

  /** Content of a large file that was uploaded or is in any commit, by its SHA-256. */
  lfsContent(digest: string): Buffer | undefined {
    const uploaded = this.uploads.get(digest);
    if (uploaded) return uploaded;
    for (const { files } of this.commits.values()) {
      for (const file of files.values()) if (file.lfs && file.sha256 === digest) return file.bytes;
    }
    return undefined;
  }
}

function store(path: string, file: NewFile): HubFile {
  const given = typeof file === 'string' ? Buffer.from(file) : file;
  const { bytes, lfs } = Buffer.isBuffer(given) ? { bytes: given, lfs: path.endsWith('.safetensors') } : given;
  const oid = gitSha1(lfs ? Buffer.from(pointerText(bytes)) : bytes);
  return { bytes, lfs, sha256: sha256(bytes), oid };
}
