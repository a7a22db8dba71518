import { appendFile, chmod, mkdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { listArtifacts } from '../../registry/list.js';
import { artifactFolder, COMPILED, MANIFEST } from '../../registry/paths.js';
import { readArtifact, verifyTree } from '../../registry/read.js';
import { verifyListing } from '../../registry/verify-listing.js';
import type { Manifest } from '../../schemas/generated/types.js';
import { codeOf, workspace, writeTree } from '../workspace.js';
import { FILES, KEY, writeArtifact } from './artifact.js';

const folder = workspace();
type Change = (manifest: Manifest) => void;
const any = (value: unknown): never => value as never;

describe('readArtifact', () => {
  const refusals: [string, string, Change][] = [
    ['another model', 'SOURCE_MISMATCH', (m) => Object.assign(m.source, { model: 'laya' })],
    ['another revision', 'SOURCE_MISMATCH', (m) => Object.assign(m.source, { revision: 'a'.repeat(40) })],
    ['other weights', 'SOURCE_MISMATCH', (m) => Object.assign(m.source, { weights_sha256: 'a'.repeat(64) })],
    ['another graph', 'GRAPH_MISMATCH', (m) => Object.assign(m.artifact, { graph: 'bc1s' })],
    ['another bucket', 'SHAPE_MISMATCH', (m) => Object.assign(m.artifact, { length: 96 })],
    // B07
    [
      'quantised weights',
      'QUANTIZATION_MISMATCH',
      (m) => Object.assign(m.artifact, { quantization: { scheme: 'w8' } }),
    ],
    ['a loose tolerance', 'EVIDENCE_INCONSISTENT', (m) => Object.assign(m.parity, { tolerance: 0.5 })],
    ['a figure out of tolerance', 'EVIDENCE_INCONSISTENT', (m) => Object.assign(m.parity, { prob_max_abs: 0.03 })],
    ['hard mismatches', 'EVIDENCE_INCONSISTENT', (m) => Object.assign(m.parity, { hard_mismatches: 1 })],
    ['outputs that are not finite', 'EVIDENCE_INCONSISTENT', (m) => Object.assign(m.parity, { all_finite: false })],
    ['no rows', 'MANIFEST_INVALID', (m) => Object.assign(m.parity, { rows: 0 })],
    ['a failed gate', 'MANIFEST_INVALID', (m) => Object.assign(m.parity, { passed: any(false) })],
    [
      'evidence about other bytes',
      'EVIDENCE_INCONSISTENT',
      (m) => Object.assign(m.evidence!, { artifact_sha256: 'b'.repeat(64) }),
    ],
    // B08
    [
      'evidence of another device',
      'EVIDENCE_INCONSISTENT',
      (m) => Object.assign(m.placement, { compute_units: 'CPU_AND_NE' }),
    ],
    [
      'a decision that flips outside the band',
      'EVIDENCE_INCONSISTENT',
      (m) => Object.assign(m.parity, { near_tie_flips: [{ ref_margin: 0.05 }] }),
    ],
    ['operations elsewhere', 'EVIDENCE_INCONSISTENT', (m) => Object.assign(m.placement, { ops: { cpu: 3, gpu: 1 } })],
    ['operations nowhere', 'EVIDENCE_INCONSISTENT', (m) => Object.assign(m.placement, { ops: {} })],
    ['a change of device', 'EVIDENCE_INCONSISTENT', (m) => Object.assign(m.placement, { transitions: 1 })],
    ['portable evidence of a Mac', 'EVIDENCE_INCONSISTENT', (m) => Object.assign(m.evidence!, { profile: 'apple' })],
    [
      'an import of other bytes',
      'EVIDENCE_INCONSISTENT',
      (m) => Object.assign(m, { imported: { artifact_sha256_check: 'b'.repeat(64) } }),
    ],
    [
      'an import that failed',
      'EVIDENCE_INCONSISTENT',
      (m) => Object.assign(m, { imported: { parity: { passed: false } } }),
    ],
    // R22
    ['a length as text', 'MANIFEST_INVALID', (m) => Object.assign(m.artifact, { length: any('64') })],
    ['a length as boolean', 'MANIFEST_INVALID', (m) => Object.assign(m.artifact, { length: any(true) })],
    ['a list for an object', 'MANIFEST_INVALID', (m) => Object.assign(m, { source: any([]) })],
    ['a rejected status', 'MANIFEST_INVALID', (m) => Object.assign(m, { status: any('rejected') })],
  ];

  it.each(refusals)('refuses a manifest with %s', async (_name, code, change) => {
    const root = folder();
    await writeArtifact(root, FILES, change);
    expect(await codeOf(() => readArtifact(KEY, root))).toBe(code);
  });

  // R01, R12, R22
  const texts: [string, string | Uint8Array, string][] = [
    ['nothing in it', '', 'MANIFEST_UNREADABLE'],
    ['zero bytes in it', new Uint8Array(200), 'MANIFEST_UNREADABLE'],
    ['half a record', '{"format": "laya-app', 'MANIFEST_UNREADABLE'],
    ['a byte order mark', '\ufeff{}', 'MANIFEST_UNREADABLE'],
    ['bytes that are not UTF-8', Uint8Array.of(0x7b, 0xff, 0x7d), 'MANIFEST_UNREADABLE'],
    ['duplicate keys', '{"format":1,"format":2}', 'MANIFEST_UNREADABLE'],
    ['100,000 levels', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'MANIFEST_UNREADABLE'],
    ['an empty object', '{}', 'MANIFEST_INVALID'],
    ['keys of the prototype', '{"__proto__": {"format": 1}, "toString": 1}', 'MANIFEST_INVALID'],
  ];

  it.each(texts)('refuses a manifest file with %s', async (_name, text, code) => {
    const root = folder();
    await writeArtifact(root);
    await writeFile(join(root, MANIFEST), text);
    expect(await codeOf(() => readArtifact(KEY, root))).toBe(code);
  });

  const damages: [string, string, (model: string) => Promise<void>][] = [
    ['a changed byte', 'TREE_MISMATCH', (model) => writeFile(join(model, 'model.mil'), 'program(1.4)\n')],
    ['a longer file', 'TREE_MISMATCH', (model) => appendFile(join(model, 'weights/weight.bin'), 'x')],
    ['an empty file', 'TREE_MISMATCH', (model) => truncate(join(model, 'coremldata.bin'), 0)],
    ['a missing weight', 'TREE_MISMATCH', (model) => rm(join(model, 'weights/weight.bin'))],
    ['an extra file', 'TREE_MISMATCH', (model) => writeFile(join(model, '.DS_Store'), '')],
    ['an extra folder', 'TREE_MISMATCH', (model) => mkdir(join(model, 'empty')).then(() => undefined)],
    ['a link', 'TREE_INVALID', (model) => symlink('/etc/hostname', join(model, 'link'))],
  ];

  it.each(damages)('finds %s', async (_name, code, damage) => {
    const root = folder();
    await writeArtifact(root);
    await damage(join(root, COMPILED));
    expect(await codeOf(async () => verifyTree(await readArtifact(KEY, root)))).toBe(code);
  });

  // R16: counted like any file, and named.
  it.each(['.DS_Store', '._coremldata.bin', '.localized', 'Icon\r', 'weights/.DS_Store'])(
    'names the added %j',
    async (name) => {
      const root = folder();
      await writeArtifact(root);
      await writeFile(join(root, COMPILED, name), 'x');
      await expect(readArtifact(KEY, root).then((artifact) => verifyTree(artifact))).rejects.toThrow(
        `${name} was added`,
      );
    },
  );

  it('refuses a tree without the files that every model needs, though its hash fits', async () => {
    const root = folder();
    await writeArtifact(root, { ...FILES, 'coremldata.bin': '' });
    expect(await codeOf(async () => verifyTree(await readArtifact(KEY, root)))).toBe('TREE_INCOMPLETE');
  });
});

describe('listArtifacts', () => {
  it('spoils only the row of what is broken', async () => {
    const root = folder();
    const key = (bucket: number) => artifactFolder(root, { ...KEY, bucket });
    await writeArtifact(key(64));
    await writeTree(key(96), { [MANIFEST]: '' });
    await writeArtifact(key(128), FILES, (manifest) => Object.assign(manifest.artifact, { length: 128 }));
    await writeFile(join(key(128), COMPILED, 'model.mil'), 'changed');
    await mkdir(join(root, 'artifacts/laya-tiny/000000000000/bc1s-masked-L64-B1'), { recursive: true });
    await writeTree(root, {
      'artifacts/stray': 'x',
      'artifacts/laya-tiny/stray': 'x',
      'artifacts/rejected/x.json': '{}',
    });
    await symlink(join(root, 'gone'), join(root, 'artifacts/dangling'));
    await mkdir(join(root, 'artifacts/closed'));
    await chmod(join(root, 'artifacts/closed'), 0);

    const rows = await Promise.all((await listArtifacts(root)).map((row) => verifyListing(root, row)));
    expect(rows.map(({ path, problem }) => [path.split('/').at(-1), problem?.code])).toEqual([
      ['bc1s-masked-L64-B1', 'NOT_PINNED'],
      ['bc1s-masked-L64-B1', undefined],
      ['bc1s-masked-L96-B1', 'TREE_INCOMPLETE'],
      ['bc1s-masked-L128-B1', 'TREE_MISMATCH'],
    ]);
    await chmod(join(root, 'artifacts/closed'), 0o700);
  });

  it('lists nothing where there is no store', async () => {
    expect(await listArtifacts(join(folder(), 'gone'))).toEqual([]);
  });
});
