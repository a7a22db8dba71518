import { type Command, Option } from 'commander';

/** Adds what chooses the toolchain (`hereToolchain`). */
export const withToolchain = (command: Command): Command =>
  command
    .addOption(
      new Option(
        '--toolchain <kind>',
        'what compiles and executes (default: apple on a Mac with Apple silicon)',
      ).choices(['portable', 'apple']),
    )
    .option('--max-ratio <ratio>', "apple: bound of the load-time probe, time by the CPU's (default: 0.8)");
