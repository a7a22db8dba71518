import base from '../../jest.config.js';

/** The full run beside the reference packages, which are installed on first use: `npm run test:differential`. */
export default {
  ...base,
  rootDir: '../..',
  roots: ['<rootDir>/test/differential'],
  testMatch: ['**/*.differential.ts'],
  testTimeout: 3_600_000,
};
