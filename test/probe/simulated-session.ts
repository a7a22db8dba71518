import { gate } from './gates.js';
import { identity, parseWords, unitsOf } from './simulated-commands.js';
import { countOf, loadModel, Refusal, type SimulatedModel, type Spec } from './simulated-models.js';
import { type Misdeed, misdeedAt, type Step, type Switches } from './switches.js';

const MAGIC = Buffer.from('LAYP');
const LIMIT = 64 << 20;
/** A quiet NaN's bits. */
const NAN = 0x7e00;
const [HELLO, READY, RESULT, ERROR, PREDICT, CANCEL] = [1, 2, 3, 4, 16, 17];

interface Request {
  readonly id: number;
  readonly model: number;
  readonly payload: Buffer;
}

function frame(kind: number, id: number, payload: Uint8Array): Buffer {
  const header = Buffer.alloc(16);
  MAGIC.copy(header);
  header[4] = kind;
  header.writeUInt32LE(id, 8);
  header.writeUInt32LE(payload.length, 12);
  return Buffer.concat([header, payload]);
}

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const padded = (count: number): number => Math.ceil((count * 2) / 64) * 64;
const lengthOf = (specs: readonly Spec[]): number => specs.reduce((sum, spec) => sum + padded(countOf(spec)), 64);

/** Writes a frame, or does what is switched on in its place. */
async function send(bytes: Buffer, misdeed: Misdeed | undefined): Promise<void> {
  if (misdeed === 'kill') process.kill(process.pid, 'SIGKILL');
  if (misdeed === 'exit') process.exit(3);
  if (misdeed === 'hang') await new Promise(() => setInterval(() => undefined, 1000));
  let out = bytes;
  if (misdeed === 'garbage') out = Buffer.from('Core ML: compiled in 3 s\n');
  if (misdeed === 'oversized') out.writeUInt32LE(0xffffffff, 12);
  if (misdeed === 'truncated') out = out.subarray(0, Math.floor(out.length / 2));
  if (misdeed === 'wrong-id') out.writeUInt32LE(out.readUInt32LE(8) + 1000, 8);
  if (misdeed === 'wrong-length') out = frame(out[4]!, out.readUInt32LE(8), out.subarray(16, -64));
  if (misdeed === 'twice') out = Buffer.concat([out, out]);
  await new Promise<void>((resolve) => process.stdout.write(out, () => resolve()));
  if (misdeed === 'truncated') process.exit(0);
}

export async function serve(args: readonly string[], switches: Switches): Promise<void> {
  process.on('SIGINT', () => undefined);
  const report = async (error: unknown): Promise<void> => {
    if (!(error instanceof Refusal)) throw error;
    const { code, message, where } = error;
    await send(frame(ERROR, 0, json({ code, message, where })), undefined);
  };
  const step = async (name: Step, kind: number, payload: unknown): Promise<void> => {
    await gate(switches, name);
    await send(frame(kind, 0, json(payload)), misdeedAt(switches, name));
  };
  try {
    const { words, options } = parseWords(args, ['--units', '--protocol']);
    if (words.length === 0) throw new Refusal('USAGE', 'MODEL...', '');
    const limits = { frame: LIMIT, queue: switches.queue };
    if ((options['--protocol'] ?? '1') !== '1') throw new Refusal('PROTOCOL_VERSION', 'only 1', '--protocol');
    await step('hello', HELLO, { units: unitsOf(options), limits, ...identity(switches) });
    const models: SimulatedModel[] = [];
    for (const path of words) models.push(await loadModel(path, switches));
    const described = models.map(({ inputs, outputs }, i) => ({ path: words[i], inputs, outputs }));
    await step('ready', READY, { models: described, seconds: 0.1 });
    process.exit(await new Session(models, switches, unitsOf(options)).run(report));
  } catch (error) {
    await report(error);
    process.exit(error instanceof Refusal && error.code === 'USAGE' ? 64 : 1);
  }
}

class Session {
  readonly #models: readonly SimulatedModel[];
  readonly #switches: Switches;
  readonly #micros: number;
  readonly #waiting: Request[] = [];
  readonly #cancelled = new Set<number>();
  #running: number | undefined;
  #worker: Promise<void> | undefined;
  #answered = 0;

  constructor(models: readonly SimulatedModel[], switches: Switches, units: string) {
    this.#models = models;
    this.#switches = switches;
    this.#micros = switches.micros[units] ?? 1;
  }

