/** Downloads and uploads of one command that run at once. */
const LANES = 4;

/**
 * Runs the step for every item, a few at a time, beginning in their order. After a failure no further one begins; the
 * first failure is thrown once those that run have ended.
 */
export async function inParallel<T>(items: readonly T[], step: (item: T) => Promise<void>): Promise<void> {
  const failures: unknown[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < items.length && failures.length === 0) {
      const item = items[next++]!;
      await step(item).catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: Math.min(LANES, items.length) }, lane));
  if (failures.length > 0) throw failures[0];
}
