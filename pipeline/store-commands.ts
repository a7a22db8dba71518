import { type Command, Option } from 'commander';

/** Adds the commands that look after the store. Each one's module is loaded only when it runs. */
export function addStoreCommands(cli: Command, merged: <T extends object>(options: T) => T): void {
  const json = (): Option => new Option('--json', 'print one JSON document');

  cli
    .command('prune')
    .description('list what nobody needs any more, or remove it')
    .option('--yes', 'remove what is listed')
    .option('--superseded', 'also artifacts of other revisions than the pinned ones')
    .option('--quarantined', 'also quarantined artifacts')
    .addOption(json())
    .action(async (options) => (await import('./commands/prune.js')).prune(merged(options)));

  cli
    .command('provenance')
    .description('tell where registered artifacts come from')
    .argument('<model>', 'model name')
    .option('--length <buckets...>', 'only these buckets')
    .addOption(json())
    .action(async (model, options) => (await import('./commands/provenance.js')).provenance(model, merged(options)));

  cli
    .command('reproduce')
    .description('build an artifact again and compare it file by file')
    .argument('<model>', 'model name')
    .requiredOption('--length <buckets...>', 'the bucket')
    .option('--checkpoint <dir>', 'a local checkpoint folder with the pinned weights')
    .addOption(json())
    .addOption(new Option('--offline', 'never use the network'))
    .action(async (model, options) => (await import('./commands/reproduce.js')).reproduce(model, merged(options)));

  cli
    .command('warm')
    .description('load artifacts once, so that the next load is quick')
    .argument('[model]', 'model name (default: all)')
    .option('--length <buckets...>', 'only these buckets')
    .option('--checkpoint <dir>', 'a local checkpoint folder with the pinned weights')
    .addOption(json())
    .action(async (model, options) => (await import('./commands/warm.js')).warm(model, merged(options)));

  addQuarantine(cli, merged, json);
}

function addQuarantine(cli: Command, merged: <T extends object>(options: T) => T, json: () => Option): void {
  const quarantine = cli.command('quarantine').description('artifacts that were taken out of use');
  const load = () => import('./commands/quarantine.js');

  quarantine
    .command('list')
    .description('list them, with the reason')
    .addOption(json())
    .action(async (options) => (await load()).quarantineList(merged(options)));

  quarantine
    .command('add')
    .description('take artifacts that are not whole out of use')
    .argument('<model>', 'model name')
    .requiredOption('--length <buckets...>', 'the buckets')
    .option('--reason <text>', 'why; moves artifacts that are whole, too')
    .addOption(json())
    .action(async (model, options) => (await load()).quarantineAdd(model, merged(options)));

  quarantine
    .command('restore')
    .description('register one again, if it passes every check')
    .argument('<name>', 'its name in the list')
    .addOption(json())
    .action(async (name, options) => (await load()).quarantineRestore(name, merged(options)));

  quarantine
    .command('drop')
    .description('remove them for good')
    .argument('<names...>', 'their names in the list')
    .addOption(json())
    .action(async (names, options) => (await load()).quarantineDrop(names, merged(options)));
}
