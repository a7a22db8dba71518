import { describe, expect, it } from '@jest/globals';
import { withEvidenceOf } from '../../pipeline/evidence.js';
import { readArtifact } from '../../registry/read.js';
import type { Manifest } from '../../schemas/generated/types.js';
import { fromPlain, type JsonObject, stringifyJson } from '../../schemas/json.js';
import { FILES, KEY, writeArtifact } from '../registry/artifact.js';
import { workspace, writeTree } from '../workspace.js';

const folder = workspace();

/** A manifest with Apple evidence of one system, or portable evidence, about these bytes. */
async function manifest(macos: string | null, files: Record<string, string> = FILES): Promise<Manifest> {
  return writeArtifact(folder(), files, (one) => {
    if (macos === null) return;
    one.placement = { compute_units: 'CPU_AND_NE', ops: { ane: 3 }, transitions: 0 };
    one.platform = { soc: 'Apple M4', macos, coremltools: '9.0' };
    Object.assign(one.evidence!, { kind: 'apple', profile: `apple-m4-macos${macos.split('.')[0]}-coremltools9.0` });
  });
}

/** Systems and kinds that the joined manifest has evidence of; readers accept it. */
async function joined(own: Manifest, other: Manifest): Promise<string[]> {
  const record = withEvidenceOf(fromPlain(own) as JsonObject, own, other);
  const place = folder();
  await writeTree(place, { 'manifest.json': stringifyJson(record, 1) });
  const { manifest: read } = await readArtifact(KEY, place);
  return [read, ...(read.other_evidence ?? [])].map(({ platform }) => platform.macos);
}

describe('evidence of another manifest', () => {
  it('joins when it is about the same bytes and of another kind or profile', async () => {
    const [portable, older, newer] = [await manifest(null), await manifest('15.5'), await manifest('16.0')];
    expect(await joined(newer, portable)).toEqual(['16.0', 'none']);
    const { evidence, placement, platform, parity } = portable;
    const both = { ...older, other_evidence: [{ evidence: evidence!, placement, platform, parity }] };
    expect(await joined(newer, both)).toEqual(['16.0', '15.5', 'none']);
    expect(await joined(both, newer)).toEqual(['15.5', 'none', '16.0']);
  });

  it('stays away when there is newer evidence of its kind and profile', async () => {
    expect(await joined(await manifest('15.7'), await manifest('15.5'))).toEqual(['15.7']);
    expect(await joined(await manifest(null), await manifest(null))).toEqual(['none']);
  });

  it('says nothing about other bytes', async () => {
    const other = await manifest(null, { ...FILES, 'weights/weight.bin': 'others' });
    expect(await joined(await manifest('15.5'), other)).toEqual(['15.5']);
    const renamed = await manifest(null);
    renamed.integrity.tree_v2 = 'f'.repeat(64);
    expect(await joined(await manifest('15.5'), renamed)).toEqual(['15.5']);
  });
});
