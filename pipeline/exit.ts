import { LayaError } from '../schemas/errors.js';
import { InterruptedError, UsageError } from './errors.js';
import { safeText } from './text.js';

/** Exit codes: 0 done, 1 refused or failed, 2 a command line or request that can't be meant, 130/143 stopped. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof InterruptedError) return error.signal === 'SIGINT' ? 130 : 143;
  if (error instanceof UsageError || (error instanceof LayaError && error.name === 'InvalidRequestError')) return 2;
  return 1;
}

/** An error on stderr: code, message, what was expected and found, the next command; or one JSON line. */
export function printError(error: unknown, json: boolean): void {
  if (!(error instanceof LayaError)) {
    process.stderr.write(`error UNEXPECTED: ${safeText(describe(error))}\n`);
    return;
  }
  if (json) {
    process.stderr.write(`${JSON.stringify(error)}\n`);
    return;
  }
  const lines = [`error ${error.code}: ${error.message}`];
  if (error.where !== undefined) lines.push(`  where: ${error.where}`);
  if (error.expected !== undefined) lines.push(`  expected: ${shown(error.expected)}`);
  if (error.found !== undefined) lines.push(`  found: ${shown(error.found)}`);
  if (error.hint !== undefined) lines.push(`next: ${error.hint}`);
  process.stderr.write(`${lines.map(safeText).join('\n')}\n`);
}

function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
  return text.length > 800 ? `${text.slice(0, 800)}...` : text;
}

/** An error that no code of ours expected. The stack is shown only where LAYA_DEBUG asks for it. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return process.env.LAYA_DEBUG ? (error.stack ?? error.message) : `${error.name}: ${error.message}`;
}
