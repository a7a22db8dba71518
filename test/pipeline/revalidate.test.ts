// Archives on another kind of machine than they were proven on, over the simulated probe: no test here says anything
// about Core ML or a Neural Engine.
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Event } from '../../pipeline/events.js';
import { fetchArtifacts } from '../../pipeline/fetch.js';
import { importArchive } from '../../pipeline/import.js';
import { buildArtifacts } from '../../pipeline/line.js';
import { portableToolchain } from '../../pipeline/toolchain/portable.js';
import type { Toolchain } from '../../pipeline/toolchain/toolchain.js';
import { writeArchive } from '../../registry/archive/write.js';
import { locateArtifact } from '../../registry/locate.js';
import { artifactFolder, COMPILED, MANIFEST } from '../../registry/paths.js';
import { readArtifact, verifyTree } from '../../registry/read.js';
import { LayaError } from '../../schemas/errors.js';
import type { Manifest } from '../../schemas/generated/types.js';
import { TestHub } from '../hub/server.js';
import { registerLayaTiny } from '../registered.js';
import { keptFolder, workspace } from '../workspace.js';
import { simulatedMac } from './apple.js';
import { cli } from './cli.js';
import { testContext, testOrder } from './context.js';
import { fetchOrder, filesOf, hubContext, prebuiltFrom, quickHub, REPO } from './prebuilt.js';

const folder = workspace();
const mac = simulatedMac();
const [portableShop, appleShop] = [keptFolder(), keptFolder()];
const KEY = { model: testOrder().model, bucket: 64 };
const SYSTEM = (version: string) => ({ device: { system: { name: 'macOS', version, build: '25A1' } } });
const PORTABLE = 'portable-coremltools9.0';
let archives: { portable: string; apple: string };
let hub: TestHub;

beforeAll(async () => {
  await registerLayaTiny(portableShop(), [64]);
  await buildArtifacts(testOrder({ toolchain: mac() }), testContext(appleShop()));
  const write = async (shop: string): Promise<string> => {
    const file = join(shop, 'laya-tiny-L64.tar.gz');
    await writeArchive(KEY, artifactFolder(shop, KEY), file, { threads: 0, signal: new AbortController().signal });
    return file;
  };
  archives = { portable: await write(portableShop()), apple: await write(appleShop()) };
  hub = await TestHub.start();
}, 300_000);
afterAll(() => hub.close());

async function ready(...args: Parameters<typeof mac>): Promise<Toolchain> {
  const toolchain = mac(...args);
  await toolchain.ready(testContext(folder()));
  return toolchain;
}

async function take(
  file: string,
  toolchain: Toolchain,
  root: string,
  revalidate = false,
  emit?: (event: Event) => void,
) {
  const context = testContext(root);
  return importArchive({ file, force: false, revalidate, toolchain }, emit ? { ...context, emit } : context);
}

async function errorOf(step: Promise<unknown>): Promise<Partial<LayaError>> {
  const error = await step.catch((one: unknown) => one);
  return error instanceof LayaError ? error : { code: 'no error' };
}

async function manifestOf(root: string): Promise<Manifest> {
  const artifact = await readArtifact(KEY, artifactFolder(root, KEY));
  await verifyTree(artifact);
  return artifact.manifest;
}

