import { describe, expect, test } from '@jest/globals';
import { profileRun } from '../../../runtime/mil/profile.js';
import { codeOf, treeOf, workspace } from '../../workspace.js';
import { program, writeModel } from './models.js';
import { TRACED, tracedRows } from './traced.js';

const folder = workspace();

describe('profileRun', () => {
  test.each([true, false])('places every operation of the program (fuse %s)', async (fuse) => {
    const temp = folder();
    const report = await profileRun(TRACED, tracedRows()[0]!.inputs, { temp, threads: 1, fuse });
    const { const: constants, ...computing } = report.operations;
    const total = Object.values(computing).reduce((sum, count) => sum + count, 0);
    expect(constants).toBe(397);
    expect(report.devices).toEqual({ cpu: total });
    expect(report.folded).toBe(0);
    expect(report.transitions).toBe(0);
    expect(report.providers).toEqual({ CPUExecutionProvider: report.nodes.length });
    const attention = report.nodes.filter(({ op }) => op === (fuse ? 'MultiHeadAttention' : 'Softmax'));
    expect(attention).toHaveLength(fuse ? 6 : 12);
    expect(attention.every(({ covers }) => covers.some((name) => /cast_fp16/.test(name)))).toBe(true);
    expect(await treeOf(temp)).toEqual([]);
  });

  test('counts apart what needs no node', async () => {
    const vector = 'tensor<fp32, [2]>';
    const statements = [`${vector} a = identity(x = x);`, `${vector} b = exp(x = a);`, `${vector} y = relu(x = a);`];
    const dir = await writeModel(folder(), program(`${vector} x`, statements, 'y'));
    const report = await profileRun(dir, { x: new Float32Array(2) }, { temp: folder() });
    expect(report).toMatchObject({ devices: { cpu: 1 }, folded: 2, operations: { identity: 1, exp: 1, relu: 1 } });
    expect(report.nodes.map(({ op }) => op)).toEqual(['Relu', 'Identity']);
  });

  test('leaves nothing behind when the run fails', async () => {
    const temp = folder();
    expect(await codeOf(() => profileRun(TRACED, {}, { temp }))).toBe('MIL_INPUT');
    expect(await codeOf(() => profileRun(folder(), {}, { temp }))).toBe('MIL_MISSING');
    expect(await treeOf(temp)).toEqual([]);
  });
});
