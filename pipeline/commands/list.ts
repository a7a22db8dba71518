import { type DenseListing, listDense } from '../../registry/dense-list.js';
import { type Listing, listArtifacts } from '../../registry/list.js';
import { openContext, printData } from '../edge.js';
import type { GlobalOptions } from '../options.js';
import { table } from '../text.js';

/** `list`: one row an artifact, then one an any-length graph; what can't be used says why. */
export async function list(options: GlobalOptions): Promise<void> {
  const { root } = openContext(options);
  const listings = await listArtifacts(root, { unpinned: options.json === true });
  const graphs = await listDense(root);
  if (options.json) return printData(JSON.stringify([...listings.map(record), ...graphs.map(denseRecord)], null, 1));
  if (listings.length + graphs.length === 0)
    return printData('no artifacts are registered\nnext: npm run build-artifacts -- --model laya-tiny');
  const rows = listings.map(({ path, manifest, problem }) => {
    const [model = '', , name = ''] = path.split('/');
    const bucket = /-L(\d+)-/.exec(name)?.[1] ?? '-';
    const compiler = manifest?.compiler?.kind ?? '-';
    return [model, bucket, problem ? problem.code : 'validated', manifest?.evidence?.kind ?? '-', compiler];
  });
  for (const { model, problem, dense } of graphs)
    rows.push([model, 'any', problem ? problem.code : 'validated', dense?.manifest.evidence.kind ?? '-', '-']);
  return printData(table(['MODEL', 'BUCKET', 'STATUS', 'EVIDENCE', 'COMPILER'], rows));
}

function record({ path, artifact, manifest, problem }: Listing) {
  return {
    path,
    folder: artifact?.folder ?? null,
    status: manifest?.status ?? null,
    source: manifest?.source ?? null,
    graph: manifest?.artifact.graph ?? null,
    bucket: manifest?.artifact.length ?? null,
    evidence: manifest?.evidence ?? null,
    compiler: manifest?.compiler ?? null,
    parity: manifest?.parity ?? null,
    artifact_sha256: manifest?.integrity.artifact_sha256 ?? null,
    problem: problem?.toJSON() ?? null,
  };
}

/** The same fields; an any-length graph has neither a bucket nor a compiler. */
function denseRecord({ path, dense, problem }: DenseListing) {
  const { manifest, folder } = dense ?? {};
  return {
    path,
    folder: folder ?? null,
    status: manifest?.status ?? null,
    source: manifest?.source ?? null,
    graph: manifest?.artifact.graph ?? null,
    bucket: null,
    evidence: manifest?.evidence ?? null,
    compiler: null,
    parity: manifest?.parity ?? null,
    artifact_sha256: manifest?.integrity.artifact_sha256 ?? null,
    problem: problem?.toJSON() ?? null,
  };
}
