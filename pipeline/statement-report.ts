import type { Signer } from '../registry/signature/verify.js';
import type { SignatureStatement } from '../schemas/generated/types.js';
import { compilerText, converterText, evidenceText, type Provenance, parityText, placementText } from './provenance.js';
import { safeText } from './text.js';

/** A signed statement that holds, about an archive that is the one. */
export interface StatementRecord {
  readonly file: string;
  readonly archive_sha256: string;
  /** False when whoever signed would have done. */
  readonly identity_required: boolean;
  readonly signer: Signer;
  readonly statement: SignatureStatement;
}

const WIDTH = 80;
const LABEL = 11;

/** The statement as a text of at most 80 columns. Its blocks are those of the manifest: they were compared. */
export function statementReport({ file, identity_required: required, signer, statement }: StatementRecord): string {
  const { buildDefinition, runDetails, laya_evidence: found } = statement.predicate;
  const { source, artifact } = buildDefinition.externalParameters;
  const { conversion, compiler } = buildDefinition.internalParameters;
  const [archive, tree] = statement.subject;
  const rows: [string, string | null][] = [
    ['signed by', signer.identity],
    ['issuer', signer.issuer],
    ['signed at', `${signer.signed_at}, log index ${signer.log_index}`],
    ['repository', signer.repository && `${signer.repository}${signer.commit ? ` at ${signer.commit}` : ''}`],
    ['run', signer.run],
    ['archive', archive.digest.sha256],
    ['artifact', `${tree.digest.layaTreeV1} (tree v1)`],
    ['model', `${source.model} L${artifact.length}, graph ${artifact.graph}`],
    ['source', `${source.repo} at ${source.revision}`],
    ['weights', source.weights_sha256],
    ['converter', converterText(conversion)],
    ['compiler', compilerText(compiler as Provenance['compiler'])],
    ['builder', builderText(runDetails)],
    ['platform', `${found.platform.soc}, macOS ${found.platform.macos}, coremltools ${found.platform.coremltools}`],
    ['evidence', evidenceText(found as Pick<Provenance, 'evidence'>)],
    ['placement', placementText(found.placement as Provenance['placement'])],
    ['parity', parityText(found.parity as Provenance['parity'])],
    ['also', found.other_evidence.map((one) => evidenceText(one as Pick<Provenance, 'evidence'>)).join('; ')],
  ];
  const verdict = required
    ? 'The signature holds, is of a trusted identity, and is about this archive.'
    : 'The signature holds and is about this archive. No identity was required: ANYONE can sign. ' +
      'Say whom you trust with --identity and --issuer, or --policy.';
  const body = rows.flatMap(([name, value]) => (value ? [labelled(name, value)] : []));
  return [safeText(file), ...body, '', ...wrap(verdict, WIDTH)].join('\n');
}

function builderText({ builder, metadata }: SignatureStatement['predicate']['runDetails']): string {
  const versions = Object.entries(builder.version ?? {}).map(([name, version]) => `${name} ${version}`);
  return [builder.id, ...versions, ...(metadata?.finishedOn ? [`finished ${metadata.finishedOn}`] : [])].join(', ');
}

function labelled(name: string, value: string): string {
  const [first = '', ...more] = wrap(safeText(value).replaceAll('\n', ' '), WIDTH - LABEL - 2);
  return [`  ${name.padEnd(LABEL)}${first}`, ...more.map((line) => ' '.repeat(LABEL + 2) + line)].join('\n');
}

/** Lines of at most `width`, broken at a space, else after a slash, else anywhere. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let rest = text;
  while (rest.length > width) {
    const space = rest.lastIndexOf(' ', width);
    const slash = rest.lastIndexOf('/', width - 1) + 1;
    const at = space > 0 ? space : slash > 0 ? slash : width;
    lines.push(rest.slice(0, at).trimEnd());
    rest = rest.slice(at).trimStart();
  }
  return [...lines, rest];
}
