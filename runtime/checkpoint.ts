import { createHash } from 'node:crypto';
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CHECKPOINT_FILES, type CheckpointFile, isRequired, REQUIRED_FILES } from '../registry/hub/checkpoint-files.js';
import { sha256File } from '../registry/sha256.js';
import { isSystemError } from '../schemas/errors.js';
import { type AgentConfig, type EncoderConfig, parseAgentConfig, parseEncoderConfig } from './checkpoint-config.js';
import { checkTensors, expectedTensors } from './checkpoint-tensors.js';
import { MAX_CONFIG_BYTES } from './config-fields.js';
import { CheckpointError } from './errors.js';
import { readTensorTable, type TensorTable } from './safetensors.js';

export type { CheckpointFile } from '../registry/hub/checkpoint-files.js';
export type { AgentConfig, EncoderConfig, LayerKind } from './checkpoint-config.js';

/** A checkpoint folder whose configuration and tensor list have been checked against each other. */
export interface Checkpoint {
  readonly root: string;
  /** Paths of the files that are present, sorted by their path below the root. */
  readonly files: ReadonlyMap<CheckpointFile, string>;
  readonly agent: AgentConfig;
  readonly encoder: EncoderConfig;
  readonly tensors: TensorTable;
}

/**
 * Reads a checkpoint's configuration and the list of its tensors, not the weights themselves. Files may be symbolic
 * links, as in a Hugging Face cache.
 *
 * @throws CheckpointError CHECKPOINT_MISSING (a file is absent or not regular), CHECKPOINT_CONFIG, CHECKPOINT_LAYOUT,
 * CHECKPOINT_WEIGHTS (a damaged weight file), CHECKPOINT_TENSORS (tensors that don't fit the configuration)
 */
export async function readCheckpoint(root: string): Promise<Checkpoint> {
  const files = await findFiles(root);
  const [agentFile, encoderFile] = [files.get('rl_agent_config.json')!, files.get('encoder/config.json')!];
  const agent = parseAgentConfig(agentFile, await readSmall(agentFile));
  const encoder = parseEncoderConfig(encoderFile, await readSmall(encoderFile));
  const weights = files.get('model.safetensors')!;
  const tensors = await readTensorTable(weights);
  checkTensors(tensors, expectedTensors(agent, encoder), weights);
  return { root, files, agent, encoder, tensors };
}

/**
 * SHA-256 (hex) of every file of the checkpoint, by path below its root, sorted. Streams: memory stays flat.
 *
 * @param digest What gives a file's SHA-256.
 */
export async function hashFiles(
  checkpoint: Pick<Checkpoint, 'files'>,
  digest: (path: string) => Promise<string> = sha256File,
): Promise<Record<string, string>> {
  const digests: Record<string, string> = {};
  for (const [name, path] of checkpoint.files) {
    digests[name] = await digest(path).catch((cause: unknown) => {
      throw new CheckpointError('CHECKPOINT_MISSING', `can't read ${name}: ${String(cause)}`, { where: path, cause });
    });
  }
  return digests;
}

/**
 * The revision of a checkpoint that no commit names: the first 40 hex digits of the SHA-256 over the lines
 * `<sha256>  <path>\n`, sorted by path. `digests` is what `hashFiles` returns.
 */
export function contentRevision(digests: Readonly<Record<string, string>>): string {
  const hash = createHash('sha256');
  for (const name of Object.keys(digests).sort()) hash.update(`${digests[name]}  ${name}\n`);
  return hash.digest('hex').slice(0, 40);
}

async function findFiles(root: string): Promise<Map<CheckpointFile, string>> {
  const files = new Map<CheckpointFile, string>();
  const problems: string[] = [];
  for (const name of CHECKPOINT_FILES) {
    const kind = await fileKind(join(root, name));
    if (kind === 'file') files.set(name, join(root, name));
    else if (kind === 'other') problems.push(`${name} is not a regular file`);
    else if (isRequired(name)) problems.push(`${name} is missing`);
  }
  if (problems.length === 0) return files;
  throw new CheckpointError('CHECKPOINT_MISSING', `not a complete checkpoint: ${problems.join(', ')}`, {
    where: root,
    expected: REQUIRED_FILES,
    found: problems,
    hint: 'point --checkpoint at a folder that holds all of these files',
  });
}

async function fileKind(path: string): Promise<'file' | 'other' | 'none'> {
  try {
    return (await stat(path)).isFile() ? 'file' : 'other';
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENOTDIR')) return 'none';
    if (isSystemError(error)) return 'other';
    throw error;
  }
}

/** A configuration file's content; one byte more than is allowed is enough to refuse it. */
async function readSmall(path: string): Promise<Buffer> {
  const handle = await open(path, 'r').catch((cause: unknown) => {
    throw new CheckpointError('CHECKPOINT_MISSING', `can't read the file: ${String(cause)}`, { where: path, cause });
  });
  try {
    const { size } = await handle.stat();
    if (size <= MAX_CONFIG_BYTES) return await handle.readFile();
    throw new CheckpointError('CHECKPOINT_CONFIG', 'the configuration file is too large', {
      where: path,
      expected: `at most ${MAX_CONFIG_BYTES} bytes`,
      found: `${size} bytes`,
    });
  } finally {
    await handle.close();
  }
}
