import { execFile } from 'node:child_process';
import { appendFile, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { ensurePython } from '../../pipeline/tools/python.js';
import { findModel } from '../../registry/models.js';
import { artifactFolder, COMPILED } from '../../registry/paths.js';
import { cli } from '../pipeline/cli.js';
import { testContext } from '../pipeline/context.js';
import { registerLayaTiny } from '../registered.js';
import { FILES, writeArtifact } from '../registry/artifact.js';
import { workspace } from '../workspace.js';

const folder = workspace();
const LAYA = findModel('laya');
const KEY = { model: LAYA, bucket: 64 };
/** The profile that the stand-in for a Mac has. */
const PLATFORM = { soc: 'Apple M4 Max', macos: '27.0', macos_build: '26A428', coremltools: '9.0' };
let python = '';

beforeAll(async () => {
  ({ python } = await ensurePython('peer-store', testContext('')));
}, 300_000);

/** laya-apple's own command line, with only its calls to a Mac stubbed. */
function peer(root: string, ...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const script = ['-I', 'test/peer/laya_apple_cli.py', 'artifacts', ...args];
  const env = { PATH: process.env.PATH, HOME: root, LAYA_APPLE_CACHE: root, HF_HUB_OFFLINE: '1', LC_ALL: 'C.UTF-8' };
  return new Promise((resolve) => {
    execFile(python, script, { env }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    );
  });
}

/** An artifact of laya with Apple evidence, as a Mac with our pipeline registers it. Its model is no real one. */
async function registerApple(root: string): Promise<string> {
  const target = artifactFolder(root, KEY);
  await writeArtifact(target, FILES, (manifest) => {
    const { name: model, repo, revision, weightsSha256 } = LAYA;
    const { evidence, parity, placement, platform } = structuredClone(manifest);
    const measured = { constants: 9, off_ane: {}, cost_share: { ane: 1 }, operations: { 'ios18.conv': 3 } };
    const loadProbe = { ane_ms: 3.5, cpu_ms: 9, ratio: 0.389, max_ratio: 0.8, runs: 5 };
    Object.assign(manifest, { source: { model, repo, revision, weights_sha256: weightsSha256 }, platform: PLATFORM });
    Object.assign(manifest.placement, { compute_units: 'CPU_AND_NE', ops: { ane: 3, gpu: 0, cpu: 0 }, ...measured });
    const profile = 'apple-m4-max-macos27-coremltools9.0';
    Object.assign(manifest.evidence!, {
      kind: 'apple',
      profile,
      measured_at: '2026-01-02T03:04:05Z',
      load_probe: loadProbe,
    });
    Object.assign(manifest, { other_evidence: [{ evidence, parity, placement, platform }] });
  });
  return target;
}

const ours = async (root: string, ...args: string[]) => {
  const run = await cli([...args, '--json'], { LAYA_APPLE_CACHE: root });
  return { code: run.code, value: run.stdout === '' ? undefined : JSON.parse(run.stdout), stderr: run.stderr };
};

describe('laya-apple and this project on one store', () => {
  it('lists and verifies ours, and both notice a changed byte', async () => {
    const root = folder();
    const target = await registerApple(root);
    const listed = await peer(root, 'list', '--capabilities');
    expect([listed.code, listed.stdout]).toEqual([0, expect.stringContaining(LAYA.revision)]);
    expect(await peer(root, 'verify', 'laya', '--length', '64')).toMatchObject({ code: 0 });
    expect((await ours(root, 'verify', 'laya')).value).toMatchObject([{ ok: true }]);

    await appendFile(join(target, COMPILED, 'weights/weight.bin'), 'x');
    expect((await ours(root, 'verify', 'laya')).value).toMatchObject([
      { ok: false, problem: { code: 'TREE_MISMATCH' } },
    ]);
    expect((await peer(root, 'verify', 'laya', '--length', '64')).code).not.toBe(0);
  });

  it('imports what we export, and we read, list and verify what it registered', async () => {
    const [root, other, out] = [folder(), folder(), folder()];
    await registerApple(root);
    expect(await ours(root, 'export', 'laya', '--length', '64', '--out', out)).toMatchObject({ code: 0 });
    const imported = await peer(other, 'import', join(out, 'laya-L64.tar.gz'));
    expect([imported.code, imported.stderr]).toEqual([0, expect.any(String)]);
    expect((await ours(other, 'verify', 'laya')).value).toMatchObject([{ ok: true }]);
    const [row] = (await ours(other, 'list')).value;
    expect(row).toMatchObject({ bucket: 64, status: 'validated', source: { revision: LAYA.revision }, problem: null });
  });

  it('writes archives that we read, and that say whose evidence they carry', async () => {
    const [root, out] = [folder(), folder()];
    await registerApple(root);
    expect(await peer(root, 'export', 'laya', '--length', '64', '--out', out)).toMatchObject({ code: 0 });
    const [name] = (await readdir(out)).filter((one) => one.endsWith('.tar.gz'));
    const inspected = await ours(folder(), 'inspect', join(out, name!));
    expect([inspected.code, inspected.stderr]).toEqual([0, '']);

    // Apple's evidence can't be measured here, so it is refused here, and nothing is registered.
    const here = folder();
    const refused = await cli(['import', join(out, name!)], { LAYA_APPLE_CACHE: here });
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('PROFILE_MISMATCH')]);
    expect((await readdir(join(here, 'artifacts')).catch(() => [])).filter((one) => !one.startsWith('.'))).toEqual([]);
  });

  it('lives with our portable artifacts, rejected and quarantined entries beside its own', async () => {
    const root = folder();
    await registerApple(root);
    await registerLayaTiny(root, [64]);
    await mkdir(join(root, 'artifacts', 'rejected'), { recursive: true });
    expect(await peer(root, 'list')).toMatchObject({ code: 0 });
    expect(await peer(root, 'prune')).toMatchObject({ code: 0 });
    const verified = (await ours(root, 'verify')).value as { ok: boolean }[];
    expect(verified.map(({ ok }) => ok)).toEqual([true, true]);
  });
});
