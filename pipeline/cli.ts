import { Command, CommanderError, Option } from 'commander';
import { examplesOf } from './examples.js';
import { exitCodeOf, printError } from './exit.js';
import { addHubCommands } from './hub-commands.js';
import type { GlobalOptions } from './options.js';
import { addServeCommand } from './serve-command.js';
import { addStoreCommands } from './store-commands.js';
import { toolchainOption, withToolchain } from './toolchain-options.js';
import { ownVersion } from './version.js';

/** Each command's module is loaded only when the command runs: help has to be there at once. */
function program(): Command {
  const cli = new Command('laya-artifacts')
    .description('Make, prove, keep and hand out Core ML artifacts of the Laya decision models.')
    .version(ownVersion(), '-V, --version', 'print the version')
    .option('--offline', 'never use the network')
    .showHelpAfterError('(add --help for help)')
    .configureHelp({ helpWidth: 80 })
    .exitOverride();
  const json = (): Option => new Option('--json', 'print one JSON document');
  const offline = (): Option => new Option('--offline', 'never use the network');
  const device = (): Option =>
    new Option('--device <device>', 'where to run').choices(['auto', 'cpu', 'ane', 'gpu']).default('auto');
  const graphs = (): Option =>
    new Option('--graph <graph>', 'which graphs may answer').choices(['auto', 'buckets', 'any-length']).default('auto');

  withToolchain(cli.command('build'))
    .description('build, gate and register artifacts of a model')
    .argument('[model]', 'model name, for example laya-tiny')
    .option('--model <name>', 'the same as the argument')
    .option('--length <buckets...>', 'buckets to build, for example 64,96 (default: all offered)')
    .option('--checkpoint <dir>', 'a local checkpoint folder with the pinned weights')
    .option('--force', 'build again what is registered')
    .addOption(
      new Option('--graph <graph>', 'what to build').choices(['buckets', 'any-length', 'all']).default('buckets'),
    )
    .addOption(json())
    .addOption(offline())
    .action(async (model, options) => (await import('./commands/build.js')).build(model, merged(options)));

  cli
    .command('predict')
    .description('answer questions about a text')
    .argument('<model>', 'model name')
    .option('--context <text>', 'the text: inline, @file, or - for stdin')
    .option('--questions <json>', 'the questions: inline JSON, @file, or -')
    .option('--input <file>', 'JSON Lines, a request on each: a file, or - for stdin')
    .option('--min-confidence <p>', 'flag answers less confident than this, from 0 to 1')
    .addOption(device())
    .addOption(graphs())
    .option('--checkpoint <dir>', 'a local checkpoint folder with the pinned weights')
    .addOption(offline())
    .action(async (model, options) => (await import('./commands/predict.js')).predict(model, merged(options)));

  withToolchain(cli.command('parity'))
    .description('run the gate on everything registered of a model, on this machine')
    .argument('<model>', 'model name')
    .option('--length <buckets...>', 'only these buckets')
    .option('--checkpoint <dir>', 'a local checkpoint folder with the pinned weights')
    .addOption(json())
    .addOption(offline())
    .action(async (model, options) => (await import('./commands/parity.js')).parity(model, merged(options)));

  cli
    .command('validate')
    .description('run the gates of this Mac on registered artifacts, and add its evidence')
    .argument('<model>', 'model name')
    .option('--length <buckets...>', 'only these buckets (default: all registered)')
    .option('--max-ratio <ratio>', "bound of the load-time probe, time by the CPU's (default: 0.8)")
    .option('--checkpoint <dir>', 'a local checkpoint folder with the pinned weights')
    .addOption(json())
    .addOption(offline())
    .action(async (model, options) => (await import('./commands/validate.js')).validate(model, merged(options)));

  cli
    .command('benchmark')
    .description('measure latencies per length and number of questions')
    .argument('<model>', 'model name')
    .option('--lengths <tokens...>', 'tokens of the longest row (default: the offered buckets)')
    .option('--questions <counts...>', 'questions of a request', ['1', '8'])
    .option('--warmup <n>', 'requests before each measurement', '5')
    .option('--iters <n>', 'requests that are measured', '50')
    .option('--output <file>', 'write the figures as JSON')
    .option('--plot <file>', 'draw them as an SVG picture')
    .option('--checkpoint <dir>', 'a local checkpoint folder with the pinned weights')
    .addOption(device())
    .addOption(graphs())
    .addOption(json())
    .addOption(offline())
    .action(async (model, options) => (await import('./commands/benchmark.js')).benchmark(model, merged(options)));

  cli
    .command('download')
    .description('bring pinned checkpoints into the hub cache, verified')
    .argument('<models...>', 'model names')
    .addOption(json())
    .addOption(offline())
    .action(async (models, options) => (await import('./commands/download.js')).download(models, merged(options)));

  cli
    .command('list')
    .description('list the registered artifacts')
    .addOption(json())
    .action(async (options) => (await import('./commands/list.js')).list(merged(options)));

  cli
    .command('verify')
    .description('check every byte and record of registered artifacts')
    .argument('[model]', 'model name (default: all)')
    .option('--length <buckets...>', 'only these buckets')
    .option('--all', 'also rejected and quarantined records, and what builds left')
    .option('--deep', 'run the gates of this machine again, too')
    .addOption(json())
    .action(async (model, options) => (await import('./commands/verify.js')).verify(model, merged(options)));

  cli
    .command('export')
    .description('write registered artifacts as archives, verified on the way')
    .argument('<model>', 'model name')
    .option('--length <buckets...>', 'only these buckets (default: all registered)')
    .option('-o, --out <path>', 'a folder, or the file when its name ends in .tar.gz (default: here)')
    .addOption(json())
    .action(async (model, options) => (await import('./commands/export.js')).exportArtifacts(model, merged(options)));

  withToolchain(cli.command('import'))
    .description('check archives, run the gates of this machine, register')
    .argument('<files...>', 'archives made by export')
    .option('--force', 'take the place of what is registered')
    .option('--revalidate', 'also what was proven on another kind of machine, if it passes the gates of this one')
    .option('--expect-sha256 <digest>', 'what the SHA-256 of the one file must be')
    .option('--checkpoint <dir>', 'a local checkpoint folder with the pinned weights')
    .addOption(json())
    .addOption(offline())
    .action(async (files, options) => (await import('./commands/import.js')).importArchives(files, merged(options)));

  cli
    .command('inspect')
    .description('tell what an archive holds, without installing it')
    .argument('<file>', 'an archive made by export')
    .addOption(json())
    .action(async (file, options) => (await import('./commands/inspect.js')).inspect(file, merged(options)));

  cli
    .command('info')
    .description('print what is known about this machine and the models, as JSON')
    .argument('[model]', 'model name (default: all)')
    .action(async (model, options) => (await import('./commands/info.js')).info(model, merged(options)));

  cli
    .command('doctor')
    .description('tell what this machine can be used for, and what is missing')
    .addOption(
      new Option('--role <role>', 'only this one').choices(['build-portable', 'build-apple', 'validate', 'run']),
    )
    .addOption(json())
    .action(async (options) => (await import('./commands/doctor.js')).doctor(merged(options)));

  cli
    .command('install-tools')
    .description('install what a build needs: the conversion environment, the compiler or laya-probe')
    .addOption(toolchainOption())
    .addOption(offline())
    .action(async (options) => (await import('./commands/install-tools.js')).installTools(merged(options)));

  cli
    .command('record-goldens')
    .description('record references with the upstream package (installs 5 GB)')
    .argument('[model]', 'model name')
    .option('--model <name>', 'the same as the argument')
    .option('--checkpoint <dir>', 'a local checkpoint folder with the pinned weights')
    .option('--out <file>', 'where to write them')
    .addOption(offline())
    .action(async (model, options) => (await import('./commands/goldens.js')).recordGoldens(model, merged(options)));

  const merged = <T extends object>(options: T): T & GlobalOptions => ({ ...cli.opts<GlobalOptions>(), ...options });
  addServeCommand(cli, merged);
  addHubCommands(cli, merged);
  addStoreCommands(cli, merged);
  for (const command of cli.commands) {
    command.exitOverride().configureHelp({ helpWidth: 80 });
    command.addHelpText('after', examplesOf(command.name()));
  }
  return cli;
}

/** Runs the command line. Sets the exit code; errors go to stderr, data to stdout. */
export async function main(argv: readonly string[]): Promise<void> {
  try {
    const cli = program();
    if (argv.length <= 2) cli.outputHelp();
    else await cli.parseAsync([...argv]);
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
    else {
      printError(error, argv.includes('--json'));
      process.exitCode = exitCodeOf(error);
    }
  }
}
