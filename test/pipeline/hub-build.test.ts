import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { buildArtifacts } from '../../pipeline/line.js';
import { MODELS, type ModelSpec } from '../../registry/models.js';
import { artifactFolder, MANIFEST } from '../../registry/paths.js';
import type { Commit, NewFile } from '../hub/repos.js';
import { TestHub } from '../hub/server.js';
import { codeOf, treeOf, workspace } from '../workspace.js';
import { testContext, testOrder } from './context.js';

const folder = workspace();
const TINY = MODELS.find(({ name }) => name === 'laya-tiny')!;
const PATHS = [
  'model.safetensors',
  'rl_agent_config.json',
  'encoder/config.json',
  'tokenizer/tokenizer.json',
  'tokenizer/tokenizer_config.json',
];

let hub: TestHub;
beforeAll(async () => {
  hub = await TestHub.start();
});
afterAll(() => hub.close());
afterEach(() => hub.reset());

/** laya-tiny as if it were a published model: its files in a repository, pinned by commit. */
async function publish(change: Record<string, NewFile> = {}): Promise<{ model: ModelSpec; commit: Commit }> {
  const files = await Promise.all(
    PATHS.map(async (path) => [path, await readFile(join('models/laya-tiny', path))] as const),
  );
  const repo = 'owner/published';
  const commit = hub.repository(repo).commit({ ...Object.fromEntries(files), ...change });
  return { model: { ...TINY, repo, revision: commit.sha, bundled: false }, commit };
}

const contextFor = (root: string, cache: string, more = {}) =>
  testContext(root, { env: { ...process.env, HF_ENDPOINT: hub.url, HF_HUB_CACHE: cache }, ...more });

describe('a build of a published model', () => {
  it('downloads the pinned revision, proves and registers it, then needs no network', async () => {
    const [root, cache] = [folder(), folder()];
    const { model } = await publish();
    const first = await buildArtifacts(testOrder({ model }), contextFor(root, cache));
    expect(first.rows[0]?.outcome).toBe('registered');
    const text = await readFile(join(artifactFolder(root, { model, bucket: 64 }), MANIFEST), 'utf8');
    expect(JSON.parse(text).source).toMatchObject({ repo: model.repo, revision: model.revision });

    const requests = hub.arrivals.length;
    const offline = contextFor(root, cache, { offline: true });
    const again = await buildArtifacts(testOrder({ model, force: true }), offline);
    expect([again.rows[0]?.outcome, again.rows[0]?.artifact_sha256]).toEqual([
      'registered',
      first.rows[0]?.artifact_sha256,
    ]);
    expect(hub.arrivals.length).toBe(requests);
  });

  it('registers nothing when the weights are not the pinned ones', async () => {
    const [root, cache] = [folder(), folder()];
    const weights = await readFile('models/laya-tiny/model.safetensors');
    weights[weights.length - 9]! ^= 1;
    const { model } = await publish({ 'model.safetensors': weights });
    expect(await codeOf(() => buildArtifacts(testOrder({ model }), contextFor(root, cache)))).toBe('HUB_PIN');
    expect((await treeOf(root)).filter((path) => /manifest|rejected|staging\/./.test(path))).toEqual([]);
    expect((await treeOf(cache)).filter((path) => path.endsWith('.safetensors'))).toEqual([]);
  });

  it('says what is missing when nothing may be downloaded', async () => {
    const [root, cache] = [folder(), folder()];
    const { model } = await publish();
    const context = contextFor(root, cache, { offline: true });
    expect(await codeOf(() => buildArtifacts(testOrder({ model }), context))).toBe('OFFLINE');
    expect(hub.arrivals).toEqual([]);
  });

  it('uses a local folder in its place', async () => {
    const [root, local] = [folder(), folder()];
    const { model } = await publish();
    for (const path of PATHS) {
      await mkdir(join(local, path, '..'), { recursive: true });
      await writeFile(join(local, path), await readFile(join('models/laya-tiny', path)));
    }
    const order = testOrder({ model, checkpoint: local });
    expect((await buildArtifacts(order, contextFor(root, folder()))).rows[0]?.outcome).toBe('registered');
    expect(hub.arrivals).toEqual([]);
  });
});
