/// What the probe asks of Core ML.
public protocol Backend: Sendable {
  /// What computes.
  var kind: CoreMLKind { get }
  /// The devices there are.
  func devices() -> [ComputeDevice]
  /// Compiles a package into a temporary folder and gives its path. Throws `COMPILE_FAILED`.
  func compile(package: String) async throws -> String
  /// Every operation of the function `main` in program order. Throws `PLAN_FAILED`, `MODEL_REFUSED`.
  func plan(model: String, units: ComputeUnits) async throws -> [PlannedOperation]
  /// Loads a compiled model. Throws `MODEL_REFUSED`, `MODEL_INTERFACE`.
  func load(model: String, units: ComputeUnits) throws -> any LoadedModel
}

/// A model in memory, used by one thread at a time.
public protocol LoadedModel: AnyObject {
  /// In the order of §4.2.
  var inputs: [TensorSpec] { get }
  /// In the order of §4.2.
  var outputs: [TensorSpec] { get }
  /// Runs on FP16 elements where they lie, in the layout of the inputs, and writes the outputs in theirs.
  func predict(_ source: Tensors, into target: Tensors) throws
}

/// Tensors that lie in a frame.
public struct Tensors {
  /// Keeps the memory alive.
  public let buffer: FrameBuffer
  /// Where they lie.
  public let layout: TensorLayout

  /// The elements of one tensor.
  public subscript(index: Int) -> UnsafeMutableRawBufferPointer {
    let (offset, size) = (layout.offsets[index], layout.sizes[index])
    return UnsafeMutableRawBufferPointer(rebasing: buffer.payload(layout.length)[offset..<(offset + size)])
  }

  /// Gives every byte the value zero.
  func clear() {
    for index in layout.specs.indices { self[index].initializeMemory(as: UInt8.self, repeating: 0) }
  }
}

/// A backend for builds without Core ML: says so.
public struct NoBackend: Backend {
  /// Makes one.
  public init() {}

  /// Nothing computes.
  public var kind: CoreMLKind { .none }

  /// There are none to see.
  public func devices() -> [ComputeDevice] { [] }

  /// Throws `CORE_ML_MISSING`.
  public func compile(package: String) async throws -> String { throw missing() }

  /// Throws `CORE_ML_MISSING`.
  public func plan(model: String, units: ComputeUnits) async throws -> [PlannedOperation] { throw missing() }

  /// Throws `CORE_ML_MISSING`.
  public func load(model: String, units: ComputeUnits) throws -> any LoadedModel { throw missing() }

  private func missing() -> ProbeError {
    ProbeError(.coreMLMissing, "this laya-probe was built without Core ML", hint: "build it on macOS")
  }
}
