import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { GRAPH, type ModelSpec } from './models.js';

/** Environment variables that paths depend on; an empty one counts as unset. */
export type Environment = Readonly<Record<string, string | undefined>>;

const set = (env: Environment, name: string): string | undefined => env[name] || undefined;

/** Root of everything shared with the Python runtime (protocol §1). */
export function artifactRoot(env: Environment): string {
  const own = set(env, 'LAYA_APPLE_CACHE');
  return resolve(own ?? join(userCache(env), 'laya-apple'));
}

/** Folder of the tools this project installs for itself; apart from the artifact root. */
export function toolsRoot(env: Environment): string {
  return resolve(set(env, 'LAYA_ARTIFACTS_TOOLS') ?? join(userCache(env), 'laya-artifacts', 'tools'));
}

/** Folder of the Hugging Face hub cache, as its Python client finds it. */
export function hubCache(env: Environment): string {
  const home = set(env, 'HF_HOME') ?? join(userCache(env), 'huggingface');
  return resolve(set(env, 'HF_HUB_CACHE') ?? set(env, 'HUGGINGFACE_HUB_CACHE') ?? join(home, 'hub'));
}

function userCache(env: Environment): string {
  return set(env, 'XDG_CACHE_HOME') ?? join(set(env, 'HOME') ?? homedir(), '.cache');
}

/** Names inside an artifact folder. */
export const MANIFEST = 'manifest.json';
export const COMPILED = 'model.mlmodelc';
export const BUILDING = 'BUILDING.json';
export const QUARANTINED = 'QUARANTINED.json';

export const artifactsFolder = (root: string): string => join(root, 'artifacts');
export const stagingFolder = (root: string): string => join(root, 'artifacts', '.staging');
export const locksFolder = (root: string): string => join(root, 'artifacts', '.locks');
export const rejectedFolder = (root: string): string => join(root, 'artifacts', 'rejected');
export const quarantineFolder = (root: string): string => join(root, 'artifacts', 'quarantine');
/** Derived data that can always be made again: stamps and the executor's translated models. */
const verifiedFolder = (root: string): string => join(root, 'verified');
export const stampsFolder = (root: string): string => join(verifiedFolder(root), 'artifacts');
export const checkpointStampsFolder = (root: string): string => join(verifiedFolder(root), 'checkpoints');
/** The newest index that was read from each branch of a repository. */
export const indexesFolder = (root: string): string => join(verifiedFolder(root), 'indexes');
/** Trust roots that signatures are judged by. */
export const trustFolder = (root: string): string => join(root, 'trust');
export const portableModelsFolder = (root: string): string => join(verifiedFolder(root), 'portable');

/** Identity of one artifact: a model at its pinned revision, and a bucket. */
export interface ArtifactKey {
  readonly model: ModelSpec;
  readonly bucket: number;
}

/** `<model>/<revision[:12]>/bc1s-masked-L<bucket>-B1`, the artifact's place below `artifacts/`. */
export function artifactPath({ model, bucket }: ArtifactKey): string {
  return `${model.name}/${model.revision.slice(0, 12)}/${GRAPH.name}-L${bucket}-B${GRAPH.batch}`;
}

export function artifactFolder(root: string, key: ArtifactKey): string {
  return join(artifactsFolder(root), artifactPath(key));
}

/** Base name of the lock that serialises builders of one target. */
export function lockPath(root: string, { model, bucket }: ArtifactKey): string {
  return join(locksFolder(root), `${model.name}-${model.revision.slice(0, 12)}-L${bucket}.lock`);
}

/** A path below `artifacts/` as one name, as quarantined artifacts and stamps are called. */
export const flatName = (path: string): string => path.replaceAll('/', '__');
