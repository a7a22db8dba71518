import { describe, expect, it } from '@jest/globals';
import { indexText, mergeIndex, parseIndex, says } from '../../../registry/index/prebuilt.js';
import { isSameProfile, profileSlug } from '../../../registry/index/profile.js';
import { entriesOf, selectEntries } from '../../../registry/index/select.js';
import { findModel } from '../../../registry/models.js';
import type { IndexEntry } from '../../../schemas/generated/types.js';
import { codeOf } from '../../workspace.js';

const laya = findModel('laya');
const APPLE = { soc: 'Apple M4 Max', macos: '27.0', macos_build: '26A428', coremltools: '9.0' };

function entry(change: Partial<IndexEntry> = {}): IndexEntry {
  return {
    path: 'laya/c5d78730f349/apple-m4-max-macos27-coremltools9.0/laya-L64.tar.gz',
    model: 'laya',
    revision: laya.revision,
    weights_sha256: laya.weightsSha256,
    graph: 'bc1s-masked',
    length: 64,
    platform: APPLE,
    archive_sha256: 'a'.repeat(64),
    bytes: 5474,
    artifact_sha256: 'b'.repeat(64),
    ...change,
  };
}

const text = (artifacts: unknown, more: object = {}): Uint8Array =>
  Buffer.from(JSON.stringify({ format: 'laya-apple-prebuilt-index', format_version: 1, artifacts, ...more }));
const parse = (bytes: Uint8Array) => parseIndex(bytes, 'index.json');
const NOW = new Date('2026-01-02T03:04:05Z');

describe('parseIndex', () => {
  it('takes an index of laya-apple, and fields that it does not know', () => {
    const index = parse(text([{ ...entry(), signature: { any: 'thing' } }], { note: 1 }));
    expect(index.artifacts[0]).toMatchObject({ length: 64, signature: { any: 'thing' } });
    expect(parse(text([])).artifacts).toEqual([]);
  });

  it.each([
    '/etc/passwd.tar.gz',
    '../x.tar.gz',
    'a/../../x.tar.gz',
    'a/./x.tar.gz',
    'a//x.tar.gz',
    'a\\x.tar.gz',
    'C:/x.tar.gz',
    'a/x.tar.gz\n',
    'a/\u0000x.tar.gz',
    'a/.hidden.tar.gz',
    'ä/x.tar.gz',
    'a?b/x.tar.gz',
    'a%2e%2e/x.tar.gz',
    'https://host/x.tar.gz',
    'x.zip',
    '',
    `${'a/'.repeat(9)}x.tar.gz`,
    `${'a'.repeat(500)}.tar.gz`,
  ])('refuses the path %j', async (path) => {
    expect(await codeOf(() => parse(text([entry({ path })])))).toBe('INDEX_INVALID');
  });

  it.each<[string, object]>([
    ['length', { length: true }],
    ['length', { length: '64' }],
    ['length', { length: 64.5 }],
    ['bytes', { bytes: -1 }],
    ['bytes', { bytes: 1e300 }],
    ['archive_sha256', { archive_sha256: 'A'.repeat(64) }],
    ['revision', { revision: 'main' }],
    ['platform', { platform: null }],
    ['platform', { platform: { soc: 'x' } }],
    ['model', { model: '../laya' }],
    ['artifact_sha256', { artifact_sha256: undefined }],
  ])('refuses a wrong %s: %j', async (_field, change) => {
    expect(await codeOf(() => parse(text([{ ...entry(), ...change }])))).toBe('INDEX_INVALID');
  });

  it.each<[string, Uint8Array]>([
    ['nothing', Buffer.alloc(0)],
    ['no UTF-8', Buffer.of(0xff, 0xfe)],
    ['a list', Buffer.from('[]')],
    ['null', Buffer.from('null')],
    ['deep nesting', Buffer.from('['.repeat(100_000))],
    ['a key twice', Buffer.from('{"format": "laya-apple-prebuilt-index", "format": "x"}')],
    [
      'one path in two cases',
      text([entry(), entry({ path: entry().path.toUpperCase().replace('.TAR.GZ', '.tar.gz') })]),
    ],
    ['a version that is no number', text([], { format_version: '2' })],
    ['another format', text([], { format: 'other', format_version: 2 })],
  ])('refuses %s', async (_name, bytes) => {
    expect(await codeOf(() => parse(bytes))).toBe('INDEX_INVALID');
  });

  it('asks for an upgrade where the index is of a later version, whatever is in it', async () => {
    expect(await codeOf(() => parse(text('something new', { format_version: 2 })))).toBe('INDEX_NEWER');
  });
});

