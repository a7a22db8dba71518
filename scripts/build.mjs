// Compiles the sources to dist/ (npm runs it after an install). Generated validators and the server's page are copied.
// The old dist/ stays until the new one is whole. The command is linked where `npx laya-artifacts` looks first: npm does
// not link a project's own commands, and would install the checkout into its cache on every call.
import { spawnSync } from 'node:child_process';
import { copyFile, cp, mkdir, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const partial = join(root, `dist.partial-${process.pid}`);
const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
const options = { cwd: root, stdio: 'inherit' };
const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', partial], options);
if (status === 0) {
  const filter = (path) => !path.endsWith('.ts') || path.endsWith('.d.ts');
  await cp(join(root, 'schemas', 'generated'), join(partial, 'schemas', 'generated'), { recursive: true, filter });
  const page = join('runtime', 'serve', 'page.html');
  await copyFile(join(root, page), join(partial, page));
  await rm(join(root, 'dist'), { recursive: true, force: true });
  await rename(partial, join(root, 'dist'));
  await linkCommand(join(root, 'node_modules', '.bin'));
} else {
  await rm(partial, { recursive: true, force: true });
  process.exitCode = 1;
}

async function linkCommand(folder) {
  const link = join(folder, 'laya-artifacts');
  await mkdir(folder, { recursive: true });
  await rm(link, { force: true });
  await symlink(join('..', '..', 'bin', 'laya-artifacts.js'), link);
}
