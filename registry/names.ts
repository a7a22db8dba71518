/** A registered artifact's folder name; the groups are the quantization and the bucket. */
export const ARTIFACT_NAME = /^bc1s-masked(?:-([a-z0-9-]+))?-L(\d+)-B1$/;

/** What a folder's name says it is: an artifact's place, or a copy beside one (protocol §1). */
export interface FolderName {
  readonly kind: 'plain' | 'old' | 'failed' | 'pruning';
  /** The name it had before, or stands beside. */
  readonly base: string;
  /** The process that made the copy. */
  readonly pid?: number;
}

const COPY = /^(.+)\.(old|failed)-(\d+)$/;
const CLAIMED = /^(.+)\.(pruning)-(\d+)-[0-9a-f]{8}$/;

export function parseName(name: string): FolderName {
  const [, base, kind, pid] = CLAIMED.exec(name) ?? COPY.exec(name) ?? [];
  if (base === undefined) return { kind: 'plain', base: name };
  return { kind: kind as FolderName['kind'], base, pid: Number(pid) };
}
