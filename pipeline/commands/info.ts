import { release } from 'node:os';
import { locateDense, readDense } from '../../registry/dense.js';
import { listArtifacts } from '../../registry/list.js';
import { findModel, MODELS, type ModelSpec } from '../../registry/models.js';
import { locateProbe } from '../../runtime/probe/locate.js';
import { LayaError } from '../../schemas/errors.js';
import { openContext, printData } from '../edge.js';
import type { GlobalOptions } from '../options.js';
import { projectFacts } from '../project.js';
import { isMac } from '../toolchain/here.js';
import { compilerFolder } from '../tools/compiler.js';
import { exists } from '../tools/install.js';
import { environmentFolder } from '../tools/python.js';

/** `info`: one JSON object, the first thing to paste into a bug report. */
export async function info(name: string | undefined, options: GlobalOptions): Promise<void> {
  const context = openContext(options);
  const models = name === undefined ? MODELS : [findModel(name)];
  const listings = await listArtifacts(context.root);
  const { projectVersion, gitRevision } = await projectFacts(context);
  const [python, compiler] = [await environmentFolder('convert', context.tools), compilerFolder(context.tools)];
  const { folder: probe } = await locateProbe(context.env);
  const hasProbe = await exists(probe);
  const anyLength = await Promise.all(models.map((model) => anyLengthOf(context.root, model)));
  const record = {
    laya_artifacts: projectVersion,
    git_revision: gitRevision,
    platform: { os: `${process.platform} ${release()}`, arch: process.arch, node: process.version },
    devices: { cpu: true, ane: isMac(process) && hasProbe },
    paths: { artifacts: context.root, tools: context.tools },
    tools: {
      python_convert: { path: python, installed: await exists(python) },
      compiler: { path: compiler, installed: await exists(compiler) },
      laya_probe: { path: probe, installed: hasProbe },
    },
    offline: context.offline,
    models: models.map((model, index) => ({
      name: model.name,
      repo: model.repo,
      revision: model.revision,
      weights_sha256: model.weightsSha256,
      max_len: model.maxLen,
      buckets: model.buckets,
      auto_buckets: model.autoBuckets,
      artifacts: listings
        .filter(({ key }) => key?.model.name === model.name)
        .map(({ key, artifact, problem }) => ({
          bucket: key?.bucket,
          status: problem?.code ?? artifact?.manifest.status,
          evidence: artifact?.manifest.evidence?.kind ?? null,
          artifact_sha256: artifact?.manifest.integrity.artifact_sha256 ?? null,
        })),
      any_length: anyLength[index],
    })),
  };
  await printData(JSON.stringify(record, null, 1));
}

/** The registered any-length graph, or why it can't be used; null where there is none. */
async function anyLengthOf(root: string, model: ModelSpec) {
  const folder = await locateDense(root, model);
  if (folder === undefined) return null;
  try {
    const { manifest } = await readDense(model, folder);
    return { status: manifest.status, artifact_sha256: manifest.integrity.artifact_sha256 };
  } catch (error) {
    if (!(error instanceof LayaError)) throw error;
    return { status: error.code, artifact_sha256: null };
  }
}
