import { describe, expect, it } from '@jest/globals';
import type { Manifest } from '../../../schemas/generated/types.js';
import { FILES } from '../artifact.js';
import { hostileImports } from './hostile.js';
import { archiveOf, artifactEntries } from './tar.js';

const refusal = hostileImports();
const claims = async (change: (manifest: Manifest) => void): Promise<Buffer> =>
  archiveOf(await artifactEntries(change));

describe('an archive that holds another artifact than it should', () => {
  // A14: told by the manifest, before anything is heavy.
  it('is refused when it is not the one that was asked for', async () => {
    const archive = archiveOf(await artifactEntries());
    expect(await refusal(archive, { expect: { model: 'laya', bucket: 64 } })).toBe('ARCHIVE_OTHER');
    expect(await refusal(archive, { expect: { model: 'laya-tiny', bucket: 96 } })).toBe('ARCHIVE_OTHER');
  });

  const manifests: [string, string, (manifest: Manifest) => void][] = [
    ['a model nobody knows', 'MODEL_UNKNOWN', (m) => Object.assign(m.source, { model: 'laya-huge' })],
    ['another model than its pins', 'SOURCE_MISMATCH', (m) => Object.assign(m.source, { model: 'laya' })],
    ['another revision', 'SOURCE_MISMATCH', (m) => Object.assign(m.source, { revision: '0'.repeat(40) })],
    ['a bucket that is not offered', 'SHAPE_MISMATCH', (m) => Object.assign(m.artifact, { length: 80 })],
    ['another graph', 'GRAPH_MISMATCH', (m) => Object.assign(m.artifact, { graph: 'bc1s' })],
    [
      'quantised weights',
      'QUANTIZATION_MISMATCH',
      (m) => Object.assign(m.artifact, { quantization: { scheme: 'w8' } }),
    ],
    ['other bytes', 'EVIDENCE_INCONSISTENT', (m) => Object.assign(m.integrity, { artifact_sha256: '0'.repeat(64) })],
    ['other bytes by the second hash', 'TREE_MISMATCH', (m) => Object.assign(m.integrity, { tree_v2: '0'.repeat(64) })],
    ['a hash of another kind', 'TREE_MISMATCH', (m) => Object.assign(m.integrity, { tree_hash: 'tree v9' })],
    [
      'figures that contradict the verdict',
      'EVIDENCE_INCONSISTENT',
      (m) => Object.assign(m.parity, { prob_max_abs: 1 }),
    ],
    ['no verdict', 'MANIFEST_INVALID', (m) => Object.assign(m, { parity: {} })],
  ];

  it.each(manifests)('is refused when its manifest claims %s', async (_what, code, change) => {
    expect(await refusal(await claims(change))).toBe(code);
  });

  it("is refused off a Mac when its evidence is a Mac's, naming both profiles", async () => {
    const apple = await claims((manifest) => {
      delete manifest.evidence;
      manifest.placement = { compute_units: 'CPU_AND_NE', ops: { ane: 3 }, transitions: 0 };
      manifest.platform = { soc: 'Apple M4 Max', macos: '27.0', coremltools: '9.0' };
    });
    expect(await refusal(apple)).toBe('PROFILE_MISMATCH');
  });

  it.each(['{', '', 'null', '{"format": 1, "format": 2}', '\ufeff{}', '['.repeat(100_000)])(
    'is refused when its manifest reads %.20j',
    async (text) => {
      const [, ...rest] = await artifactEntries();
      expect(await refusal(archiveOf([{ name: 'manifest.json', content: text }, ...rest]))).toMatch(/^MANIFEST_/);
    },
  );

  // R14: the first hash does not see an empty folder, the second does.
  it('is refused when a folder was added that v1 does not see', async () => {
    const entries = [...(await artifactEntries()), { name: 'model.mlmodelc/empty/', type: '5' }];
    expect(await refusal(archiveOf(entries))).toBe('TREE_MISMATCH');
  });

  it('is refused without a file that every model needs', async () => {
    const { 'metadata.json': _left, ...files } = FILES;
    expect(await refusal(archiveOf(await artifactEntries(undefined, files)))).toBe('TREE_INCOMPLETE');
  });
});
