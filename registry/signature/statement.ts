import { decodeText, parseRecord } from '../../schemas/door.js';
import { RecordError } from '../../schemas/errors.js';
import { signatureStatement as validator } from '../../schemas/generated/signature-validators.js';
import type { IndexEntry, Manifest, SignatureStatement } from '../../schemas/generated/types.js';
import { COMPILED } from '../paths.js';
import { SignatureError } from './errors.js';

/** What a DSSE envelope calls the statement. */
export const PAYLOAD_TYPE = 'application/vnd.in-toto+json';
const BUILD_TYPE = 'urn:laya-artifacts:build:v1';

/**
 * What is signed about an archive (docs/publishing.md §6). It follows from the archive alone: whoever has that makes the
 * same statement again and compares. Another set of fields gets another build type.
 */
export function statementOf(manifest: Manifest, archive: { readonly sha256: string }): SignatureStatement {
  const { source, artifact, conversion, compiler, integrity } = manifest;
  const trees = { layaTreeV1: integrity.artifact_sha256, ...maybe('layaTreeV2', integrity.tree_v2) };
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [
      { name: `${source.model}-L${artifact.length}.tar.gz`, digest: { sha256: archive.sha256 } },
      { name: COMPILED, digest: trees },
    ],
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: BUILD_TYPE,
        externalParameters: { source, artifact },
        internalParameters: { conversion: conversion ?? null, compiler: compiler ?? null },
        resolvedDependencies: dependenciesOf(manifest),
      },
      runDetails: { builder: builderOf(manifest), metadata: { ...maybe('finishedOn', manifest.created_at) } },
      laya_evidence: {
        evidence: manifest.evidence ?? null,
        platform: manifest.platform,
        placement: manifest.placement,
        parity: manifest.parity,
        other_evidence: manifest.other_evidence ?? [],
        toolchain: manifest.toolchain ?? null,
        imported: manifest.imported ?? null,
      },
    },
  };
}

type Dependencies = SignatureStatement['predicate']['buildDefinition']['resolvedDependencies'];

function dependenciesOf({ source, checkpoint, compiler }: Manifest): Dependencies {
  const uri = `hf://${source.repo}@${source.revision}`;
  const files = Object.entries(checkpoint?.files ?? {}).map(([path, sha256]) => ({
    name: `checkpoint/${path}`,
    uri: `${uri}/${path}`,
    digest: { sha256 },
  }));
  return [
    { name: 'source', uri, digest: { gitCommit: source.revision } },
    { name: 'weights', uri, digest: { sha256: source.weights_sha256 } },
    ...files,
    ...(compiler ? [{ name: compiler.name, digest: { sha256: compiler.executable_sha256 } }] : []),
  ];
}

function builderOf({ conversion }: Manifest): SignatureStatement['predicate']['runDetails']['builder'] {
  const { laya_artifacts_version: own, laya_apple_version: peer, git_revision: commit } = conversion ?? {};
  const name = own === undefined && peer !== undefined ? 'laya-apple' : 'laya-artifacts';
  const version = Object.entries({ [name]: own ?? peer, git_revision: commit });
  const known = version.filter((pair): pair is [string, string] => typeof pair[1] === 'string');
  return { id: `urn:${name}:builder`, version: Object.fromEntries(known) };
}

const maybe = <K extends string, V>(name: K, value: V | undefined): { [k in K]?: V } =>
  (value === undefined ? {} : { [name]: value }) as { [k in K]?: V };

/** The statement as it is signed: the same text for the same archive. */
export const statementText = (statement: SignatureStatement): string => JSON.stringify(statement);

/** A statement from its bytes. Throws SignatureError STATEMENT_INVALID. */
export function parseStatement(bytes: Uint8Array, where: string): SignatureStatement {
  try {
    return parseRecord<SignatureStatement>(decodeText(bytes, where), validator, where);
  } catch (error) {
    if (!(error instanceof RecordError)) throw error;
    throw new SignatureError('STATEMENT_INVALID', 'what was signed is no statement about an archive of ours', {
      where,
      expected: `an in-toto statement with SLSA provenance of build type ${BUILD_TYPE}`,
      found: Array.isArray(error.found) ? error.found.slice(0, 8) : error.message,
      hint: HINT,
      cause: error,
    });
  }
}

const HINT = 'tell the publisher; do not use the archive';

/** Throws SignatureError STATEMENT_MISMATCH unless the statement is about the archive that the entry names. */
export function checkEntryStated(statement: SignatureStatement, entry: IndexEntry, where: string): void {
  const [archive, tree] = statement.subject;
  const { source, artifact } = statement.predicate.buildDefinition.externalParameters;
  const { platform } = statement.predicate.laya_evidence;
  const said = {
    archive_sha256: archive.digest.sha256,
    artifact_sha256: tree.digest.layaTreeV1,
    model: source.model,
    revision: source.revision,
    weights_sha256: source.weights_sha256,
    graph: artifact.graph,
    length: artifact.length,
    soc: platform.soc,
    macos: platform.macos,
    coremltools: platform.coremltools,
  };
  const { soc, macos, coremltools } = entry.platform;
  const { archive_sha256, artifact_sha256, model, revision, weights_sha256, graph, length } = entry;
  const wanted = { archive_sha256, artifact_sha256, model, revision, weights_sha256, graph, length };
  refuse({ ...wanted, soc, macos, coremltools }, said, where);
}

/** Throws SignatureError STATEMENT_MISMATCH unless the statement says what the archive's own manifest says, all of it. */
export function checkManifestStated(
  statement: SignatureStatement,
  manifest: Manifest,
  archive: { readonly sha256: string },
  where: string,
): void {
  refuse(statementOf(manifest, archive), statement, where);
}

function refuse(wanted: unknown, said: unknown, where: string): void {
  const [first, ...more] = differences(wanted, said, '');
  if (first === undefined) return;
  const others = more.length === 0 ? '' : `, and ${more.length} more`;
  throw new SignatureError(
    'STATEMENT_MISMATCH',
    `the signed statement is about something else: ${first.path}${others}`,
    {
      where,
      expected: first.wanted ?? 'nothing',
      found: first.said ?? 'nothing',
      hint: HINT,
    },
  );
}

interface Difference {
  readonly path: string;
  readonly wanted: unknown;
  readonly said: unknown;
}

/** Where two JSON values differ; the order of keys does not count. */
function differences(wanted: unknown, said: unknown, path: string): Difference[] {
  if (!isContainer(wanted) || !isContainer(said) || Array.isArray(wanted) !== Array.isArray(said))
    return wanted === said ? [] : [{ path, wanted, said }];
  const names = new Set([...Object.keys(wanted), ...Object.keys(said)]);
  return [...names].flatMap((name) => differences(wanted[name], said[name], path === '' ? name : `${path}.${name}`));
}

const isContainer = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
