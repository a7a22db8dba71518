/** Options of every command. */
export interface GlobalOptions {
  readonly offline?: boolean;
  readonly json?: boolean;
}
