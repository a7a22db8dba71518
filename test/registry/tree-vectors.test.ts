import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { hashTree } from '../../registry/tree.js';
import { codeOf, workspace, writeTree } from '../workspace.js';
import { pythonHashes } from './python-hashes.js';

const folder = workspace();
const VECTORS = fileURLToPath(new URL('../vectors/tree-hash.json', import.meta.url));
const SCRIPT = fileURLToPath(new URL('../vectors/tree_hash.py', import.meta.url));

type Content = string | null | { readonly hex: string } | { readonly repeat: readonly [string, number] };

interface Vector {
  readonly name: string;
  readonly tree: Readonly<Record<string, Content>>;
  readonly v1: string;
  readonly v2: string;
}

const { cases } = JSON.parse(readFileSync(VECTORS, 'utf8')) as { cases: Vector[] };

function bytesOf(content: Exclude<Content, null>): string | Buffer {
  if (typeof content === 'string') return content;
  return 'hex' in content ? Buffer.from(content.hex, 'hex') : content.repeat[0].repeat(content.repeat[1]);
}

async function make(root: string, tree: Vector['tree']): Promise<void> {
  for (const [path, content] of Object.entries(tree))
    if (content === null) await mkdir(join(root, path), { recursive: true });
    else await writeTree(root, { [path]: bytesOf(content) });
}

// R14, R15: one specification, two implementations that share nothing, the same vectors.
describe('tree hash vectors', () => {
  it.each(cases.map((one) => [one.name, one] as const))('%s', async (_name, { tree, v1, v2 }) => {
    const root = folder();
    await make(root, tree);
    const found = await hashTree(root);
    expect({ v1: found.v1, v2: found.v2 }).toEqual({ v1, v2 });
  });

  it('hold for the implementation in Python', () => {
    const { stdout, stderr } = spawnSync('python3', ['-I', SCRIPT, '--check', VECTORS], { encoding: 'utf8' });
    expect({ stderr, ...JSON.parse(stdout || '{}') }).toEqual({ stderr: '', cases: cases.length, wrong: [] });
  });

  it('have the worked example', () => {
    expect(cases[0]?.v1).toBe('a05d605ea4ffa8b07e8964f799b2e93072271eb41da7a84cd03cb354dc36508b');
  });

  it('tell any two of the trees apart', () => {
    expect(new Set(cases.map(({ v2 }) => v2)).size).toBe(cases.length);
  });
});

describe('trees without a hash', () => {
  it('are the same for both implementations', async () => {
    const [linked, bytes] = [folder(), folder()];
    await symlink('/etc/hostname', join(linked, 'link'));
    await mkdir(Buffer.concat([Buffer.from(`${bytes}/`), Buffer.from([0xff, 0xfe])]));
    for (const root of [linked, bytes]) expect(await codeOf(() => hashTree(root))).toBe('TREE_INVALID');
    expect(pythonHashes([linked, bytes])).toEqual([{ error: expect.any(String) }, { error: expect.any(String) }]);
  });
});
