import { type Command, Option } from 'commander';
import { withToolchain } from './toolchain-options.js';

type Merged = <T extends object>(options: T) => T;

const json = (): Option => new Option('--json', 'print one JSON document');
const offline = (): Option => new Option('--offline', 'never use the network');

/** Adds the commands that hand artifacts out and take them in. Each one's module is loaded only when it runs. */
export function addHubCommands(cli: Command, merged: Merged): void {
  addFetch(cli, merged);
  addPublish(cli, merged);
  addVerifyProvenance(cli, merged);
}

/** Options that say whose signatures count, and by what they are judged. */
const withTrust = (command: Command): Command =>
  command
    .option('--identity <name>', 'who must have signed, exactly as in the certificate')
    .option('--issuer <url>', 'who must vouch for that identity')
    .option('--policy <file>', 'a file with such pairs, any of which will do')
    .option('--trusted-root <file>', "a trusted_root.json in place of Sigstore's public one");

function addFetch(cli: Command, merged: Merged): void {
  const command = withToolchain(cli.command('fetch'))
    .description('get prebuilt artifacts, run the gates of this machine, register')
    .argument('[model]', 'model name')
    .option('--length <buckets...>', 'only these buckets (default: all offered)')
    .option('--all', 'all that there is for this machine, of one model or of every one')
    .option('--list', 'only tell what there is')
    .option('--repo <owner/name>', 'a repository that publish has written to')
    .option('--revision <revision>', 'a commit, branch or tag of it')
    .option('--profile <slug>', "a profile in place of this machine's")
    .option('--force', 'take the place of what is registered')
    .option('--revalidate', "also another profile's (default: portable), if it passes the gates of this machine")
    .option('--allow-rollback', 'take an index older than the last one seen')
    .option('--checkpoint <dir>', 'a local checkpoint folder with the pinned weights')
    .option('--require-signature', 'only what is signed by whom you name');
  withTrust(command)
    .addOption(json())
    .addOption(offline())
    .action(async (model, options) => (await import('./commands/fetch.js')).fetch(model, merged(options)));
}

function addPublish(cli: Command, merged: Merged): void {
  cli
    .command('publish')
    .description('upload registered artifacts and add them to the index')
    .argument('[models...]', 'model names (default: all that are registered)')
    .requiredOption('--repo <owner/name>', 'the repository')
    .option('--length <buckets...>', 'only these buckets')
    .option('--revision <branch>', 'the branch', 'main')
    .option('--create', 'make the repository or branch where it is missing')
    .option('--private', 'make it a private one')
    .option('--tag <name>', 'tag the commit')
    .option('--sign', 'sign a provenance statement of each archive (in a CI job)')
    .option('--dry-run', 'print what would be done, and do nothing')
    .addOption(json())
    .action(async (models, options) => (await import('./commands/publish.js')).publish(models, merged(options)));
}

function addVerifyProvenance(cli: Command, merged: Merged): void {
  const command = cli
    .command('verify-provenance')
    .description('tell who signed an archive, and what the signed statement says')
    .argument('<file>', 'an archive')
    .option('--bundle <file>', 'its signature (default: FILE.sigstore.json)');
  const load = () => import('./commands/verify-provenance.js');
  withTrust(command)
    .addOption(json())
    .addOption(offline())
    .action(async (file, options) => (await load()).verifyProvenance(file, merged(options)));
}
