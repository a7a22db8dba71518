import Foundation

@testable import ProbeCore

/// Copies its one input to its one output; while `gate` is given, each prediction waits for a signal.
final class FakeModel: LoadedModel {
  let inputs = [TensorSpec(name: "x", shape: [4])]
  let outputs = [TensorSpec(name: "y", shape: [4])]
  private let started: DispatchSemaphore?
  private let gate: DispatchSemaphore?

  init(started: DispatchSemaphore?, gate: DispatchSemaphore?) {
    self.started = started
    self.gate = gate
  }

  func predict(_ source: Tensors, into target: Tensors) throws {
    started?.signal()
    gate?.wait()
    if source[0][0] == 0xEE { throw ProbeError(.predictionFailed, "asked for") }
    target[0].copyMemory(from: UnsafeRawBufferPointer(source[0]))
  }
}

struct FakeBackend: Backend {
  let kind = CoreMLKind.stub
  var started: DispatchSemaphore?
  var gate: DispatchSemaphore?
  /// What `compile` writes: file names and contents; nil throws.
  var compiled: [String: String]? = [:]

  func devices() -> [ComputeDevice] { [] }

  func compile(package: String) async throws -> String {
    guard let compiled else { throw ProbeError(.compileFailed, "asked for") }
    let folder = temporaryFolder()
    for (name, content) in compiled { try Data(content.utf8).write(to: folder.appendingPathComponent(name)) }
    return folder.path
  }

  func plan(model: String, units: ComputeUnits) async throws -> [PlannedOperation] { [] }

  func load(model: String, units: ComputeUnits) throws -> any LoadedModel {
    if model.hasSuffix("refused") { throw ProbeError(.modelRefused, "asked for", where: model) }
    return FakeModel(started: started, gate: gate)
  }
}

func temporaryFolder() -> URL {
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("probe-test-\(UUID().uuidString)")
  try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  return folder
}
