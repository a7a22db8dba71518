import { LayaError } from '../../schemas/errors.js';

/** Errors of the client (docs/probe-protocol.md §5): about the process, never about a model. */
export type ProbeClientCode =
  | 'PROBE_MISSING'
  | 'PROBE_NOT_EXECUTABLE'
  | 'PROBE_WRONG_FORMAT'
  | 'PROBE_KILLED_AT_START'
  | 'PROBE_START_FAILED'
  | 'PROBE_HUNG'
  | 'PROBE_VERSION'
  | 'PROBE_NOT_APPLE'
  | 'PROBE_PROTOCOL'
  | 'PROBE_CRASHED'
  | 'PROBE_CLOSED'
  | 'PROBE_BUSY'
  | 'PROBE_INPUT'
  | 'PROBE_REPORTED';

/** Errors that the probe reports, by its own codes (§4.6). */
export const REPORTED_CODES = [
  'USAGE',
  'PROTOCOL_VERSION',
  'CORE_ML_MISSING',
  'PACKAGE_MISSING',
  'COMPILE_FAILED',
  'COMPILE_OUTPUT',
  'OUTPUT_EXISTS',
  'OUTPUT_FAILED',
  'MODEL_MISSING',
  'MODEL_REFUSED',
  'MODEL_INTERFACE',
  'PLAN_FAILED',
  'INPUTS_INVALID',
  'FRAME_MAGIC',
  'FRAME_KIND',
  'FRAME_RESERVED',
  'FRAME_TOO_LARGE',
  'FRAME_TRUNCATED',
  'REQUEST_ID',
  'REQUEST_MODEL',
  'REQUEST_SHAPE',
  'QUEUE_FULL',
  'CANCELLED',
  'PREDICTION_FAILED',
] as const;

export type ProbeErrorCode = ProbeClientCode | (typeof REPORTED_CODES)[number];

/** laya-probe could not be started, broke off, broke the protocol, or reported an error. */
export class ProbeError extends LayaError<ProbeErrorCode> {}

/** What the other side sent is not what the protocol says. */
export function brokenProtocol(where: string, expected: string, found: unknown): ProbeError {
  return new ProbeError('PROBE_PROTOCOL', `the probe broke the protocol in ${where}`, {
    where,
    expected,
    found,
    hint: 'build laya-probe again, from the sources of this release',
  });
}
