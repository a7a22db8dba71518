/** The files a checkpoint can't be without, by path below its root. */
export const REQUIRED_FILES = [
  'model.safetensors',
  'rl_agent_config.json',
  'encoder/config.json',
  'tokenizer/tokenizer.json',
  'tokenizer/tokenizer_config.json',
] as const;

/** Files that belong to a checkpoint where they are present. */
const OPTIONAL_FILES = ['tokenizer/special_tokens_map.json'] as const;

export type CheckpointFile = (typeof REQUIRED_FILES)[number] | (typeof OPTIONAL_FILES)[number];

export const WEIGHTS: CheckpointFile = 'model.safetensors';

/** All of them, sorted. */
export const CHECKPOINT_FILES: readonly CheckpointFile[] = [...REQUIRED_FILES, ...OPTIONAL_FILES].sort();

export const isRequired = (file: CheckpointFile): boolean => REQUIRED_FILES.some((one) => one === file);
