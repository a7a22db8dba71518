import Foundation

/// One run of `predict` (§2.4).
struct PredictRun {
  private struct File: Decodable {
    let inputs: [String: String]
  }

  let model: String
  let units: ComputeUnits
  let inputs: String?
  let repeats: Int

  func report(backend: any Backend, input: Int32) throws -> PredictReport {
    try requireModel(model)
    let started = monotonicSeconds()
    let loaded = try backend.load(model: model, units: units)
    let load = monotonicSeconds() - started
    let limit = HelloReport.Limits.standard.frame
    let source = try tensors(loaded.inputs, limit)
    source.clear()
    if let inputs { try fill(source, from: try readFile(inputs, input)) }
    let target = try tensors(loaded.outputs, limit)
    let first = try timed { try loaded.predict(source, into: target) }
    let results = loaded.outputs.indices.map { Data(target[$0]) }
    var times: [Double] = []
    var equal = true
    for _ in 0..<repeats {
      let run = drained { Result { try timed { try loaded.predict(source, into: target) } } }
      times.append(try run.get())
      equal = equal && loaded.outputs.indices.allSatisfy { Data(target[$0]) == results[$0] }
    }
    let outputs = zip(loaded.outputs, results).map { spec, data in
      PredictReport.Output(name: spec.name, shape: spec.shape, fp16: data.base64EncodedString())
    }
    let seconds = PredictReport.Seconds(load: load, first: first, median: median(times))
    return PredictReport(units: units, outputs: outputs, seconds: seconds, repeatedEqual: equal)
  }

  private func tensors(_ specs: [TensorSpec], _ limit: Int) throws -> Tensors {
    let layout = try layout(specs, model, limit)
    return Tensors(buffer: FrameBuffer(capacity: layout.length), layout: layout)
  }

  private func readFile(_ path: String, _ input: Int32) throws -> [String: String] {
    do {
      let data =
        path == "-"
        ? FileHandle(fileDescriptor: input, closeOnDealloc: false).readDataToEndOfFile()
        : try Data(contentsOf: URL(fileURLWithPath: path))
      return try JSONDecoder().decode(File.self, from: data).inputs
    } catch {
      throw ProbeError(.inputsInvalid, "no JSON with inputs: \(error)", where: path)
    }
  }

  private func fill(_ tensors: Tensors, from inputs: [String: String]) throws {
    let names = tensors.layout.specs.map(\.name)
    if let unknown = inputs.keys.sorted().first(where: { !names.contains($0) }) {
      throw ProbeError(.inputsInvalid, "the model has no such input", where: unknown)
    }
    for (index, name) in names.enumerated() {
      guard let text = inputs[name], let data = Data(base64Encoded: text), data.count == tensors.layout.sizes[index]
      else {
        throw ProbeError(.inputsInvalid, "expected base64 of \(tensors.layout.sizes[index]) bytes", where: name)
      }
      tensors[index].copyBytes(from: data)
    }
  }
}

private func timed(_ step: () throws -> Void) rethrows -> Double {
  let started = monotonicSeconds()
  try step()
  return monotonicSeconds() - started
}

private func median(_ times: [Double]) -> Double? {
  times.isEmpty ? nil : times.sorted()[(times.count - 1) / 2]
}
