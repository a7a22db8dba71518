#!/usr/bin/env node
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`error NODE_UNSUPPORTED: Node 20.19 or newer is needed, this is ${process.versions.node}\n`);
  process.exitCode = 1;
} else {
  import('../dist/pipeline/cli.js').then(
    ({ main }) => main(process.argv),
    (error) => {
      if (error?.code !== 'ERR_MODULE_NOT_FOUND' || !String(error.message).includes('dist')) throw error;
      process.stderr.write('error NOT_BUILT: the project is not built\nnext: npm ci\n');
      process.exitCode = 1;
    },
  );
}
