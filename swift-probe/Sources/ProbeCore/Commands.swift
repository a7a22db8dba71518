import Foundation

/// Runs commands and prints their documents (§2).
public struct Commands: Sendable {
  private struct Document<Result: Encodable>: Encodable {
    let probe: Identity
    let command: String?
    let result: Result?
    let error: ProbeError?
  }

  private struct Nothing: Encodable {}

  private let backend: any Backend
  private let output: Int32
  private let input: Int32

  /// Commands over two file descriptors.
  public init(backend: any Backend, input: Int32, output: Int32) {
    self.backend = backend
    self.input = input
    self.output = output
  }

  /// Does what the arguments say; gives the exit code.
  public func run(_ arguments: [String]) async -> Int32 {
    let command: Command
    do {
      command = try parseArguments(arguments)
    } catch {
      return refuse(error, arguments.first)
    }
    if case .serve(let models, let units, let version) = command {
      ignoreInterrupts()
      return Session(backend: backend, input: input, output: output)
        .run(models: models, units: units, version: version)
    }
    do {
      try await run(command)
      return 0
    } catch is BrokenStream {
      return 1
    } catch {
      return refuse(error, command.name)
    }
  }

  private func run(_ command: Command) async throws {
    switch command {
    case .version, .serve:
      try print(command, Nothing())
    case .device:
      try print(command, deviceReport(coreML: backend.kind, devices: backend.devices()))
    case .compile(let package, let out):
      try print(command, try await compilePackage(package, to: out, with: backend))
    case .plan(let model, let units):
      try requireModel(model)
      try print(command, PlanReport(units: units, program: try await backend.plan(model: model, units: units)))
    case .predict(let model, let units, let inputs, let repeats):
      let run = PredictRun(model: model, units: units, inputs: inputs, repeats: repeats)
      try print(command, try run.report(backend: backend, input: input))
    }
  }

  private func print(_ command: Command, _ result: some Encodable) throws {
    try write(Document(probe: Identity(coreML: backend.kind), command: command.name, result: result, error: nil))
  }

  /// `serve` answers in frames even when its arguments are wrong.
  private func refuse(_ error: any Error, _ name: String?) -> Int32 {
    let known = error as? ProbeError ?? ProbeError(.predictionFailed, "\(error)")
    if name == "serve" {
      try? FrameWriter(descriptor: output).send(.error, id: 0, json: known)
    } else {
      let identity = Identity(coreML: backend.kind)
      try? write(Document<Nothing>(probe: identity, command: name, result: nil, error: known))
    }
    return known.exitCode
  }

  private func write(_ document: some Encodable) throws {
    var data = try jsonData(document)
    data.append(0x0A)
    try data.withUnsafeBytes { try writeAll($0, to: output) }
  }
}

/// Throws `MODEL_MISSING` unless a folder with a compiled model is there.
func requireModel(_ path: String) throws {
  let file = URL(fileURLWithPath: path).appendingPathComponent("coremldata.bin").path
  guard FileManager.default.fileExists(atPath: file) else {
    throw ProbeError(.modelMissing, "no compiled model (.mlmodelc) with a coremldata.bin there", where: path)
  }
}
