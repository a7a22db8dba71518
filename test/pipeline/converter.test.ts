import { chmod, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { buildArtifacts } from '../../pipeline/line.js';
import { environmentFolder } from '../../pipeline/tools/python.js';
import { toolsRoot } from '../../registry/paths.js';
import { codeOf, workspace } from '../workspace.js';
import { testContext, testOrder } from './context.js';

const folder = workspace();

/** Builds with an interpreter that is the given shell script; $6 is where the result belongs. */
async function buildWith(script: string): Promise<{ code: string; left: string[] }> {
  const [root, tools] = [folder(), folder()];
  const bin = join(await environmentFolder('convert', tools), 'bin');
  await mkdir(bin, { recursive: true });
  await writeFile(join(bin, 'python'), `#!/bin/bash\n${script}\n`);
  await chmod(join(bin, 'python'), 0o755);
  await symlink(join(toolsRoot(process.env), 'mlmodelc-export-0.1.0'), join(tools, 'mlmodelc-export-0.1.0'));
  const code = await codeOf(() => buildArtifacts(testOrder(), testContext(root, { tools })));
  const left = await readdir(join(root, 'artifacts'), { recursive: true });
  return { code, left: left.filter((path) => !path.startsWith('.locks')) };
}

const ok = (bucket: string): string =>
  `{"protocol":1,"ok":true,"python":"3","packages":{},"seconds":{},"buckets":{"64":${bucket}}}`;
const bucket = (layout: string, name = 'L64.mlpackage'): string =>
  `{"package":"${name}","layout_check_max_abs_logit_fp32":${layout},"operations":{}}`;

describe('a converter that misbehaves', () => {
  const cases: [string, string, string][] = [
    ['crashes', 'CONVERTER_CRASHED', 'echo boom >&2; exit 3'],
    ['is killed', 'TOOL_KILLED', 'kill -9 $$'],
    ['ends well without a result', 'CONVERTER_CRASHED', 'exit 0'],
    // B15
    ['writes its result to stdout only', 'CONVERTER_CRASHED', `echo '${ok(bucket('1e-6'))}'`],
    ['writes half a result', 'CONVERTER_PROTOCOL', `echo '{"protocol":1,' > "$6"`],
    ['writes another protocol', 'CONVERTER_PROTOCOL', `echo '{"protocol":2,"ok":true}' > "$6"`],
    ['fails after a good result', 'CONVERTER_CRASHED', `echo '${ok(bucket('1e-6'))}' > "$6"; exit 1`],
    ['leaves a bucket out', 'CONVERTER_PROTOCOL', `echo '${ok(bucket('1e-6')).replace('"64"', '"96"')}' > "$6"`],
    ['names a package that is not there', 'CONVERTER_PROTOCOL', `echo '${ok(bucket('1e-6'))}' > "$6"`],
    ['names a package elsewhere', 'CONVERTER_PROTOCOL', `echo '${ok(bucket('1e-6', '../../x.mlpackage'))}' > "$6"`],
    ['gives NaN for a figure', 'CONVERTER_PROTOCOL', `echo '${ok(bucket('NaN'))}' > "$6"`],
    [
      'refuses',
      'SOME_CODE',
      `echo '{"protocol":1,"ok":false,"error":{"code":"SOME_CODE","message":"m"}}' > "$6"; exit 1`,
    ],
  ];

  it.each(cases)('%s', async (_name, code, script) => {
    expect(await buildWith(script)).toEqual({ code, left: ['.staging'] });
  });

  // B06: a layout check that was not made, or made badly, is a refusal with a record.
  it.each(['null', '0.5', '1e-3'])('gives a layout check of %s', async (figure) => {
    const { code, left } = await buildWith(`echo '${ok(bucket(figure))}' > "$6"`);
    expect(code).toBe('no error');
    expect(left.filter((path) => path.startsWith('rejected/'))).toHaveLength(1);
    expect(left.filter((path) => path.startsWith('laya-tiny') || path.startsWith('.staging/'))).toEqual([]);
  });
});
