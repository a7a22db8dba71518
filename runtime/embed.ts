import { ArtifactMissingError } from '../registry/errors.js';
import { batchesOf } from './dense/batches.js';
import { BackendUnavailableError } from './errors.js';
import type { OpenModel } from './open.js';
import { sizeOf } from './plan.js';
import { withoutMask } from './prompt.js';

/** The vectors of `Laya.embed`, in the order of the texts. */
export async function embedTexts(
  model: OpenModel,
  texts: readonly string[],
  signal?: AbortSignal,
): Promise<Float32Array[]> {
  if (!model.hasDense) throw noPooling(model);
  const rows = await Promise.all(texts.map((text, index) => rowOf(model, text, `texts[${index}]`)));
  const work = async (): Promise<Float32Array[]> => {
    const { session } = await model.cpu.loadDense();
    if (!session.canPool) throw noPooling(model);
    const vectors = new Array<Float32Array>(rows.length);
    for (const batch of batchesOf(rows)) {
      signal?.throwIfAborted();
      const found = await session.pool(batch.map((index) => rows[index]!.ids));
      for (const [at, index] of batch.entries()) vectors[index] = found[at]!;
    }
    return vectors;
  };
  return (await model.loads.cpu.run(work, signal, sizeOf(rows))).value;
}

/** `[CLS] text [SEP]`, of which the start is kept. */
async function rowOf({ tokenizer, checkpoint }: OpenModel, text: string, where: string): Promise<{ ids: number[] }> {
  const ids = await tokenizer.encode(withoutMask(text, tokenizer), where);
  return { ids: [tokenizer.cls.id, ...ids.slice(0, checkpoint.agent.maxLen - 2), tokenizer.sep.id] };
}

function noPooling({ device, graph, spec, hasDense }: OpenModel): Error {
  if (device === 'ane' || graph === 'buckets')
    return new BackendUnavailableError('DEVICE_UNAVAILABLE', 'texts are embedded by the any-length graph, on the cpu', {
      where: device === 'ane' ? 'device' : 'graph',
      expected: device === 'ane' ? ['auto', 'cpu'] : ['auto', 'any-length'],
      found: device === 'ane' ? device : graph,
      hint: 'open the model with another device or graph',
    });
  const what = hasDense
    ? 'the any-length graph was built before it had the output pooled'
    : 'there is no any-length graph';
  return new ArtifactMissingError('ARTIFACT_MISSING', `texts can't be embedded: ${what}`, {
    expected: 'an any-length graph with the output pooled',
    hint: `npm run build-artifacts -- --model ${spec.name} --graph any-length${hasDense ? ' --force' : ''}`,
  });
}
