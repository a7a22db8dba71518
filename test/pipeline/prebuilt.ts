import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FetchOrder } from '../../pipeline/fetch.js';
import { openHub } from '../../pipeline/hub.js';
import { portableToolchain } from '../../pipeline/toolchain/portable.js';
import type { Toolchain } from '../../pipeline/toolchain/toolchain.js';
import { writeArchive } from '../../registry/archive/write.js';
import { archivePath, entryOf, indexText, mergeIndex } from '../../registry/index/prebuilt.js';
import { findModel } from '../../registry/models.js';
import { artifactFolder } from '../../registry/paths.js';
import { readArtifact } from '../../registry/read.js';
import type { IndexEntry } from '../../schemas/generated/types.js';
import type { Loose } from '../files.js';
import type { NewFile } from '../hub/repos.js';
import type { TestHub } from '../hub/server.js';
import { quickClock } from '../registry/hub/fixture.js';
import { testContext } from './context.js';

export const REPO = 'owner/prebuilt';
export const MODEL = findModel('laya-tiny');
const NOW = new Date('2026-01-02T03:04:05Z');

/** An archive as it would be published. */
export interface Prebuilt {
  readonly entry: IndexEntry;
  readonly bytes: Buffer;
}

/** Archives of registered artifacts of laya-tiny. */
export async function prebuiltFrom(root: string, buckets: readonly number[]): Promise<Prebuilt[]> {
  const all: Prebuilt[] = [];
  for (const bucket of buckets) {
    const key = { model: MODEL, bucket };
    const folder = artifactFolder(root, key);
    const path = join(root, `L${bucket}.tar.gz`);
    const written = await writeArchive(key, folder, path, { threads: 0, signal: new AbortController().signal });
    const { manifest } = await readArtifact(key, folder);
    all.push({ entry: entryOf(archivePath(key, manifest), manifest, written), bytes: await readFile(path) });
  }
  return all;
}

/** The files of a repository with these archives; `change` edits the index. */
export function filesOf(
  all: readonly Prebuilt[],
  change: (index: Loose) => unknown = (index) => index,
): Record<string, NewFile> {
  const index = mergeIndex(
    undefined,
    all.map(({ entry }) => entry),
    NOW,
  );
  const archives = all.map(({ entry, bytes }) => [entry.path, { bytes, lfs: true }]);
  const changed = change(JSON.parse(indexText(index)));
  const text = typeof changed === 'string' ? changed : JSON.stringify(changed);
  return { ...Object.fromEntries(archives), 'index.json': text };
}

/** A context whose hub is the test's, with a cache below the root. */
export function hubContext(hub: TestHub, root: string, change: Parameters<typeof testContext>[1] = {}) {
  const env = { ...process.env, HF_ENDPOINT: hub.url, HF_HUB_CACHE: join(root, 'hub'), HF_TOKEN: '', ...change.env };
  return testContext(root, { ...change, env });
}

/** The hub of a context, which never waits. */
export const quickHub = (context: ReturnType<typeof testContext>, timing: object = {}) =>
  openHub(context, { ...quickClock(), ...timing });

const answers = new Map<string, Record<string, Float32Array>>();

/** The portable toolchain; what it answered once for a bucket's inputs it does not calculate again. */
function rememberingToolchain(): Toolchain {
  const toolchain = portableToolchain();
  const bucketOf = (model: string): string => /L\d+/.exec(model)?.[0] ?? model;
  return {
    ...toolchain,
    open: async (model) => {
      let real: ReturnType<Toolchain['open']> | undefined;
      const run = async (inputs: Record<string, Float32Array>) => {
        const hash = createHash('sha1').update(bucketOf(model));
        for (const values of Object.values(inputs))
          hash.update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
        const name = hash.digest('hex');
        const known = answers.get(name);
        if (known) return known;
        real ??= toolchain.open(model);
        const outputs = await (await real).run(inputs);
        answers.set(name, outputs);
        return outputs;
      };
      return { run, release: async () => (await real)?.release() };
    },
  };
}

export function fetchOrder(change: Partial<FetchOrder> = {}): FetchOrder {
  return {
    model: MODEL,
    buckets: [64],
    repo: REPO,
    revision: 'main',
    allowRollback: false,
    force: false,
    toolchain: rememberingToolchain(),
    ...change,
  };
}
