/** Levels from the most to the least talkative; `silent` writes nothing. */
export const LOG_LEVELS = ['debug', 'info', 'warning', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

type Value = string | number | boolean | null | undefined | readonly string[];
/** Never holds text of states, questions, answers or keys. */
export type LogFields = Readonly<Record<string, Value>>;
export type Log = (level: Exclude<LogLevel, 'silent'>, event: string, fields?: LogFields) => void;

/** JSON Lines: time, level, event, then the fields. `write` must not throw. */
export function jsonLog(least: LogLevel, write: (line: string) => void, now: () => Date): Log {
  const floor = LOG_LEVELS.indexOf(least);
  return (level, event, fields = {}) => {
    if (LOG_LEVELS.indexOf(level) < floor) return;
    write(`${JSON.stringify({ time: now().toISOString(), level, event, ...fields })}\n`);
  };
}
