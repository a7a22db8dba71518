import { type ReadArchive, readArchive } from '../../registry/archive/read.js';
import { evidenceKind } from '../../registry/evidence.js';
import { findModel } from '../../registry/models.js';
import { checkManifest } from '../../registry/read.js';
import { LayaError } from '../../schemas/errors.js';
import type { Manifest } from '../../schemas/generated/types.js';
import { openContext, printData } from '../edge.js';
import { EnvironmentError } from '../errors.js';
import type { Context } from '../events.js';
import type { GlobalOptions } from '../options.js';
import { checkProfile } from '../profile.js';
import { bytesText, table } from '../text.js';
import { hereToolchain } from '../toolchain/here.js';
import { isProbeBuilt } from '../tools/probe.js';

/** `inspect`: reads an archive to its end and tells what it holds; writes nothing. Exit code 1 when it does not fit. */
export async function inspect(file: string, options: GlobalOptions): Promise<void> {
  const context = openContext(options);
  const { signal } = context;
  const archive = await readArchive(file, { signal });
  const { manifest } = archive;
  const pins = problemOf(() => {
    const model = findModel(manifest.source.model);
    checkManifest({ model, bucket: manifest.artifact.length }, manifest, file);
  });
  const profile = await profileProblem(manifest, file, context);
  const report = { file, archive, pins, profile };
  await printData(options.json ? JSON.stringify(record(report), null, 1) : reportText(report));
  if (pins) process.exitCode = 1;
}

interface Inspection {
  readonly file: string;
  readonly archive: ReadArchive;
  /** Why this release does not take it. */
  readonly pins: LayaError | undefined;
  /** Why it can't be proven on this machine. */
  readonly profile: LayaError | undefined;
}

/** On a Mac it takes laya-probe to tell what the machine is; nothing is built for that here. */
async function profileProblem(manifest: Manifest, file: string, context: Context): Promise<LayaError | undefined> {
  const toolchain = hereToolchain({}, context);
  if (toolchain.kind === 'apple' && !(await isProbeBuilt(context)))
    return new EnvironmentError('TOOLCHAIN_UNAVAILABLE', 'laya-probe, which tells what this Mac is, is not built yet', {
      hint: 'laya-artifacts install-tools',
    });
  try {
    await toolchain.ready(context);
  } catch (error) {
    if (error instanceof LayaError) return error;
    throw error;
  }
  return problemOf(() => checkProfile(manifest, toolchain, file));
}

function problemOf(check: () => void): LayaError | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof LayaError) return error;
    throw error;
  }
}

function record({ file, archive, pins, profile }: Inspection) {
  const { manifest, tree } = archive;
  const digests = new Map(tree.files.map(({ path, sha256 }) => [`model.mlmodelc/${path}`, sha256]));
  return {
    file,
    archive_sha256: archive.sha256,
    archive_bytes: archive.bytes,
    artifact_sha256: tree.v1,
    tree_v2: tree.v2,
    bytes: tree.bytes,
    members: archive.members.map(({ path, folder, bytes }) => ({
      path,
      type: folder ? 'folder' : 'file',
      bytes,
      sha256: digests.get(path) ?? null,
    })),
    manifest,
    fits_this_release: pins?.toJSON() ?? true,
    can_be_proven_here: profile?.toJSON() ?? true,
  };
}

function reportText({ file, archive, pins, profile }: Inspection): string {
  const { manifest, tree } = archive;
  const { source, artifact, platform, parity, placement } = manifest;
  const digests = new Map(tree.files.map(({ path, sha256 }) => [`model.mlmodelc/${path}`, sha256]));
  const members = archive.members.map(({ path, folder, bytes }) => [
    folder ? `${path}/` : path,
    folder ? '-' : bytesText(bytes),
    digests.get(path)?.slice(0, 16) ?? '-',
  ]);
  const problems = [pins, profile].filter((problem) => problem !== undefined);
  return [
    `${file}: ${source.model} L${artifact.length} at ${source.revision.slice(0, 12)}`,
    `archive    ${bytesText(archive.bytes)}, sha256 ${archive.sha256}`,
    `artifact   ${bytesText(tree.bytes)}, tree v1 ${tree.v1}`,
    `evidence   ${evidenceKind(manifest)}, ${placement.compute_units}, ${platform.soc}, macOS ${platform.macos}`,
    `parity     passed, ${parity.rows ?? '-'} rows, largest |dp| ${parity.prob_max_abs ?? '-'}`,
    `compiler   ${manifest.compiler?.name ?? '-'} ${manifest.compiler?.version ?? ''}`.trimEnd(),
    '',
    table(['MEMBER', 'SIZE', 'SHA-256'], members),
    '',
    ...(problems.length > 0 ? problems.map(({ code, message }) => `${code}: ${message}`) : ['everything fits']),
  ].join('\n');
}