describe('mergeIndex', () => {
  it('keeps the entries of others and their fields, sorts, and counts up', () => {
    const before = { ...parse(text([{ ...entry({ path: 'z.tar.gz' }), extra: 1 }])), generation: 5 };
    const merged = mergeIndex(before, [entry()], NOW);
    expect(merged.artifacts.map(({ path }) => path)).toEqual([entry().path, 'z.tar.gz']);
    expect(merged.artifacts[1]).toMatchObject({ extra: 1 });
    expect(merged.generation).toBe(NOW.getTime() / 1000);
    expect(mergeIndex({ ...before, generation: 2 ** 40 }, [entry()], NOW).generation).toBe(2 ** 40 + 1);
    expect(parse(Buffer.from(indexText(merged)))).toEqual(merged);
  });

  it('is the same index when nothing changes', () => {
    const before = parse(text([{ ...entry(), extra: 1 }]));
    expect(mergeIndex(before, [entry()], NOW)).toBe(before);
    expect(says(before.artifacts[0], entry({ bytes: 1 }))).toBe(false);
    expect(says(undefined, entry())).toBe(false);
  });
});

describe('profiles', () => {
  it('are named as the Python runtime names them', () => {
    expect(profileSlug(APPLE)).toBe('apple-m4-max-macos27-coremltools9.0');
    expect(profileSlug({ soc: 'portable', macos: 'none', coremltools: '9.0' })).toBe('portable-coremltools9.0');
    expect(profileSlug({ soc: '../..', macos: '/1', coremltools: 'a/../b' })).toMatch(/^[a-z0-9.-]+$/);
  });

  it('are the same with equal SoC, macOS major and coremltools, or both portable', () => {
    expect(isSameProfile(APPLE, { ...APPLE, macos: '27.4' })).toBe(true);
    expect(isSameProfile(APPLE, { ...APPLE, macos: '26.4' })).toBe(false);
    expect(isSameProfile(APPLE, { ...APPLE, soc: 'portable' })).toBe(false);
  });
});

describe('selectEntries', () => {
  const here = { name: 'here', fits: ({ platform }: IndexEntry) => isSameProfile(platform, APPLE) };
  const choose = (entries: IndexEntry[], buckets = [64]) =>
    selectEntries(parse(text(entries)), 'index.json', laya, buckets, here);

  it('takes the entry of the pinned revision, weights, graph and profile', () => {
    const others = [
      entry({ path: 'a.tar.gz', revision: '0'.repeat(40) }),
      entry({ path: 'b.tar.gz', weights_sha256: '0'.repeat(64) }),
      entry({ path: 'c.tar.gz', graph: 'other' }),
      entry({ path: 'd.tar.gz', length: 96 }),
      entry({ path: 'e.tar.gz', platform: { ...APPLE, coremltools: '8.0' } }),
    ];
    expect(choose([...others, entry()])).toEqual([entry()]);
    expect(entriesOf(parse(text([entry({ length: 63 })])), laya)).toEqual([]);
  });

  // F27: none and several are errors.
  it('refuses none and several', async () => {
    expect(await codeOf(() => choose([]))).toBe('ARTIFACT_MISSING');
    expect(await codeOf(() => choose([entry()], [64, 96]))).toBe('ARTIFACT_MISSING');
    expect(await codeOf(() => choose([entry(), entry({ path: 'x.tar.gz' })]))).toBe('INDEX_AMBIGUOUS');
  });
});
