import { TestEnvironment } from 'jest-environment-node';

/** Classes that native modules compare by identity: in tests they are the ones the process has. */
const SHARED = [
  'Float32Array',
  'Float64Array',
  'Uint16Array',
  'Int32Array',
  'BigInt64Array',
  'TypeError',
  'RangeError',
  'Error',
];

export default class extends TestEnvironment {
  async setup() {
    await super.setup();
    for (const name of SHARED) this.global[name] = globalThis[name];
  }
}
