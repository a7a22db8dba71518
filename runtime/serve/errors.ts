import { type ErrorFacts, LayaError } from '../../schemas/errors.js';

/** The one table of what a refusal looks like on the wire. */
const STATUS = {
  BODY_NOT_JSON: 400,
  BODY_INVALID: 400,
  TARGET_INVALID: 400,
  TEXT_INVALID: 400,
  KEY_WRONG: 401,
  ORIGIN_FOREIGN: 403,
  ROUTE_UNKNOWN: 404,
  METHOD_UNKNOWN: 405,
  BODY_SLOW: 408,
  BODY_TOO_LARGE: 413,
  TOO_MANY_QUESTIONS: 413,
  STATE_TOO_LARGE: 413,
  TYPE_NOT_JSON: 415,
  HOST_NOT_LOOPBACK: 421,
  BODY_TOO_DEEP: 422,
  OPTIONS_TOO_MANY: 422,
  FIELD_UNSUPPORTED: 422,
  REQUEST_REFUSED: 422,
  CLIENT_GONE: 499,
  INFERENCE_FAILED: 500,
  BUSY: 503,
  STOPPING: 503,
  MODEL_NOT_SERVED: 503,
  MODEL_WARMING: 503,
  MODEL_UNAVAILABLE: 503,
  WORKER_LOST: 503,
  DEVICE_UNAVAILABLE: 503,
} as const;

export type HttpErrorCode = keyof typeof STATUS;
export type HttpStatus = (typeof STATUS)[HttpErrorCode];

/** Refusals after which the same request may succeed soon. */
const TRANSIENT: readonly HttpErrorCode[] = ['BUSY', 'STOPPING', 'MODEL_WARMING', 'WORKER_LOST', 'DEVICE_UNAVAILABLE'];

/** A request that is not answered. The message goes to the client: it never tells paths, keys or other people's text. */
export class HttpError extends LayaError<HttpErrorCode> {
  get status(): HttpStatus {
    return STATUS[this.code];
  }

  /** Seconds after which to try again, where that makes sense. */
  get retryAfter(): number | undefined {
    return TRANSIENT.includes(this.code) ? 1 : undefined;
  }
}

/** A request that the model's own checks refuse; `reason` is their code. */
export class RefusedError extends HttpError {
  readonly reason: string;

  constructor(reason: string, message: string, facts: ErrorFacts) {
    super(reason === 'TEXT_INVALID' ? 'TEXT_INVALID' : 'REQUEST_REFUSED', message, facts);
    this.reason = reason;
  }
}

export type ServeErrorCode = 'BIND_REFUSED' | 'API_KEY_MISSING' | 'API_KEY_INVALID' | 'LISTEN_FAILED' | 'NO_MODEL';

/** A server that can not be started as asked. */
export class ServeError extends LayaError<ServeErrorCode> {}
