import { type Command, Option } from 'commander';

/** Chooses the toolchain (`hereToolchain`). */
export const toolchainOption = (): Option =>
  new Option('--toolchain <kind>', 'what compiles and executes (default: apple on a Mac with Apple silicon)').choices([
    'portable',
    'apple',
  ]);

/** Adds all that is about the toolchain to a command that runs gates. */
export const withToolchain = (command: Command): Command =>
  command
    .addOption(toolchainOption())
    .option('--max-ratio <ratio>', "apple: bound of the load-time probe, time by the CPU's (default: 0.8)");
