/** A loaded artifact: named float32 arrays in, named float32 arrays out, at the artifact's own precision. */
export interface Executable {
  run(inputs: Record<string, Float32Array>): Promise<Record<string, Float32Array>>;
  release(): Promise<void>;
}
