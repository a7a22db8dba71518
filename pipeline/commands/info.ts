import { release } from 'node:os';
import { listArtifacts } from '../../registry/list.js';
import { findModel, MODELS } from '../../registry/models.js';
import { openContext, printData } from '../edge.js';
import type { GlobalOptions } from '../options.js';
import { projectFacts } from '../project.js';
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
  const record = {
    laya_artifacts: projectVersion,
    git_revision: gitRevision,
    platform: { os: `${process.platform} ${release()}`, arch: process.arch, node: process.version },
    devices: { cpu: true, ane: false },
    paths: { artifacts: context.root, tools: context.tools },
    tools: {
      python_convert: { path: python, installed: await exists(python) },
      compiler: { path: compiler, installed: await exists(compiler) },
    },
    offline: context.offline,
    models: models.map((model) => ({
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
    })),
  };
  await printData(JSON.stringify(record, null, 1));
}
