import { readCheckpoint } from '../../../runtime/checkpoint.js';
import { erf } from '../../../runtime/erf.js';
import { TensorFile } from '../../../runtime/safetensors.js';

type Matrix = Float64Array[];

/**
 * The checkpoint's encoder written down plainly, in double precision, from the architecture alone: embedding, norm,
 * pre-norm layers with rotary attention and a gated MLP, final norm. Gives the state of every token.
 */
export async function referenceEncoder(folder: string): Promise<(ids: readonly number[]) => Matrix> {
  const { encoder, files } = await readCheckpoint(folder);
  const { hidden: d, heads, intermediate, layerKinds, window, ropeTheta, normEps } = encoder;
  const file = await TensorFile.open(files.get('model.safetensors')!);
  const read = (name: string, shape: readonly number[]): Promise<Float32Array> => file.read(`encoder.${name}`, shape);
  const table = await read('embeddings.tok_embeddings.weight', [encoder.vocab, d]);
  const first = await read('embeddings.norm.weight', [d]);
  const last = await read('final_norm.weight', [d]);
  const layers: Record<'qkv' | 'out' | 'middle' | 'wide' | 'narrow', Float32Array>[] = [];
  const befores: (Float32Array | undefined)[] = [];
  for (const i of layerKinds.keys()) {
    befores.push(i === 0 ? undefined : await read(`layers.${i}.attn_norm.weight`, [d]));
    layers.push({
      qkv: await read(`layers.${i}.attn.Wqkv.weight`, [3 * d, d]),
      out: await read(`layers.${i}.attn.Wo.weight`, [d, d]),
      middle: await read(`layers.${i}.mlp_norm.weight`, [d]),
      wide: await read(`layers.${i}.mlp.Wi.weight`, [2 * intermediate, d]),
      narrow: await read(`layers.${i}.mlp.Wo.weight`, [d, intermediate]),
    });
  }
  await file.close();

  const norm = (row: Float64Array, weight: Float32Array): Float64Array => {
    const mean = row.reduce((a, b) => a + b, 0) / d;
    const variance = row.reduce((a, b) => a + (b - mean) ** 2, 0) / d;
    return row.map((value, i) => ((value - mean) / Math.sqrt(variance + normEps)) * weight[i]!);
  };
  const apply = (weight: Float32Array, row: Float64Array): Float64Array =>
    Float64Array.from({ length: weight.length / row.length }, (_, j) =>
      row.reduce((sum, value, i) => sum + value * weight[j * row.length + i]!, 0),
    );
  const size = d / heads;
  /** Part 0 of a projected row is its query, 1 its key, 2 its value; the first two are turned by their position. */
  const part = (row: Float64Array, which: number, head: number, position: number, theta: number): Float64Array => {
    const at = which * d + head * size;
    const plain = row.slice(at, at + size);
    if (which === 2) return plain;
    return plain.map((value, i) => {
      const half = size / 2;
      const angle = position * theta ** (-(i % half) / half);
      const partner = i < half ? -plain[i + half]! : plain[i - half]!;
      return value * Math.cos(angle) + partner * Math.sin(angle);
    });
  };

  return (ids) => {
    let states: Matrix = ids.map((id) => norm(Float64Array.from(table.slice(id * d, (id + 1) * d)), first));
    for (const [i, layer] of layers.entries()) {
      const kind = layerKinds[i] === 'full_attention' ? 'full' : 'sliding';
      const before = befores[i];
      const projected = states.map((row) => apply(layer.qkv, before ? norm(row, before) : row));
      states = states.map((row, q) => {
        const mixed = new Float64Array(d);
        for (let head = 0; head < heads; head++) {
          const query = part(projected[q]!, 0, head, q, ropeTheta[kind]);
          const scores = projected.map((one, k) => {
            if (kind === 'sliding' && Math.abs(q - k) > window) return 0;
            const key = part(one, 1, head, k, ropeTheta[kind]);
            return Math.exp(query.reduce((sum, value, n) => sum + value * key[n]!, 0) / Math.sqrt(size));
          });
          const total = scores.reduce((a, b) => a + b, 0);
          for (const [k, score] of scores.entries())
            for (const [n, value] of part(projected[k]!, 2, head, k, 0).entries())
              mixed[head * size + n]! += (score / total) * value;
        }
        const added = apply(layer.out, mixed);
        return row.map((value, n) => value + added[n]!);
      });
      states = states.map((row) => {
        const inner = apply(layer.wide, norm(row, layer.middle));
        const gated = inner
          .slice(0, intermediate)
          .map((x, n) => ((x * (1 + erf(x / Math.SQRT2))) / 2) * inner[intermediate + n]!);
        const added = apply(layer.narrow, gated);
        return row.map((value, n) => value + added[n]!);
      });
    }
    return states.map((row) => norm(row, last));
  };
}
