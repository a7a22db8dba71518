// Compiles the sources to dist/ (npm runs it after an install). Generated validators are JavaScript and are copied.
import { execFileSync } from 'node:child_process';
import { cp, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const tsc = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url));
await rm(`${root}/dist`, { recursive: true, force: true });
execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' });
await cp(`${root}/schemas/generated`, `${root}/dist/schemas/generated`, {
  recursive: true,
  filter: (path) => !path.endsWith('.ts') || path.endsWith('.d.ts'),
});
