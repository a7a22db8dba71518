import ProbeCore

/// Core ML where this build has it.
public func makeBackend() -> any Backend {
  #if canImport(CoreML)
    return CoreMLBackend()
  #else
    return NoBackend()
  #endif
}
