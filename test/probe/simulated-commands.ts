import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseMil } from '../../runtime/mil/parser.js';
import { gate } from './gates.js';
import { loadModel, Refusal } from './simulated-models.js';
import { misdeedAt, type Step, type Switches } from './switches.js';

const UNITS = ['cpuAndNeuralEngine', 'cpuOnly', 'cpuAndGPU', 'all'];

export interface Parsed {
  readonly words: readonly string[];
  readonly options: Readonly<Record<string, string>>;
}

/** Words and options; everything is used or refused. */
export function parseWords(args: readonly string[], known: readonly string[]): Parsed {
  const words: string[] = [];
  const options: Record<string, string> = {};
  for (let i = 0; i < args.length; i++) {
    const word = args[i]!;
    if (word === '--') return { words: [...words, ...args.slice(i + 1)], options };
    if (!word.startsWith('-') || word === '-') words.push(word);
    else if (!known.includes(word) || word in options || i + 1 >= args.length) {
      throw new Refusal('USAGE', `option ${word}`, word);
    } else options[word] = args[++i]!;
  }
  return { words, options };
}

export function unitsOf(options: Readonly<Record<string, string>>): string {
  const units = options['--units'] ?? UNITS[0]!;
  if (!UNITS.includes(units)) throw new Refusal('USAGE', `units ${units}`, '--units');
  return units;
}

export function identity(switches: Switches): Record<string, unknown> {
  const base = { name: 'laya-probe', version: '0.1.0', protocol: 1, protocols: [1], core_ml: 'simulated' };
  return { ...base, ...switches.tells };
}

export async function runCommand(args: readonly string[], switches: Switches): Promise<void> {
  const probe = identity(switches);
  const command = args[0] ?? null;
  await gate(switches, 'command');
  const general = command === 'version' ? undefined : misdeedAt(switches, 'command');
  const misdeed = general ?? misdeedAt(switches, command as Step);
  if (misdeed === 'kill') process.kill(process.pid, 'SIGKILL');
  if (misdeed === 'exit') process.exit(3);
  if (misdeed === 'hang') setInterval(() => undefined, 1000);
  else if (misdeed === 'garbage') process.stdout.write('progress 10%\r');
  if (misdeed === 'hang') return;
  try {
    const result = await resultOf(args, switches);
    process.stdout.write(`${JSON.stringify({ probe, command, result: { ...result, ...switches.tells } })}\n`);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { code, message, where } = error;
    process.stdout.write(`${JSON.stringify({ probe, command, error: { code, message, where } })}\n`);
    process.exitCode = code === 'USAGE' ? 64 : 1;
  }
}

async function resultOf([command, ...rest]: readonly string[], switches: Switches): Promise<Record<string, unknown>> {
  if (command === 'version') return {};
  if (command === 'device') return device(switches);
  if (command === 'compile') return compile(parseWords(rest, []).words, switches);
  if (command === 'plan') return plan(parseWords(rest, ['--units']), switches);
  if (command === 'predict') return predict(parseWords(rest, ['--units', '--inputs', '--repeat']), switches);
  throw new Refusal('USAGE', 'unknown command', command ?? '');
}

function device(switches: Switches): Record<string, unknown> {
  return {
    architecture: 'arm64',
    soc: 'Apple Simulated',
    system: { name: 'macOS', version: '15.5', build: '24F74' },
    memory_bytes: 16 * 2 ** 30,
    core_ml: 'simulated',
    compute_devices: [{ kind: 'cpu' }, { kind: 'ane', cores: 16 }],
    ...switches.device,
  };
}

/** By the portable compiler where one is given, else by taking the package for a compiled model. */
function compile([source, target]: readonly string[], switches: Switches): Record<string, unknown> {
  if (source === undefined || target === undefined) throw new Refusal('USAGE', 'PACKAGE OUT', '');
  if (!existsSync(join(source, 'Manifest.json'))) throw new Refusal('PACKAGE_MISSING', 'no package', source);
  if (existsSync(target)) throw new Refusal('OUTPUT_EXISTS', 'taken', target);
  if (switches.compiler === null) cpSync(source, target, { recursive: true });
  else execFileSync(switches.compiler, [source, target], { stdio: ['ignore', 'ignore', 'inherit'] });
  if (!existsSync(join(target, 'coremldata.bin'))) {
    rmSync(target, { recursive: true });
    throw new Refusal('COMPILE_OUTPUT', 'coremldata.bin is missing', target);
  }
  const sizes = readdirSync(target, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => statSync(join(entry.parentPath, entry.name)).size);
  return { model: target, files: sizes.length, bytes: sizes.reduce((a, b) => a + b, 0), seconds: 0.1 };
}

function plan({ words, options }: Parsed, switches: Switches): Record<string, unknown> {
  const [model] = words;
  const units = unitsOf(options);
  if (model === undefined || !existsSync(join(model, 'coremldata.bin'))) {
    throw new Refusal('MODEL_MISSING', 'no compiled model', model ?? '');
  }
  const main = parseMil(readFileSync(join(model, 'model.mil'), 'utf8')).functions.find(({ name }) => name === 'main');
  const all = main?.operations ?? [];
  const isConstant = (op: string): boolean => op === 'const' || op.startsWith('constexpr_');
  const operations = all
    .filter(({ op }) => !isConstant(op))
    .map(({ op, outputs }) => {
      const preferred = switches.onCpu.includes(op) ? 'cpu' : switches.onGpu.includes(op) ? 'gpu' : 'ane';
      return { name: outputs[0]?.name ?? '', operator: `ios18.${op}`, preferred, supported: ['cpu', 'ane'], cost: 0.5 };
    });
  const count = (keys: readonly string[]): Record<string, number> => {
    const counts: Record<string, number> = {};
    for (const key of keys) counts[key] = (counts[key] ?? 0) + 1;
    return counts;
  };
  const devices = count(operations.map(({ preferred }) => preferred));
  return {
    units,
    operations,
    constants: all.length - operations.length,
    counted: operations.length,
    devices,
    cost: Object.fromEntries(Object.entries(devices).map(([kind, number]) => [kind, number / 2])),
    transitions: operations.filter((one, i) => i > 0 && operations[i - 1]!.preferred !== one.preferred).length,
    off_ane: count(operations.filter(({ preferred }) => preferred !== 'ane').map(({ operator }) => operator)),
  };
}

async function predict({ words, options }: Parsed, switches: Switches): Promise<Record<string, unknown>> {
  const model = await loadModel(words[0] ?? '', switches);
  const count = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);
  const results = await model.predict(model.inputs.map(({ shape }) => new Uint16Array(count(shape))));
  const outputs = model.outputs.map(({ name, shape }, i) => ({
    name,
    shape,
    fp16: Buffer.from(results[i]!.buffer).toString('base64'),
  }));
  const median = Number(options['--repeat'] ?? 0) > 0 ? 0.001 : null;
  return { units: unitsOf(options), outputs, seconds: { load: 0.1, first: 0.002, median }, repeated_equal: true };
}
