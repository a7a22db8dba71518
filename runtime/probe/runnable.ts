import { access, constants, open, stat } from 'node:fs/promises';
import { isSystemError } from '../../schemas/errors.js';
import { ProbeError } from './errors.js';

/** A kind of program, as its first bytes tell. */
interface Format {
  readonly kind: 'script' | 'Mach-O' | 'ELF' | 'unknown';
  /** Processors it has code for, by Node's names, or as numbers where unknown. */
  readonly processors: readonly string[];
}

const MACH_PROCESSORS = new Map([
  [0x0100000c, 'arm64'],
  [0x01000007, 'x64'],
]);
const ELF_PROCESSORS = new Map([
  [183, 'arm64'],
  [62, 'x64'],
]);
const KINDS: Partial<Record<NodeJS.Platform, Format['kind']>> = { darwin: 'Mach-O', linux: 'ELF' };
const HEAD_BYTES = 4096;

/**
 * Judges a file before it is started, because the errors of starting it name no cause (fault F28). Throws ProbeError
 * PROBE_MISSING, PROBE_NOT_EXECUTABLE, PROBE_WRONG_FORMAT.
 */
export async function checkRunnable(
  file: string,
  platform: NodeJS.Platform = process.platform,
  arch: string = process.arch,
): Promise<void> {
  try {
    if (!(await stat(file)).isFile()) throw missing(file, 'something that is no file');
    await access(file, constants.X_OK);
    await checkFormat(file, platform, arch);
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENOTDIR')) throw missing(file, 'nothing');
    if (isSystemError(error, 'EACCES', 'EPERM')) {
      throw new ProbeError('PROBE_NOT_EXECUTABLE', `${file} may not be run`, {
        where: file,
        expected: 'the run bit',
        found: error.code,
        hint: `chmod +x ${file}`,
      });
    }
    throw error;
  }
}

function missing(where: string, found: string): ProbeError {
  return new ProbeError('PROBE_MISSING', `there is no laya-probe at ${where}`, {
    where,
    expected: 'the executable laya-probe',
    found,
    hint: 'build it: swift build -c release, in swift-probe/',
  });
}

async function checkFormat(file: string, platform: NodeJS.Platform, arch: string): Promise<void> {
  const { kind, processors } = formatOf(await head(file));
  if (kind === 'script' || (kind === KINDS[platform] && processors.includes(arch))) return;
  throw new ProbeError('PROBE_WRONG_FORMAT', `${file} is no program for this machine`, {
    where: file,
    expected: `${KINDS[platform] ?? platform} for ${arch}`,
    found: processors.length > 0 ? `${kind} for ${processors.join(', ')}` : kind,
    hint: 'build laya-probe on this machine: swift build -c release, in swift-probe/',
  });
}

async function head(file: string): Promise<Buffer> {
  const handle = await open(file, 'r');
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** What the first bytes of a file say about it. */
export function formatOf(bytes: Buffer): Format {
  if (bytes.length >= 2 && bytes.toString('latin1', 0, 2) === '#!') return { kind: 'script', processors: [] };
  if (bytes.length < 20) return { kind: 'unknown', processors: [] };
  const magic = bytes.readUInt32BE(0);
  if (magic === 0xcffaedfe) return { kind: 'Mach-O', processors: [named(MACH_PROCESSORS, bytes.readUInt32LE(4))] };
  if (magic === 0xcafebabe) return { kind: 'Mach-O', processors: universal(bytes) };
  if (magic === 0x7f454c46) return { kind: 'ELF', processors: [named(ELF_PROCESSORS, bytes.readUInt16LE(18))] };
  return { kind: 'unknown', processors: [] };
}

/** A universal binary lists its parts in big-endian records of 20 bytes. */
function universal(bytes: Buffer): string[] {
  const parts = Math.min(bytes.readUInt32BE(4), Math.floor((bytes.length - 8) / 20));
  return Array.from({ length: parts }, (_, i) => named(MACH_PROCESSORS, bytes.readUInt32BE(8 + 20 * i)));
}

function named(processors: ReadonlyMap<number, string>, number: number): string {
  return processors.get(number) ?? `processor ${number}`;
}
