import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../registry/package-root.js';

/** This package's version. */
export function ownVersion(): string {
  return (JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string }).version;
}
