/** What one request may be. Each has a test that trips it; the OpenAPI document names the same figures. */
export const REQUEST_LIMITS = {
  questions: 64,
  /** Characters (Unicode code points) of the state as the model would read it. */
  stateCharacters: 50_000,
  bodyBytes: 2 * 1024 * 1024,
  /** Arrays and objects inside each other. */
  depth: 100,
  choiceOptions: 100,
  scoreLevels: 32,
  /** Options of all questions together. */
  totalOptions: 512,
} as const;

/** What the server bears at once, and how long it waits. */
export interface ServerLimits {
  /** Requests that are being read, queued or answered; one more is told to come again. */
  readonly pending: number;
  readonly connections: number;
  /** Milliseconds for the header of a request, and for its body after that. */
  readonly headersMs: number;
  readonly bodyMs: number;
  /** Milliseconds that requests in progress get when the server stops. */
  readonly drainMs: number;
}

export const SERVER_LIMITS: ServerLimits = {
  pending: 64,
  connections: 1024,
  headersMs: 10_000,
  bodyMs: 10_000,
  drainMs: 30_000,
};
