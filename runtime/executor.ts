/** A loaded artifact: named float32 arrays in, named float32 arrays out, at the artifact's own precision. */
export interface Executable {
  /** An aborted signal ends the wait with its reason, where the executor can; others run to the end. */
  run(inputs: Record<string, Float32Array>, signal?: AbortSignal): Promise<Record<string, Float32Array>>;
  release(): Promise<void>;
}