  /** Answers until the input ends or is wrong; gives the exit code. */
  async run(report: (error: unknown) => Promise<void>): Promise<number> {
    let bytes = Buffer.alloc(0);
    let exitCode = 0;
    try {
      for await (const chunk of process.stdin) {
        bytes = Buffer.concat([bytes, chunk as Buffer]);
        bytes = await this.#takeFrames(bytes);
      }
      if (bytes.length > 0) throw new Refusal('FRAME_TRUNCATED', 'the input ended within a frame', 'stdin');
    } catch (error) {
      await report(error);
      exitCode = 2;
    }
    while (this.#worker) await this.#worker;
    return exitCode;
  }

  /** Does what whole frames say and gives the bytes that are left. */
  async #takeFrames(bytes: Buffer): Promise<Buffer<ArrayBuffer>> {
    let at = 0;
    while (bytes.length - at >= 16) {
      const header = bytes.subarray(at, at + 16);
      const length = lengthFrom(header);
      if (bytes.length - at < 16 + length) break;
      await this.#take(header[4]!, header.readUInt32LE(8), bytes.subarray(at + 16, at + 16 + length));
      at += 16 + length;
    }
    return Buffer.from(bytes.subarray(at));
  }

  async #take(kind: number, id: number, payload: Buffer): Promise<void> {
    if (kind === CANCEL) {
      const index = this.#waiting.findIndex((one) => one.id === id);
      if (index >= 0) {
        this.#waiting.splice(index, 1);
        await this.#refuse(id, 'CANCELLED');
      } else if (this.#running === id) this.#cancelled.add(id);
      return;
    }
    const code = this.#faultOf(id, payload);
    if (code) {
      await this.#refuse(code === 'REQUEST_ID' ? 0 : id, code);
      return;
    }
    this.#waiting.push({ id, model: payload.readUInt16LE(0), payload: Buffer.from(payload) });
    this.#worker ??= this.#work();
  }

  #faultOf(id: number, payload: Buffer): string | undefined {
    if (id === 0 || this.#running === id || this.#waiting.some((one) => one.id === id)) return 'REQUEST_ID';
    if (payload.length < 64 || payload.subarray(4, 64).some((byte) => byte !== 0)) return 'REQUEST_SHAPE';
    const model = this.#models[payload.readUInt16LE(0)];
    if (!model) return 'REQUEST_MODEL';
    const { inputs } = model;
    if (payload.readUInt16LE(2) !== inputs.length || payload.length !== lengthOf(inputs)) return 'REQUEST_SHAPE';
    return this.#waiting.length + (this.#running === undefined ? 0 : 1) >= this.#switches.queue
      ? 'QUEUE_FULL'
      : undefined;
  }

  async #refuse(id: number, code: string): Promise<void> {
    await send(frame(ERROR, id, json({ code, message: `simulated: ${code}` })), undefined);
  }

  async #work(): Promise<void> {
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      this.#running = next.id;
      await this.#answer(next);
    }
    this.#worker = undefined;
  }

  async #answer({ id, model, payload }: Request): Promise<void> {
    const { inputs, outputs, predict } = this.#models[model]!;
    this.#answered += 1;
    const number = this.#answered;
    await gate(this.#switches, number);
    let at = 64;
    const results = await predict(
      inputs.map((spec) => {
        const bytes = Buffer.from(payload.subarray(at, at + countOf(spec) * 2));
        at += padded(countOf(spec));
        return new Uint16Array(Uint8Array.from(bytes).buffer);
      }),
    );
    const result = Buffer.alloc(lengthOf(outputs));
    result.writeUInt16LE(model, 0);
    result.writeUInt16LE(outputs.length, 2);
    result.writeUInt32LE(this.#micros, 4);
    let end = 64;
    for (const [i, spec] of outputs.entries()) {
      if (this.#switches.answers === 'nan') results[i]!.fill(NAN);
      result.set(Buffer.from(results[i]!.buffer), end);
      end += padded(countOf(spec));
    }
    this.#running = undefined;
    if (this.#cancelled.delete(id)) await this.#refuse(id, 'CANCELLED');
    else await send(frame(RESULT, id, result), misdeedAt(this.#switches, number));
  }
}

/** Judges a header and gives the payload's length. */
function lengthFrom(header: Buffer): number {
  const refuse = (code: string): never => {
    throw new Refusal(code, `simulated: ${code}`, 'stdin');
  };
  if (!header.subarray(0, 4).equals(MAGIC)) refuse('FRAME_MAGIC');
  const kind = header[4]!;
  if (kind !== PREDICT && kind !== CANCEL) refuse('FRAME_KIND');
  if (header[5] !== 0 || header[6] !== 0 || header[7] !== 0) refuse('FRAME_RESERVED');
  const length = header.readUInt32LE(12);
  if (length > (kind === CANCEL ? 0 : LIMIT)) refuse('FRAME_TOO_LARGE');
  return length;
}
