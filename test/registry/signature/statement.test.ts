import { describe, expect, it } from '@jest/globals';
import { entryOf } from '../../../registry/index/prebuilt.js';
import { parseManifest } from '../../../registry/manifest.js';
import {
  checkEntryStated,
  checkManifestStated,
  parseStatement,
  statementOf,
  statementText,
} from '../../../registry/signature/statement.js';
import type { IndexEntry, Manifest, SignatureStatement } from '../../../schemas/generated/types.js';
import { codeOf, workspace } from '../../workspace.js';
import { writeArtifact } from '../artifact.js';

const folder = workspace();
const ARCHIVE = { sha256: 'a'.repeat(64), bytes: 100 };

async function made(change: (manifest: Manifest) => void = () => undefined) {
  const manifest = await writeArtifact(folder(), undefined, (one) => {
    Object.assign(one, {
      created_at: '2026-01-02T03:04:05.000Z',
      checkpoint: { files: { 'model.safetensors': one.source.weights_sha256, 'config.json': 'c'.repeat(64) } },
      conversion: { laya_artifacts_version: '0.1.0', git_revision: 'd'.repeat(40), packages: { numpy: '2.0' } },
      compiler: { name: 'mlmodelc-export', version: '0.1.0', kind: 'portable', executable_sha256: 'e'.repeat(64) },
      toolchain: { node: 'v20.19.0' },
      other_evidence: [
        { placement: one.placement, platform: { ...one.platform, soc: 'Apple M4' }, parity: one.parity },
      ],
    });
    change(one);
  });
  return { manifest, statement: statementOf(manifest, ARCHIVE), entry: entryOf('a/b.tar.gz', manifest, ARCHIVE) };
}
const reread = (statement: SignatureStatement) => parseStatement(Buffer.from(statementText(statement)), 'x');

describe('a statement', () => {
  it('is in-toto and SLSA provenance: digests, source, weights, converter, compiler, builder, figures', async () => {
    const { statement, manifest } = await made();
    const { source, integrity, parity, placement } = manifest;
    expect(statement).toMatchObject({
      _type: 'https://in-toto.io/Statement/v1',
      predicateType: 'https://slsa.dev/provenance/v1',
      subject: [
        { name: 'laya-tiny-L64.tar.gz', digest: { sha256: ARCHIVE.sha256 } },
        { digest: { layaTreeV1: integrity.artifact_sha256, layaTreeV2: integrity.tree_v2 } },
      ],
      predicate: {
        buildDefinition: {
          externalParameters: { source, artifact: { length: 64 } },
          internalParameters: { conversion: { packages: { numpy: '2.0' } }, compiler: { version: '0.1.0' } },
        },
        runDetails: {
          builder: { id: 'urn:laya-artifacts:builder', version: { 'laya-artifacts': '0.1.0' } },
          metadata: { finishedOn: manifest.created_at },
        },
        laya_evidence: { parity, placement },
      },
    });
    const uri = `hf://${source.repo}@${source.revision}`;
    expect(statement.predicate.buildDefinition.resolvedDependencies).toEqual([
      { name: 'source', uri, digest: { gitCommit: source.revision } },
      { name: 'weights', uri, digest: { sha256: source.weights_sha256 } },
      {
        name: 'checkpoint/model.safetensors',
        uri: `${uri}/model.safetensors`,
        digest: { sha256: source.weights_sha256 },
      },
      { name: 'checkpoint/config.json', uri: `${uri}/config.json`, digest: { sha256: 'c'.repeat(64) } },
      { name: 'mlmodelc-export', digest: { sha256: 'e'.repeat(64) } },
    ]);
  });

  it('is the same text for the same archive, also from the manifest as it was written', async () => {
    const { statement, manifest } = await made();
    const read = parseManifest(JSON.stringify(manifest), 'manifest');
    expect(statementText(statementOf(read, ARCHIVE))).toBe(statementText(statement));
    expect(() => checkManifestStated(reread(statement), read, ARCHIVE, 'x')).not.toThrow();
  });

  it('is made of a manifest that has the required fields only', async () => {
    const { statement, manifest } = await made((one) => {
      for (const name of ['created_at', 'checkpoint', 'conversion', 'compiler', 'toolchain', 'other_evidence'] as const)
        delete one[name];
      delete one.integrity.tree_v2;
    });
    expect(() => checkManifestStated(reread(statement), manifest, ARCHIVE, 'x')).not.toThrow();
  });

  it.each<[string, (entry: IndexEntry) => void]>([
    ['another archive', (entry) => Object.assign(entry, { archive_sha256: 'b'.repeat(64) })],
    ['another artifact', (entry) => Object.assign(entry, { artifact_sha256: 'b'.repeat(64) })],
    ['another model', (entry) => Object.assign(entry, { model: 'laya' })],
    ['another bucket', (entry) => Object.assign(entry, { length: 96 })],
    ['another revision', (entry) => Object.assign(entry, { revision: 'b'.repeat(40) })],
    ['other weights', (entry) => Object.assign(entry, { weights_sha256: 'b'.repeat(64) })],
    ['another graph', (entry) => Object.assign(entry, { graph: 'other' })],
    ['another machine', (entry) => Object.assign(entry.platform, { soc: 'Apple M4' })],
  ])('is not about an entry with %s', async (_name, change) => {
    const { statement, entry } = await made();
    expect(() => checkEntryStated(reread(statement), entry, 'x')).not.toThrow();
    change(entry);
    expect(await codeOf(() => checkEntryStated(reread(statement), entry, 'x'))).toBe('STATEMENT_MISMATCH');
  });

  it.each<[string, (manifest: Manifest) => void]>([
    ['figures', ({ parity }) => Object.assign(parity, { prob_max_abs: 0.0001 })],
    ['placement', ({ placement }) => Object.assign(placement, { transitions: 1 })],
    ['evidence of another machine', (manifest) => Object.assign(manifest, { other_evidence: [] })],
    ['compiler', (manifest) => delete manifest.compiler],
    ['converter', ({ conversion }) => Object.assign(conversion!, { packages: { numpy: '2.1' } })],
    ['checkpoint files', ({ checkpoint }) => Object.assign(checkpoint!.files, { more: 'f'.repeat(64) })],
    ['second tree hash', ({ integrity }) => Object.assign(integrity, { tree_v2: 'f'.repeat(64) })],
    ['time', (manifest) => Object.assign(manifest, { created_at: '2026-01-02T03:04:06.000Z' })],
  ])('is not about an archive with other %s', async (_name, change) => {
    const { statement, manifest } = await made();
    const signed = reread(statement);
    change(manifest);
    expect(await codeOf(() => checkManifestStated(signed, manifest, ARCHIVE, 'x'))).toBe('STATEMENT_MISMATCH');
  });
});
