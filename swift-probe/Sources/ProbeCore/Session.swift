import Foundation

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// One run of `serve` (§4): the calling thread reads, another one predicts.
public final class Session: @unchecked Sendable {
  private struct Served {
    let model: any LoadedModel
    let inputs: TensorLayout
    let outputs: TensorLayout
  }

  private let backend: any Backend
  private let limits: HelloReport.Limits
  private let input: Int32
  private let writer: FrameWriter
  private let queue: RequestQueue
  private let pool: BufferPool
  private let poolLock = NSLock()
  private var served: [Served] = []

  /// A session over two file descriptors.
  public init(
    backend: any Backend, input: Int32, output: Int32, limits: HelloReport.Limits = .standard
  ) {
    self.backend = backend
    self.input = input
    self.limits = limits
    writer = FrameWriter(descriptor: output)
    queue = RequestQueue(limit: limits.queue)
    pool = BufferPool(keeping: limits.queue + 1)
  }

  /// Says hello, loads, answers until the input ends; gives the exit code.
  public func run(models: [String], units: ComputeUnits, version: Int) -> Int32 {
    do {
      let identity = Identity(coreML: backend.kind)
      guard identity.protocols.contains(version) else {
        throw ProbeError(
          .protocolVersion, "protocol \(version) is not spoken here: \(identity.protocols)",
          hint: "build laya-probe again, from the sources of this release")
      }
      try writer.send(.hello, id: 0, json: HelloReport(identity: identity, units: units, limits: limits))
      let started = monotonicSeconds()
      served = try models.map { try serve($0, units) }
      try writer.send(.ready, id: 0, json: ready(models, seconds: monotonicSeconds() - started))
    } catch {
      return fail(error, exitCode: 1)
    }
    return answer()
  }

  private func serve(_ path: String, _ units: ComputeUnits) throws -> Served {
    try requireModel(path)
    let model = try backend.load(model: path, units: units)
    return Served(
      model: model, inputs: try layout(model.inputs, path, limits.frame),
      outputs: try layout(model.outputs, path, limits.frame))
  }

  private func ready(_ paths: [String], seconds: Double) -> ReadyReport {
    let models = zip(paths, served).map { path, one in
      ReadyReport.Model(path: path, inputs: one.model.inputs, outputs: one.model.outputs)
    }
    return ReadyReport(models: models, seconds: seconds)
  }

  private func answer() -> Int32 {
    let idle = DispatchSemaphore(value: 0)
    let worker = Thread { [self] in
      while let request = queue.next() { drained { run(request) } }
      idle.signal()
    }
    worker.stackSize = 8 << 20
    worker.start()
    var status: Int32 = 0
    do {
      while try acceptFrame() {}
    } catch {
      status = fail(error, exitCode: 2)
    }
    queue.end()
    idle.wait()
    return status
  }

  /// Reads one frame and does what it says; false when the input ended between frames.
  private func acceptFrame() throws -> Bool {
    var header: FrameHeader?
    try withUnsafeTemporaryAllocation(byteCount: FrameHeader.length, alignment: 8) { bytes in
      let count = readFully(bytes, from: input)
      guard count > 0 else { return }
      guard count == FrameHeader.length else {
        throw ProbeError(.frameTruncated, "the input ended within a frame's header")
      }
      header = try FrameHeader(client: UnsafeRawBufferPointer(bytes), limit: limits.frame)
    }
    guard let header else { return false }
    if header.kind == .cancel {
      if let request = queue.cancel(header.id) {
        report(ProbeError(.cancelled, "cancelled before it ran"), for: request.id)
        recycle(request.buffer)
      }
      return true
    }
    let buffer = poolLock.withLock { pool.take(header.payload) }
    guard readFully(buffer.payload(header.payload), from: input) == header.payload else {
      throw ProbeError(.frameTruncated, "the input ended within a payload of \(header.payload) bytes")
    }
    do {
      try accept(header, buffer)
    } catch let error as ProbeError {
      report(error, for: error.code == .requestID ? 0 : header.id)
      recycle(buffer)
    }
    return true
  }

  private func accept(_ header: FrameHeader, _ buffer: FrameBuffer) throws {
    guard header.id != 0, !queue.contains(header.id) else {
      throw ProbeError(.requestID, "request id \(header.id) is 0 or under way")
    }
    guard let prefix = TensorPrefix(request: UnsafeRawBufferPointer(buffer.payload(header.payload))) else {
      throw ProbeError(.requestShape, "the payload's first 64 bytes are not those of a request")
    }
    guard prefix.model < served.count else {
      throw ProbeError(.requestModel, "model \(prefix.model) of \(served.count)")
    }
    let layout = served[Int(prefix.model)].inputs
    guard Int(prefix.tensors) == layout.specs.count, header.payload == layout.length else {
      throw ProbeError(
        .requestShape,
        "\(prefix.tensors) tensors in \(header.payload) bytes: expected \(layout.specs.count) in \(layout.length)")
    }
    let request = Request(id: header.id, model: Int(prefix.model), buffer: buffer, arrived: monotonicSeconds())
    guard queue.add(request) else {
      throw ProbeError(.queueFull, "\(limits.queue) requests are under way")
    }
  }

  private func run(_ request: Request) {
    let one = served[request.model]
    let result = poolLock.withLock { pool.take(one.outputs.length) }
    let source = Tensors(buffer: request.buffer, layout: one.inputs)
    let target = Tensors(buffer: result, layout: one.outputs)
    let started = monotonicSeconds()
    var failure: ProbeError?
    do {
      try one.model.predict(source, into: target)
    } catch {
      failure = error as? ProbeError ?? ProbeError(.predictionFailed, "\(error)")
    }
    var prefix = TensorPrefix(model: UInt16(request.model), tensors: UInt16(one.outputs.specs.count))
    prefix.predicted = microseconds(monotonicSeconds() - started)
    prefix.waited = microseconds(started - request.arrived)
    prefix.write(to: result.payload(one.outputs.length))
    if queue.finish() { failure = ProbeError(.cancelled, "cancelled while it ran") }
    if let failure {
      report(failure, for: request.id)
    } else {
      orQuit { try writer.send(.result, id: request.id, result, length: one.outputs.length) }
    }
    recycle(request.buffer)
    recycle(result)
  }

  private func recycle(_ buffer: FrameBuffer) {
    poolLock.withLock { pool.give(buffer) }
  }

  private func report(_ error: ProbeError, for id: UInt32) {
    orQuit { try writer.send(.error, id: id, json: error) }
  }

  /// Nobody reads any more: there is nobody to tell either.
  private func orQuit(_ step: () throws -> Void) {
    do { try step() } catch { _exit(1) }
  }

  private func fail(_ error: any Error, exitCode: Int32) -> Int32 {
    let known = error as? ProbeError ?? ProbeError(.modelRefused, "\(error)")
    try? writer.send(.error, id: 0, json: known)
    return exitCode
  }
}

private func microseconds(_ seconds: Double) -> UInt32 {
  UInt32(min(max(seconds * 1e6, 0), Double(UInt32.max)))
}

/// The layout of a model's tensors. Throws `MODEL_INTERFACE`.
func layout(_ specs: [TensorSpec], _ path: String, _ limit: Int) throws -> TensorLayout {
  guard let layout = TensorLayout(specs, limit: limit) else {
    throw ProbeError(.modelInterface, "the tensors are empty, or need more than \(limit) bytes", where: path)
  }
  return layout
}
