// What reads the store, and the stamps: derived data outside artifacts/, which a load may write. All else in registry/
// changes what readers see, and stays out of the runtime's reach, also by way of these.
const READ_SIDE =
  '^registry/(dense|errors|evidence|file-stamps|generation|hub/checkpoint-files|locate|manifest|models|names|package-root|paths|read|sha256|stamps|tree)\\.ts$';

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'schemas-import-nothing',
      severity: 'error',
      from: { path: '^schemas/' },
      to: { path: '^(registry|runtime|pipeline)/' },
    },
    {
      name: 'registry-imports-schemas-only',
      severity: 'error',
      from: { path: '^registry/' },
      to: { path: '^(runtime|pipeline)/' },
    },
    {
      name: 'runtime-reads-the-store-only',
      severity: 'error',
      from: { path: '^runtime/' },
      to: { path: '^(pipeline|registry)/', pathNot: READ_SIDE },
    },
    {
      name: 'the-read-side-does-not-write',
      severity: 'error',
      from: { path: READ_SIDE },
      to: { path: '^registry/', pathNot: READ_SIDE },
    },
    {
      name: 'nothing-imports-pipeline',
      severity: 'error',
      from: { pathNot: '^(pipeline|test|bench)/' },
      to: { path: '^pipeline/' },
    },
    {
      name: 'no-unlisted-packages',
      severity: 'error',
      from: {},
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'no-dev-packages-in-the-product',
      severity: 'error',
      from: { path: '^(schemas|registry|runtime|pipeline)/' },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.mjs'],
      conditionNames: ['import', 'types', 'node', 'default'],
    },
  },
};
