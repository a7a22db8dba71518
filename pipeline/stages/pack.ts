import { readFile, stat } from 'node:fs/promises';
import { homedir, hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeArchive } from '../../registry/archive/write.js';
import { readWhole } from '../../registry/generation.js';
import type { LargeFile } from '../../registry/hub/upload.js';
import { archivePath, entryOf } from '../../registry/index/prebuilt.js';
import { type ArtifactKey, COMPILED, MANIFEST } from '../../registry/paths.js';
import type { Staging } from '../../registry/staging.js';
import { listTree } from '../../registry/tree.js';
import type { IndexEntry, Manifest } from '../../schemas/generated/types.js';
import { PublishError } from '../errors.js';
import type { Context } from '../events.js';

/** An archive that is ready to go out, verified while it was written. */
export interface Packed extends LargeFile {
  readonly key: ArtifactKey;
  readonly entry: IndexEntry;
  readonly manifest: Manifest;
}

/** Larger files hold weights, not text. */
const TEXT_BYTES = 16 << 20;
const THREADS = 2;

/** Every artifact as a deterministic archive in staging; each byte is hashed once. */
export async function pack(
  { keys, staging }: { keys: readonly ArtifactKey[]; staging: Staging },
  context: Context,
): Promise<Packed[]> {
  const packed: Packed[] = [];
  for (const [done, key] of keys.entries()) {
    context.emit({ kind: 'progress', label: 'packing', done, total: keys.length });
    const path = join(staging.path, `${key.model.name}-L${key.bucket}.tar.gz`);
    const write = async ({ folder }: { folder: string }) => {
      await refusePrivate(folder, context);
      return writeArchive(key, folder, path, { threads: THREADS, signal: context.signal });
    };
    const { artifact, value } = await readWhole(context.root, key, write);
    const { manifest } = artifact;
    const entry = entryOf(archivePath(key, manifest), manifest, value);
    packed.push({ key, entry, manifest, path, sha256: value.sha256, bytes: value.bytes });
  }
  return packed;
}

/** Throws PublishError PRIVATE_CONTENT when a text holds a path, name or secret of this machine (fault F26). */
async function refusePrivate(folder: string, { env, root, tools }: Context): Promise<void> {
  const words = { 'the home folder': env.HOME ?? homedir(), 'a temporary folder': tmpdir(), 'the artifact root': root };
  const needles = Object.entries({
    ...words,
    'the tools folder': tools,
    'the host name': hostname(),
    'the token': env.HF_TOKEN,
  })
    .filter((pair): pair is [string, string] => (pair[1]?.trim().length ?? 0) >= 5)
    .map(([what, text]) => ({ what, bytes: Buffer.from(text.trim()) }));
  const files = (await listTree(join(folder, COMPILED))).filter((entry) => !entry.folder);
  for (const path of [MANIFEST, ...files.map((entry) => `${COMPILED}/${entry.path}`)]) {
    const content = await readText(join(folder, path));
    const found = content && needles.find(({ bytes }) => content.includes(bytes));
    if (!found) continue;
    throw new PublishError('PRIVATE_CONTENT', `${path} holds ${found.what} of this machine`, {
      where: join(folder, path),
      hint: 'build the artifact again: no stage writes such things',
    });
  }
}

async function readText(path: string): Promise<Buffer | undefined> {
  const { size } = await stat(path);
  return size > TEXT_BYTES ? undefined : readFile(path);
}