describe('an archive on another kind of machine', () => {
  const HERE = 'Apple Simulated, macOS 15, coremltools 9.0';
  const cases = [
    ['portable, on a Mac', 'portable', {}, HERE, 'portable'],
    ['of an older system', 'apple', SYSTEM('16.1'), 'Apple Simulated, macOS 16, coremltools 9.0', HERE],
    ['of another processor', 'apple', { device: { soc: 'Apple M9' } }, 'Apple M9, macOS 15, coremltools 9.0', HERE],
  ] as const;

  it.each(cases)('is refused, and both profiles are named: %s', async (_name, archive, switches, expected, found) => {
    const root = folder();
    const error = await errorOf(take(archives[archive], await ready(switches), root));
    expect(error).toMatchObject({ code: 'PROFILE_MISMATCH', expected, found });
    expect(error.hint).toContain('--revalidate');
    expect(await locateArtifact(root, KEY)).toBeUndefined();
  });

  it('is refused off a Mac when it was proven on one', async () => {
    const error = await errorOf(take(archives.apple, portableToolchain(), folder()));
    expect(error).toMatchObject({ code: 'PROFILE_MISMATCH', expected: 'portable', found: HERE });
  });

  it('gets the evidence of this one with --revalidate, and keeps what it had', async () => {
    const root = folder();
    expect((await take(archives.portable, await ready(), root, true)).outcome).toBe('registered');
    const [before, after] = [await manifestOf(portableShop()), await manifestOf(root)];
    expect(after).toMatchObject({
      compiler: { kind: 'portable' },
      placement: { compute_units: 'CPU_AND_NE', transitions: 0 },
      platform: { soc: 'Apple Simulated' },
      evidence: { kind: 'apple', executor: { name: 'simulated' }, load_probe: { ratio: 0.25 } },
      imported: {
        from: 'laya-tiny-L64.tar.gz',
        platform: { soc: 'Apple Simulated', macos: '15.5' },
        placement: { load_probe: { ratio: 0.25 } },
        parity: { passed: true },
      },
    });
    const { evidence, placement, platform, parity } = before;
    expect(after.other_evidence).toEqual([{ evidence, placement, platform, parity }]);
    expect(after.integrity).toEqual(before.integrity);
  });

  it('gets portable evidence off a Mac', async () => {
    const root = folder();
    expect((await take(archives.apple, portableToolchain(), root, true)).outcome).toBe('registered');
    const after = await manifestOf(root);
    expect([after.evidence?.kind, after.placement.compute_units]).toEqual(['portable', 'PORTABLE_CPU']);
    expect(after.other_evidence?.map(({ evidence }) => evidence?.kind)).toEqual(['apple']);
    expect(after.compiler?.kind).toBe('apple');
  });

  it('is refused with a record when it fails the gates of this one', async () => {
    const root = folder();
    const report = await take(archives.apple, await ready({ ...SYSTEM('16.0'), onCpu: ['gelu'] }), root, true);
    expect(report).toMatchObject({ outcome: 'rejected', code: 'PLACEMENT_REFUSED' });
    expect(JSON.parse(await readFile(report.path, 'utf8')).placement.off_ane).toEqual({ 'ios18.gelu': 5 });
    expect(await locateArtifact(root, KEY)).toBeUndefined();
  });
});

describe('an archive of this kind of machine', () => {
  // B03
  it('is proven at the registered path, its manifest withheld, and stays as it was but for `imported`', async () => {
    const root = folder();
    const seen: Promise<string[]>[] = [];
    const emit = (event: Event): void => {
      if (event.kind === 'stage_started' && ['place', 'parity'].includes(event.stage))
        seen.push(readdir(artifactFolder(root, KEY)));
    };
    const toolchain = await ready({ ...SYSTEM('15.9'), refuses: '.staging' });
    expect((await take(archives.apple, toolchain, root, false, emit)).outcome).toBe('registered');
    expect(await Promise.all(seen)).toEqual([1, 2].map(() => ['PENDING.json', 'manifest.pending.json', COMPILED]));
    const { imported, ...rest } = await manifestOf(root);
    expect(rest).toEqual(JSON.parse(await readFile(join(artifactFolder(appleShop(), KEY), MANIFEST), 'utf8')));
    expect(imported).toMatchObject({ platform: { macos: '15.9' }, placement: { compute_units: 'CPU_AND_NE' } });
  });

  it('is not registered when it is refused at the registered path alone', async () => {
    const root = folder();
    const report = await take(archives.apple, await ready({ refuses: '/bc1s-masked-L64' }), root);
    expect(report).toMatchObject({ outcome: 'rejected', code: 'MODEL_REFUSED' });
    expect(await readdir(join(artifactFolder(root, KEY), '..'))).toEqual([]);
  });
});

