import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  commit,
  createBranch,
  createRepo,
  downloadFileToCacheDir,
  fileDownloadInfo,
  listFiles,
  pathsInfo,
  uploadFiles,
} from '@huggingface/hub';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { TestHub } from './server.js';

const REPO = 'owner/prebuilt';
const TEXT = '{"a": 1}\n';
const LARGE = Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * 7) % 251));

let hub: TestHub;
beforeAll(async () => {
  jest.spyOn(console, 'debug').mockImplementation(() => undefined);
  hub = await TestHub.start();
});
afterAll(() => hub.close());
afterEach(() => hub.reset());

const access = () => ({ repo: REPO, hubUrl: hub.url, accessToken: 'hf_test' });
const files = [
  { path: 'index.json', content: new Blob([TEXT]) },
  { path: 'deep/er/a.tar.gz', content: new Blob([LARGE]) },
];

describe('the test hub serves @huggingface/hub', () => {
  it('making a repository, uploading, listing and downloading', async () => {
    await createRepo({ ...access(), private: true });
    await uploadFiles({ ...access(), files, useXet: false });
    const listed: string[] = [];
    for await (const { path, type } of listFiles({ ...access(), recursive: true }))
      if (type === 'file') listed.push(path);
    expect(listed.sort()).toEqual(['.gitattributes', 'deep/er/a.tar.gz', 'index.json']);
    const [info] = await pathsInfo({ ...access(), paths: ['deep/er/a.tar.gz'] });
    expect(info).toMatchObject({ size: 5000, lfs: { size: 5000 } });
    expect(await fileDownloadInfo({ ...access(), path: 'deep/er/a.tar.gz' })).toMatchObject({ size: 5000 });
    const folder = await mkdtemp(join(tmpdir(), 'hub-'));
    try {
      for (const { path, content } of files) {
        const got = await downloadFileToCacheDir({ ...access(), path, cacheDir: folder });
        expect(await readFile(got)).toEqual(Buffer.from(await content.arrayBuffer()));
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('uploading in parts', async () => {
    hub.partSize = 2000;
    await createRepo(access());
    await uploadFiles({ ...access(), files, useXet: false });
    expect(hub.log().filter((line) => line.startsWith('PUT'))).toHaveLength(3);
    expect(hub.repository(REPO).find('main')!.files.get('deep/er/a.tar.gz')!.bytes).toEqual(LARGE);
  });

  it('committing on top of a named parent only', async () => {
    await createRepo(access());
    await createBranch({ ...access(), branch: 'next' });
    const first = await uploadFiles({ ...access(), files, branch: 'next', useXet: false });
    const change = (parentCommit: string) =>
      commit({
        ...access(),
        branch: 'next',
        title: 'change',
        parentCommit,
        operations: [{ operation: 'addOrUpdate', path: 'index.json', content: new Blob(['{}']) }],
        useXet: false,
      });
    await change(first!.commit.oid);
    await expect(change(first!.commit.oid)).rejects.toMatchObject({ statusCode: 412 });
  });
});
