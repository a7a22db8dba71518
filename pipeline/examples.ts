/** Command lines that people start from, by command; printed below its help. */
const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  build: [
    'build laya-tiny',
    'build laya-tiny --length 64,96 --force',
    'build laya-tiny --graph any-length',
    'build laya --checkpoint ./laya --json',
    'build laya-tiny --toolchain portable',
  ],
  predict: [
    'predict laya-tiny --context "I paid twice, I am furious." \\\n    --questions \'["Is the customer angry?"]\'',
    'predict laya-tiny --context @mail.txt --questions @ask.json',
    'predict laya-tiny --input requests.jsonl > answers.jsonl',
  ],
  validate: ['validate laya-tiny', 'validate laya --length 64 --max-ratio 0.7 --json'],
  parity: ['parity laya-tiny', 'parity laya-tiny --length 64 --json'],
  benchmark: ['benchmark laya-tiny', 'benchmark laya-tiny --lengths 64 --questions 8 --plot laya.svg'],
  download: ['download laya', 'download laya laya-multilingual'],
  list: ['list', 'list --json'],
  verify: ['verify', 'verify laya-tiny --length 64', 'verify --all --deep'],
  export: ['export laya-tiny', 'export laya-tiny --length 64 --out exports/'],
  import: [
    'import laya-tiny-L64.tar.gz',
    'import laya-tiny-L64.tar.gz --force --expect-sha256 <digest>',
    'import laya-L64.tar.gz --revalidate',
  ],
  inspect: ['inspect laya-tiny-L64.tar.gz', 'inspect laya-tiny-L64.tar.gz --json'],
  info: ['info', 'info laya-tiny'],
  doctor: ['doctor', 'doctor --role validate', 'doctor --json'],
  'install-tools': ['install-tools'],
  'record-goldens': ['record-goldens laya-tiny', 'record-goldens laya --checkpoint ./laya --out laya.json'],
  serve: [
    'serve --model laya-tiny',
    'serve --model auto laya-typed-decisions --port 8000',
    'LAYA_API_KEY=... laya-artifacts serve --host 0.0.0.0 --allow-remote',
  ],
  fetch: [
    'fetch --list',
    'fetch laya-tiny --repo owner/artifacts',
    'fetch laya --length 64 --revision <commit>',
    'fetch laya --length 64 --revalidate',
    'fetch laya-tiny --require-signature --policy trusted.json',
  ],
  publish: [
    'publish laya-tiny --repo owner/artifacts --dry-run',
    'publish laya-tiny --repo owner/artifacts --create',
    'publish laya-tiny --repo owner/artifacts --sign',
  ],
  'verify-provenance': [
    'verify-provenance laya-tiny-L64.tar.gz',
    'verify-provenance laya-L64.tar.gz --policy trusted.json --json',
  ],
  prune: ['prune', 'prune --superseded --yes'],
  provenance: ['provenance laya-tiny', 'provenance laya-tiny --length 64 --json'],
  reproduce: ['reproduce laya-tiny --length 64'],
  warm: ['warm', 'warm laya-tiny'],
  quarantine: ['quarantine list', 'quarantine add laya-tiny --length 64 --reason "under suspicion"'],
};

/** The examples of a command as they stand below its help. */
export function examplesOf(command: string): string {
  const lines = EXAMPLES[command] ?? [];
  const whole = (line: string): string => (line.startsWith('LAYA_') ? line : `laya-artifacts ${line}`);
  return lines.length === 0 ? '' : `\nExamples:\n${lines.map((line) => `  ${whole(line)}`).join('\n')}`;
}
