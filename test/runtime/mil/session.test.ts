import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { MilError } from '../../../runtime/errors.js';
import { openMlmodelc } from '../../../runtime/mil/session.js';
import { codeOf, workspace } from '../../workspace.js';
import { bytesOf, maxDifference, program, withModel, writeModel } from './models.js';
import { TRACED, type TracedRow, tracedRows } from './traced.js';

const folder = workspace();
const VECTOR = 'tensor<fp32, [4]>';
const HALF = 'tensor<fp16, [4]>';

const PROJECT = fileURLToPath(new URL('../../..', import.meta.url));

/** A script that node runs by itself: statements that may use `openMlmodelc`. */
function bundle(statements: string): string {
  const [source, script] = [join(folder(), 'main.ts'), join(folder(), 'main.cjs')];
  const session = join(PROJECT, 'runtime', 'mil', 'session.js');
  writeFileSync(
    source,
    `import { openMlmodelc } from ${JSON.stringify(session)};\nasync function main() {${statements}}\nmain();`,
  );
  const options = [
    '--bundle',
    '--platform=node',
    '--format=cjs',
    '--packages=external',
    '--supported:dynamic-import=false',
  ];
  execFileSync(
    join(PROJECT, 'node_modules', 'esbuild', 'bin', 'esbuild'),
    [source, ...options, `--outfile=${script}`],
    {
      stdio: 'pipe',
    },
  );
  return script;
}

const echo = (type: string) => program(`${type} x`, `${type} y = relu(x = x);`, 'y');