describe('fetch on a new Mac', () => {
  const fetched = async (
    root: string,
    change: Parameters<typeof fetchOrder>[0],
    emit = (_: Event): void => undefined,
  ) => {
    const context = { ...hubContext(hub, root), emit };
    return fetchArtifacts(fetchOrder(change), await quickHub(context), context);
  };

  it('takes portable archives with --revalidate only, and gives them its evidence', async () => {
    hub.reset();
    hub.repository(REPO).commit(filesOf(await prebuiltFrom(portableShop(), [64])));
    const [root, toolchain] = [folder(), await ready()];
    expect((await errorOf(fetched(root, { toolchain }))).code).toBe('ARTIFACT_MISSING');
    const named = await errorOf(fetched(root, { toolchain, profile: PORTABLE }));
    expect(named).toMatchObject({ code: 'PROFILE_MISMATCH', found: PORTABLE });
    expect(named.expected).toContain('apple-simulated-macos15');
    const report = await fetched(root, { toolchain, revalidate: true });
    expect(report.rows).toMatchObject([{ bucket: 64, outcome: 'registered' }]);
    expect((await manifestOf(root)).evidence?.kind).toBe('apple');
  });

  it('takes archives of its own profile as they are, proven at the registered path', async () => {
    hub.reset();
    hub.repository(REPO).commit(filesOf(await prebuiltFrom(appleShop(), [64])));
    const root = folder();
    const seen: Promise<string[]>[] = [];
    const emit = (event: Event): void => {
      if (event.kind === 'stage_started' && event.stage === 'place') seen.push(readdir(artifactFolder(root, KEY)));
    };
    const refused = await fetched(root, { toolchain: await ready({ refuses: '/bc1s-masked-L64' }) });
    expect(refused.rows).toMatchObject([{ outcome: 'rejected', code: 'MODEL_REFUSED' }]);
    expect(await readdir(join(artifactFolder(root, KEY), '..'))).toEqual([]);
    const toolchain = await ready({ refuses: '.staging' });
    expect((await fetched(root, { toolchain }, emit)).rows[0]?.outcome).toBe('registered');
    expect(await Promise.all(seen)).toEqual([['PENDING.json', 'manifest.pending.json', COMPILED]]);
    const manifest = await manifestOf(root);
    expect([manifest.other_evidence, manifest.imported?.platform]).toEqual([
      undefined,
      { soc: 'Apple Simulated', macos: '15.5', macos_build: '24F74', coremltools: '9.0' },
    ]);
  });
});

