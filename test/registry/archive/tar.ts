import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { MANIFEST } from '../../../registry/paths.js';
import type { Manifest } from '../../../schemas/generated/types.js';
import { FILES, writeArtifact } from '../artifact.js';

/** One member as it is to stand in the tar; `edit` changes the header block before its checksum is made. */
export interface Entry {
  readonly name: string | Uint8Array;
  readonly type?: string;
  readonly content?: string | Uint8Array;
  /** Size in the header; default: the content's. */
  readonly size?: number;
  readonly link?: string;
  readonly edit?: (header: Buffer) => void;
  /** The checksum is left wrong. */
  readonly badChecksum?: boolean;
}

const BLOCK = 512;
export const END = Buffer.alloc(2 * BLOCK);

/** A tar of any members, right or wrong; written here so that the writer under test has no part in it. */
export const tarOf = (entries: readonly Entry[], end: Uint8Array = END): Buffer =>
  Buffer.concat([...entries.map(blocksOf), end]);

export const archiveOf = (entries: readonly Entry[], end: Uint8Array = END): Buffer => gzipSync(tarOf(entries, end));

export function blocksOf(entry: Entry): Buffer {
  const content = Buffer.from(entry.content ?? '');
  const header = Buffer.alloc(BLOCK);
  header.set(Buffer.from(entry.name).subarray(0, 100));
  header.write('0000644\x000001750\x000001750\0', 100);
  header.write(`${(entry.size ?? content.length).toString(8).padStart(11, '0')}\0${'14000000000'}\0        `, 124);
  header.write(entry.type ?? '0', 156);
  header.write(entry.link ?? '', 157);
  header.write('ustar\u000000', 257);
  entry.edit?.(header);
  let sum = 8 * 32;
  for (const [at, byte] of header.entries()) if (at < 148 || at >= 156) sum += byte;
  header.write(`${(entry.badChecksum ? sum + 1 : sum).toString(8).padStart(6, '0')}\0 `, 148);
  return Buffer.concat([header, content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)]);
}

/** Records of an extended header. */
export function pax(records: Readonly<Record<string, string>> | string): Entry {
  const content = typeof records === 'string' ? records : Object.entries(records).map(recordOf).join('');
  return { name: 'PaxHeaders/x', type: 'x', content };
}

export function recordOf([keyword, value]: readonly [string, string]): string {
  const body = ` ${keyword}=${value}\n`;
  let length = body.length + 1;
  while (String(length).length + body.length !== length) length = String(length).length + body.length;
  return `${length}${body}`;
}

/** The members of a whole artifact of laya-tiny L64; `change` edits its manifest. */
export async function artifactEntries(
  change: (manifest: Manifest) => void = () => undefined,
  files: Readonly<Record<string, string>> = FILES,
): Promise<Entry[]> {
  const folder = await mkdtemp(join(tmpdir(), 'laya-entries-'));
  try {
    await writeArtifact(folder, files, change);
    const models = Object.entries(files).map(([path, content]) => ({ name: `model.mlmodelc/${path}`, content }));
    return [{ name: MANIFEST, content: await readFile(join(folder, MANIFEST)) }, ...models];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
