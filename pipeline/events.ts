/** What a command tells while it works. One table in report.ts turns each into text. */
export type Event =
  | { readonly kind: 'stage_started'; readonly stage: string; readonly bucket?: number }
  | { readonly kind: 'stage_ended'; readonly stage: string; readonly bucket?: number; readonly seconds: number }
  | { readonly kind: 'progress'; readonly label: string; readonly done: number; readonly total?: number }
  | { readonly kind: 'tool_install'; readonly tool: string; readonly detail: string }
  | { readonly kind: 'tool_ready'; readonly tool: string; readonly seconds: number }
  | { readonly kind: 'waiting'; readonly what: string; readonly holder: string }
  | { readonly kind: 'skipped'; readonly bucket: number; readonly reason: string }
  | { readonly kind: 'rejected'; readonly bucket: number; readonly record: string };

export type Emit = (event: Event) => void;

/**
 * Everything below the command line that is not an argument: resolved once at the edge, so that no
 * stage reads the environment, the clock or the network by itself.
 */
export interface Context {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Root shared with the Python runtime. */
  readonly root: string;
  /** Folder of the tools this project installs. */
  readonly tools: string;
  readonly offline: boolean;
  readonly now: () => Date;
  readonly signal: AbortSignal;
  readonly emit: Emit;
}