describe('where something is registered', () => {
  const fetched = async (root: string, toolchain: Toolchain) => {
    const context = hubContext(hub, root);
    const { rows } = await fetchArtifacts(fetchOrder({ toolchain }), await quickHub(context), context);
    return { rows, events: context.events };
  };
  const kindsOf = ({ evidence, other_evidence: others = [] }: Manifest) =>
    [evidence, ...others.map((one) => one.evidence)].map((one) => one?.kind);

  it('fetch: brings what this Mac needs in place of what was proven elsewhere, and keeps evidence about the same bytes', async () => {
    hub.reset();
    hub.repository(REPO).commit(filesOf(await prebuiltFrom(appleShop(), [64])));
    const [root, toolchain] = [folder(), await ready()];
    await registerLayaTiny(root, [64]);
    const { rows, events } = await fetched(root, toolchain);
    expect(rows).toMatchObject([{ bucket: 64, outcome: 'registered' }]);
    expect(events).toContainEqual({ kind: 'skipped', bucket: 64, reason: expect.stringContaining('portable') });
    expect(kindsOf(await manifestOf(root))).toEqual(['apple', 'portable']);
    hub.arrivals.length = 0;
    // Either kind of machine has what it needs now.
    for (const here of [toolchain, portableToolchain()])
      expect((await fetched(root, here)).rows).toMatchObject([{ outcome: 'already-registered' }]);
    expect(hub.log()).toEqual([]);
  });

  it('import: an archive of this Mac joins its evidence to the same bytes that were proven elsewhere', async () => {
    const [root, toolchain] = [folder(), await ready()];
    await registerLayaTiny(root, [64]);
    const outcomes: string[] = [];
    for (const [file, here] of [
      [archives.portable, portableToolchain()],
      [archives.apple, toolchain],
      [archives.apple, toolchain],
    ] as const)
      outcomes.push((await take(file, here, root)).outcome);
    expect(outcomes).toEqual(['already-registered', 'registered', 'already-registered']);
    expect(kindsOf(await manifestOf(root))).toEqual(['apple', 'portable']);
  });

  it('fetch: leaves it as it was when nothing is published for this Mac, or a gate refuses what is', async () => {
    hub.reset();
    const root = folder();
    await registerLayaTiny(root, [64]);
    const before = await manifestOf(root);
    hub.repository(REPO).commit(filesOf(await prebuiltFrom(portableShop(), [64])));
    expect((await errorOf(fetched(root, await ready()))).code).toBe('ARTIFACT_MISSING');
    hub.repository(REPO).commit(filesOf(await prebuiltFrom(appleShop(), [64])));
    expect((await fetched(root, await ready({ onCpu: ['gelu'] }))).rows).toMatchObject([
      { outcome: 'rejected', code: 'PLACEMENT_REFUSED' },
    ]);
    expect(await manifestOf(root)).toEqual(before);
  });
});

// B03: what took the place of another one is looked at once more, where readers load it.
describe('with --force on a Mac', () => {
  const force = async (how: string, root: string, toolchain: Toolchain): Promise<string> => {
    const context = hubContext(hub, root);
    if (how === 'build') {
      return (await buildArtifacts(testOrder({ toolchain, force: true }), context)).rows[0]!.outcome;
    }
    if (how === 'import') {
      return (await importArchive({ file: archives.apple, force: true, revalidate: false, toolchain }, context))
        .outcome;
    }
    return (await fetchArtifacts(fetchOrder({ toolchain, force: true }), await quickHub(context), context)).rows[0]!
      .outcome;
  };

  it.each(['build', 'import', 'fetch'])('%s: the previous one stands again when its place is refused', async (how) => {
    hub.reset();
    hub.repository(REPO).commit(filesOf(await prebuiltFrom(appleShop(), [64])));
    const root = folder();
    await take(archives.apple, await ready(), root);
    const place = artifactFolder(root, KEY);
    const now = async () => [await readFile(join(place, MANIFEST), 'utf8'), (await stat(place)).ino];
    const before = await now();
    expect(await force(how, root, await ready({ refuses: `${place}/` }))).toBe('rejected');
    expect(await now()).toEqual(before);
    expect(await readdir(join(place, '..'))).toEqual(['bc1s-masked-L64-B1']);
    expect(await force(how, root, await ready())).toBe('registered');
    expect((await now())[1]).not.toBe(before[1]);
  });
});

describe('the command line', () => {
  it('needs a Mac for the apple toolchain', async () => {
    const env = { LAYA_APPLE_CACHE: folder() };
    const run = await cli(['import', archives.apple, '--toolchain', 'apple', '--json'], env);
    if (process.platform !== 'darwin') expect(JSON.parse(run.stderr).code).toBe('TOOLCHAIN_UNAVAILABLE');
    const plain = await cli(['import', archives.apple, '--toolchain', 'portable'], env);
    expect([plain.code, plain.stderr]).toEqual([1, expect.stringContaining('--revalidate')]);
    const again = await cli(['import', archives.apple, '--toolchain', 'portable', '--revalidate'], env);
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('registered')]);
  });
});
