import { createHash } from 'node:crypto';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { comparePaths, hashTree } from '../../registry/tree.js';
import { codeOf, workspace, writeTree } from '../workspace.js';

const folder = workspace();
const hashOf = async (files: Record<string, string | Uint8Array>) => {
  const root = folder();
  await writeTree(root, files);
  return hashTree(root);
};

describe('tree hashes', () => {
  it('gives the hash of the worked example', async () => {
    const { v1 } = await hashOf({
      'model.mil': 'program(1.0)\n',
      'coremldata.bin': Uint8Array.of(0, 1, 2, 3),
      'weights/weight.bin': 'hello',
    });
    expect(v1).toBe('a05d605ea4ffa8b07e8964f799b2e93072271eb41da7a84cd03cb354dc36508b');
  });

  // R15: by components, each by code point; neither JavaScript's order nor a byte order of whole paths.
  it('orders paths by components and code points', () => {
    const sorted = ['a-b/x', 'a.b', 'a/x', '\u{1f600}', '\uff5e', 'weights-a', 'weights/weight.bin'].sort(comparePaths);
    expect(sorted).toEqual(['a/x', 'a-b/x', 'a.b', 'weights/weight.bin', 'weights-a', '\uff5e', '\u{1f600}']);
  });

  // R14: v1 puts names and digests one after the other; v2 frames them.
  it('tells trees apart in v2 that share their v1 hash', async () => {
    const digest = (text: string) => createHash('sha256').update(text).digest();
    const two = await hashOf({ a: 'one', b: 'two' });
    const v1Input = Buffer.concat([Buffer.from('a'), digest('one'), Buffer.from('b'), digest('two')]);
    expect(two.v1).toBe(createHash('sha256').update(v1Input).digest('hex'));
    const swapped = await hashOf({ a: 'two', b: 'one' });
    expect(new Set([two.v2, swapped.v2]).size).toBe(2);
  });

  it('counts empty folders in v2 only', async () => {
    const root = folder();
    await writeTree(root, { 'a.bin': 'x' });
    const before = await hashTree(root);
    await mkdir(join(root, 'empty'));
    const after = await hashTree(root);
    expect(after.v1).toBe(before.v1);
    expect(after.v2).not.toBe(before.v2);
  });

  it.each(['a file', 'a folder', 'nothing'])('refuses a link to %s', async (target) => {
    const root = folder();
    const outside = folder();
    await writeTree(outside, { file: 'secret' });
    await writeTree(root, { 'a.bin': 'x' });
    const to = { 'a file': join(outside, 'file'), 'a folder': outside, nothing: join(outside, 'gone') }[target]!;
    await symlink(to, join(root, 'link'));
    expect(await codeOf(() => hashTree(root))).toBe('TREE_INVALID');
  });

  it('refuses a name that is not UTF-8', async () => {
    const root = folder();
    await mkdir(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0xfe])]));
    expect(await codeOf(() => hashTree(root))).toBe('TREE_INVALID');
  });

  it('says that a missing folder is missing, and a file no folder', async () => {
    const root = folder();
    await writeTree(root, { file: 'x' });
    expect(await codeOf(() => hashTree(join(root, 'gone')))).toBe('TREE_INCOMPLETE');
    expect(await codeOf(() => hashTree(join(root, 'file')))).toBe('TREE_INVALID');
  });
});