async function errorOf(step: () => Promise<unknown>): Promise<MilError> {
  try {
    await step();
  } catch (error) {
    if (error instanceof MilError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('laya-tiny traced as laya-apple does it', () => {
  const rows = tracedRows();

  test('answers like the FP32 torch body', async () => {
    await withModel(TRACED, async (model) => {
      for (const row of rows) {
        const { logits, cls } = await model.run(row.inputs);
        // Half a step of float16 is 0.001 at the largest logit (2.4) and 0.004 at the largest CLS element (10.6);
        // weights rounded to float16 (2^-12 of each) add as much again over six layers.
        expect(maxDifference(logits!.slice(0, row.options), row.logits.slice(0, row.options))).toBeLessThan(0.005);
        expect(maxDifference(cls!, row.cls)).toBeLessThan(0.015);
      }
    });
  });

  test('answers bit for bit the same again, in any order and at once', async () => {
    await withModel(
      TRACED,
      async (model) => {
        const run = async (row: TracedRow) => Buffer.from(bytesOf((await model.run(row.inputs)).logits!));
        const first = [await run(rows[0]!), await run(rows[1]!), await run(rows[2]!)];
        const again = await Promise.all([rows[2]!, rows[0]!, rows[1]!].map(run));
        expect([again[1], again[2], again[0]].map((bytes, i) => bytes?.equals(first[i]!))).toEqual([true, true, true]);
      },
      { threads: 2 },
    );
  });

  test('answers bit for bit the same when its text is in the older dialect', async () => {
    const text = readFileSync(join(TRACED, 'model.mil'), 'utf8');
    const old = text
      .replace('program(1.3)', 'program(1.0)')
      .replaceAll(/\b(fp16|int32|uint64|bool|string)(?=[ (])/g, 'tensor<$1, []>');
    expect(old).toContain('tensor<fp16, []>(0x1.5p-17)');
    const weights = readFileSync(join(TRACED, 'weights', 'weight.bin'));
    const run = (dir: string) => withModel(dir, (model) => model.run(rows[0]!.inputs));
    expect(await run(await writeModel(folder(), old, weights))).toEqual(await run(TRACED));
  });

  test('tells inputs, outputs, operations and the precision that runs', async () => {
    await withModel(TRACED, async (model) => {
      expect(model.inputs.map(({ name, shape, dtype }) => `${name} ${shape.join('x')} ${dtype}`)).toEqual([
        'embeddings 1x128x1x64 fp16',
        'full_mask 1x64x1x64 fp16',
        'local_mask 1x64x1x64 fp16',
        'type_vectors 1x128x1x1 fp16',
        'marker_map 1x64x1x32 fp16',
      ]);
      expect(model.outputs.map(({ name }) => name)).toEqual(['logits', 'cls']);
      expect(model.operations).toMatchObject({ conv: 26, layer_norm: 14, batch_norm: 5, einsum: 25, const: 397 });
      expect(model.precision).toEqual({ compute: 'float32', weights: 'float16', io: 'float16' });
    });
  });

  // S10
  test('fifty openings and releases leave the memory where it was', async () => {
    const cycle = () => withModel(TRACED, (model) => model.run(rows[0]!.inputs));
    for (let i = 0; i < 10; i++) await cycle();
    const before = process.memoryUsage.rss();
    for (let i = 0; i < 50; i++) await cycle();
    // A leak of one session, whose weights take 4 MB, would be 200 MB.
    expect(process.memoryUsage.rss() - before).toBeLessThan(100e6);
  });
});

describe('the float16 border', () => {
  const values = Float32Array.of(1 + 1 / 1024 + 1 / 4096, 65519, 2 ** -25 * 1.5, 0.1);
  const rounded = [1 + 1 / 1024, 65504, 2 ** -24, 0.0999755859375];

  test('rounds inputs', async () => {
    const wide = program(`${HALF} x`, `${VECTOR} y = cast(dtype = string("fp32"), x = x);`, 'y');
    await withModel(await writeModel(folder(), wide), async (model) => {
      expect(Array.from((await model.run({ x: values })).y!)).toEqual(rounded);
    });
  });

  test('rounds outputs', async () => {
    const narrow = program(`${VECTOR} x`, `${HALF} y = cast(dtype = string("fp16"), x = x);`, 'y');
    const doubled = program(`${HALF} x`, `${HALF} y = mul(x = x, y = fp16(0x1.004p+0));`, 'y');
    await withModel(await writeModel(folder(), narrow), async (model) => {
      expect(Array.from((await model.run({ x: values })).y!)).toEqual(rounded);
    });
    await withModel(await writeModel(folder(), doubled), async (model) => {
      const [y] = (await model.run({ x: Float32Array.of(1 + 1 / 1024, 0, 0, 0) })).y!;
      expect(y).toBe(1 + 2 / 1024);
    });
  });

  // B05
  test('shows what half precision can not hold as infinity or NaN, never as a number', async () => {
    const text = program(`${HALF} x`, [`${HALF} a = mul(x = x, y = x);`, `${HALF} y = sub(x = a, y = a);`], 'y, a');
    await withModel(await writeModel(folder(), text), async (model) => {
      const { y, a } = await model.run({ x: Float32Array.of(70000, -70000, 300, 1) });
      expect(Array.from(a!)).toEqual([Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 1]);
      expect(Array.from(y!)).toEqual([Number.NaN, Number.NaN, 0, 0]);
    });
  });

  test('tells the precision of a float32 program', async () => {
    await withModel(await writeModel(folder(), echo(VECTOR)), async (model) => {
      expect(model.precision).toEqual({ compute: 'float32', weights: 'none', io: 'float32' });
    });
  });
});

describe('inputs', () => {
  test.each<[string, unknown, string]>([
    ['a missing input', {}, 'x'],
    ['an unknown input', { x: new Float32Array(4), z: new Float32Array(4) }, 'z'],
    ['an inherited name', { x: new Float32Array(4), constructor: new Float32Array(4) }, 'constructor'],
    ['too few elements', { x: new Float32Array(3) }, 'x'],
    ['too many elements', { x: new Float32Array(5) }, 'x'],
    ['numbers of another type', { x: new Float64Array(4) }, 'x'],
    ['an array', { x: [1, 2, 3, 4] }, 'x'],
    ['null', { x: null }, 'x'],
  ])('refuses %s by name', async (_, inputs, where) => {
    await withModel(await writeModel(folder(), echo(VECTOR)), async (model) => {
      const error = await errorOf(() => model.run(inputs as Record<string, Float32Array>));
      expect(error).toMatchObject({ code: 'MIL_INPUT', where });
    });
  });

  test('are left as they were', async () => {
    await withModel(await writeModel(folder(), echo(HALF)), async (model) => {
      const x = Float32Array.of(0.1, -1, 2, 1e6);
      await model.run({ x });
      expect(x).toEqual(Float32Array.of(0.1, -1, 2, 1e6));
    });
  });

  test.each([0, -1, 1.5, Number.NaN, 1e9])('refuses %d threads', async (threads) => {
    const dir = await writeModel(folder(), echo(VECTOR));
    expect(await codeOf(() => openMlmodelc(dir, { threads }))).toBe('MIL_INPUT');
  });
});

describe('models that are refused', () => {
  test('name a missing, unreadable or foreign program', async () => {
    const empty = folder();
    mkdirSync(join(empty, 'model.mil'));
    const latin = folder();
    writeFileSync(join(latin, 'model.mil'), Buffer.from([0x70, 0xff, 0xfe]));
    const huge = folder();
    writeFileSync(join(huge, 'model.mil'), '');
    truncateSync(join(huge, 'model.mil'), 2 ** 28 + 1);
    const codes = [join(empty, 'absent'), folder(), empty, latin, huge].map((dir) => codeOf(() => openMlmodelc(dir)));
    expect(await Promise.all(codes)).toEqual(['MIL_MISSING', 'MIL_MISSING', 'MIL_MISSING', 'MIL_SYNTAX', 'MIL_SYNTAX']);
  });

  test('name an unknown operation, its output, its place and the known ones', async () => {
    const text = program(`${VECTOR} x`, `${VECTOR} y = quantum_leap(x = x);`, 'y');
    const error = await errorOf(async () => openMlmodelc(await writeModel(folder(), text)));
    expect(error).toMatchObject({ code: 'MIL_UNSUPPORTED', found: 'quantum_leap', where: 'model.mil:4:1' });
    expect(error.expected).toEqual(expect.arrayContaining(['conv', 'layer_norm', 'constexpr_lut_to_dense']));
    expect(error.message).toContain('"y"');
  });

  test.each<[string, string, string, string]>([
    ['an open shape', 'tensor<fp32, [?]> x', 'tensor<fp32, [?]> y = relu(x = x);', 'MIL_UNSUPPORTED'],
    ['a state', 'state<tensor<fp32, [4]>> x', `${VECTOR} y = relu(x = x);`, 'MIL_UNSUPPORTED'],
    ['a 64-bit float', 'tensor<fp64, [4]> x', 'tensor<fp64, [4]> y = relu(x = x);', 'MIL_UNSUPPORTED'],
    ['a computed axis', `${VECTOR} x`, `${VECTOR} y = softmax(axis = x, x = x);`, 'MIL_UNSUPPORTED'],
    [
      'interleaving',
      `${VECTOR} x`,
      'tensor<fp32, [8]> y = concat(axis = int32(0), interleave = bool(true), values = (x, x));',
      'MIL_UNSUPPORTED',
    ],
    [
      'a huge tensor',
      `${VECTOR} x`,
      'tensor<fp32, [4000000000]> y = tile(reps = tensor<int32, [1]>([1000000000]), x = x);',
      'MIL_SHAPE',
    ],
    ['another declared shape', `${VECTOR} x`, 'tensor<fp32, [5]> y = relu(x = x);', 'MIL_SHAPE'],
    ['another declared type', `${VECTOR} x`, 'tensor<int32, [4]> y = relu(x = x);', 'MIL_SHAPE'],
    [
      'shapes that do not go together',
      `${VECTOR} x, tensor<fp32, [3]> z`,
      `${VECTOR} y = add(x = x, y = z);`,
      'MIL_SHAPE',
    ],
    ['an axis that is not there', `${VECTOR} x`, `${VECTOR} y = softmax(axis = int32(1), x = x);`, 'MIL_SHAPE'],
    [
      'a wrong shape nobody reads',
      `${VECTOR} x`,
      `tensor<fp32, [5]> z = relu(x = x); ${VECTOR} y = relu(x = x);`,
      'MIL_SHAPE',
    ],
    ['a missing operand', `${VECTOR} x`, `${VECTOR} y = relu();`, 'MIL_SYNTAX'],
    ['a string for a tensor', `${VECTOR} x`, `${VECTOR} y = relu(x = string("x"));`, 'MIL_SYNTAX'],
    ['a name from nowhere', `${VECTOR} x`, `${VECTOR} y = relu(x = z);`, 'MIL_SYNTAX'],
    ['a name given twice', `${VECTOR} x`, `${VECTOR} x = relu(x = x); ${VECTOR} y = relu(x = x);`, 'MIL_SYNTAX'],
    [
      'a constant of another type',
      `${VECTOR} x`,
      `${VECTOR} w = const()[val = tensor<fp32, [1]>([1.0])]; ${VECTOR} y = add(x = x, y = w);`,
      'MIL_SYNTAX',
    ],
    [
      'a constant without a value',
      `${VECTOR} x`,
      `${VECTOR} w = const()[]; ${VECTOR} y = add(x = x, y = w);`,
      'MIL_SYNTAX',
    ],
    [
      'a missing weight file',
      `${VECTOR} x`,
      `${VECTOR} w = const()[val = ${VECTOR}(BLOBFILE(path = string("@model_path/w"), offset = uint64(64)))]; ${VECTOR} y = add(x = x, y = w);`,
      'MIL_BLOB',
    ],
  ])('for %s', async (_, inputs, statements, code) => {
    const dir = await writeModel(folder(), program(inputs, statements, 'y'));
    expect(await codeOf(() => openMlmodelc(dir, { fuse: true }))).toBe(code);
    expect(await codeOf(() => openMlmodelc(dir, { fuse: false }))).toBe(code);
  });

  test('for several functions, none of them main, and for none', async () => {
    const one = `func a<ios18>(${VECTOR} x) { ${VECTOR} y = relu(x = x); } -> (y);`;
    const texts = [`program(1.3) { ${one} ${one.replace(' a<', ' b<')} }`, 'program(1.3) { }'];
    const codes = texts.map(async (text) => codeOf(async () => openMlmodelc(await writeModel(folder(), text))));
    expect(await Promise.all(codes)).toEqual(['MIL_UNSUPPORTED', 'MIL_UNSUPPORTED']);
  });
});

describe('release', () => {
  test('waits for runs, may be repeated, and ends the model', async () => {
    const model = await openMlmodelc(TRACED, { threads: 1 });
    const { inputs } = tracedRows()[0]!;
    const running = model.run(inputs);
    await Promise.all([model.release(), model.release()]);
    expect((await running).logits).toHaveLength(32);
    expect(await codeOf(() => model.run(inputs))).toBe('MIL_RUN');
  });

  // S10
  test.each(['released', 'left open'])('a process whose model was %s exits by itself with its own status', (how) => {
    const script = bundle(`
      const model = await openMlmodelc(process.argv[2]);
      await model.run(Object.fromEntries(model.inputs.map(({ name, shape }) =>
        [name, new Float32Array(shape.reduce((a, b) => a * b, 1))])));
      if (process.argv[3] === 'released') await model.release();
      process.exitCode = 7;`);
    const { status, signal, stderr } = spawnSync(process.execPath, [script, TRACED, how], {
      env: { PATH: process.env.PATH, NODE_PATH: join(PROJECT, 'node_modules') },
      timeout: 30_000,
      encoding: 'utf8',
    });
    expect({ status, signal, stderr }).toEqual({ status: 7, signal: null, stderr: '' });
  });
});
