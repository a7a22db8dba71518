import { describe, expect, it } from '@jest/globals';
import { type AutoLaya, Laya } from '../../runtime/index.js';
import { codeOf, workspace } from '../workspace.js';

const makeFolder = workspace();

describe('Laya.open of "auto"', () => {
  it('opens both models, or says which artifact is missing', async () => {
    const root = makeFolder();
    expect(await codeOf(() => Laya.open('auto', { root, env: {} }))).toBe('ARTIFACT_MISSING');
  });

  it('has the router’s type', () => {
    const typed: (open: typeof Laya.open) => Promise<AutoLaya> = (open) => open('auto');
    expect(typeof typed).toBe('function');
  });
});
