import XCTest

@testable import ProbeCore

/// A session over two pipes.
private final class Running: @unchecked Sendable {
  struct Frame: Equatable {
    let kind: UInt8
    let id: UInt32
    let payload: [UInt8]
  }

  private let requests = Pipe()
  private let answers = Pipe()
  private let ended = DispatchSemaphore(value: 0)
  private var status: Int32 = -1

  init(_ backend: FakeBackend, models: [String], version: Int = 1, limits: HelloReport.Limits = .standard) {
    let input = requests.fileHandleForReading.fileDescriptor
    let output = answers.fileHandleForWriting.fileDescriptor
    Thread { [self] in
      status = Session(backend: backend, input: input, output: output, limits: limits)
        .run(models: models, units: .cpuOnly, version: version)
      try? answers.fileHandleForWriting.close()
      ended.signal()
    }.start()
  }

  func write(_ bytes: [UInt8]) { requests.fileHandleForWriting.write(Data(bytes)) }

  func predict(_ id: UInt32, _ elements: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8], model: UInt8 = 0) {
    var payload = [UInt8](repeating: 0, count: 128)
    payload[0] = model
    payload[2] = 1
    payload.replaceSubrange(64..<(64 + elements.count), with: elements)
    write(frame(16, id, payload))
  }

  func frame(_ kind: UInt8, _ id: UInt32, _ payload: [UInt8]) -> [UInt8] {
    let numbers = [id, UInt32(payload.count)].flatMap { number in (0..<4).map { UInt8(number >> ($0 * 8) & 0xFF) } }
    return [0x4C, 0x41, 0x59, 0x50, kind, 0, 0, 0] + numbers + payload
  }

  func read() -> Frame? {
    guard let header = readBytes(16) else { return nil }
    let number = { (at: Int) in (0..<4).reduce(UInt32(0)) { $0 | UInt32(header[at + $1]) << ($1 * 8) } }
    return Frame(kind: header[4], id: number(8), payload: readBytes(Int(number(12))) ?? [])
  }

  func readError() -> (id: UInt32, code: ProbeErrorCode)? {
    guard let frame = read(), frame.kind == 4 else { return nil }
    guard let error = try? JSONDecoder().decode(ProbeError.self, from: Data(frame.payload)) else { return nil }
    return (frame.id, error.code)
  }

  func skipHello() {
    XCTAssertEqual(read()?.kind, 1)
    XCTAssertEqual(read()?.kind, 2)
  }

  func end() -> Int32 {
    try? requests.fileHandleForWriting.close()
    ended.wait()
    return status
  }

  private func readBytes(_ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    let descriptor = answers.fileHandleForReading.fileDescriptor
    return bytes.withUnsafeMutableBytes { readFully($0, from: descriptor) } == count ? bytes : nil
  }
}

final class SessionTests: XCTestCase {
  private var model = ""

  override func setUpWithError() throws {
    let folder = temporaryFolder()
    try Data("x".utf8).write(to: folder.appendingPathComponent("coremldata.bin"))
    model = folder.path
  }

  override func tearDown() { try? FileManager.default.removeItem(atPath: model) }

  func testAnswersAndEndsWithItsInput() {
    let session = Running(FakeBackend(), models: [model, model])
    session.skipHello()
    session.predict(7, model: 1)
    let answer = session.read()
    XCTAssertEqual(answer?.kind, 3)
    XCTAssertEqual(answer?.id, 7)
    XCTAssertEqual(answer.map { Array($0.payload[0..<4]) }, [1, 0, 1, 0])
    XCTAssertEqual(answer.map { Array($0.payload[64..<72]) }, [1, 2, 3, 4, 5, 6, 7, 8])
    XCTAssertEqual(answer?.payload.count, 128)
    XCTAssertEqual(session.end(), 0)
  }

  func testAnswersWhatWasAcceptedBeforeTheInputEnded() {
    let gate = DispatchSemaphore(value: 0)
    let session = Running(FakeBackend(gate: gate), models: [model])
    session.skipHello()
    for id in UInt32(1)...3 { session.predict(id) }
    for _ in 1...3 { gate.signal() }
    XCTAssertEqual(session.end(), 0)
    XCTAssertEqual((1...3).map { _ in session.read()?.id }, [1, 2, 3])
  }

  func testCancelsWhatWaitsAndWhatRuns() {
    let (started, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let session = Running(FakeBackend(started: started, gate: gate), models: [model])
    session.skipHello()
    session.predict(1)
    started.wait()
    session.predict(2)
    session.write(session.frame(17, 2, []))
    let waiting = session.readError()
    XCTAssertEqual(waiting?.id, 2)
    XCTAssertEqual(waiting?.code, .cancelled)
    session.write(session.frame(17, 1, []) + session.frame(17, 99, []))
    session.predict(0)
    XCTAssertEqual(session.readError()?.code, .requestID, "what came before it was read")
    gate.signal()
    let running = session.readError()
    XCTAssertEqual(running?.id, 1)
    XCTAssertEqual(running?.code, .cancelled)
    gate.signal()
    session.predict(1)
    XCTAssertEqual(session.read()?.kind, 3)
    XCTAssertEqual(session.end(), 0)
  }

  func testRefusesMoreThanTheQueueHolds() {
    let (started, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let limits = HelloReport.Limits(frame: 1 << 20, queue: 2)
    let session = Running(FakeBackend(started: started, gate: gate), models: [model], limits: limits)
    session.skipHello()
    session.predict(1)
    started.wait()
    session.predict(2)
    session.predict(3)
    let refused = session.readError()
    XCTAssertEqual(refused?.id, 3)
    XCTAssertEqual(refused?.code, .queueFull)
    session.predict(2)
    XCTAssertEqual(session.readError()?.code, .requestID)
    gate.signal()
    gate.signal()
    XCTAssertEqual(session.end(), 0)
  }

  func testGoesOnAfterARequestThatIsWrong() {
    let session = Running(FakeBackend(), models: [model])
    session.skipHello()
    session.predict(1, model: 3)
    XCTAssertEqual(session.readError()?.code, .requestModel)
    session.write(session.frame(16, 2, [UInt8](repeating: 0, count: 64)))
    XCTAssertEqual(session.readError()?.code, .requestShape)
    session.write(session.frame(16, 3, [1, 2, 3]))
    XCTAssertEqual(session.readError()?.code, .requestShape)
    session.predict(4, [0xEE])
    let failed = session.readError()
    XCTAssertEqual(failed?.id, 4)
    XCTAssertEqual(failed?.code, .predictionFailed)
    session.predict(5)
    XCTAssertEqual(session.read()?.id, 5)
    XCTAssertEqual(session.end(), 0)
  }

  func testEndsWhenTheFramingIsLost() {
    for (bytes, code) in [
      ([UInt8](repeating: 0x20, count: 16), ProbeErrorCode.frameMagic),
      ([0x4C, 0x41], .frameTruncated),
    ] {
      let session = Running(FakeBackend(), models: [model])
      session.skipHello()
      session.write(bytes)
      XCTAssertEqual(session.end(), 2)
      XCTAssertEqual(session.readError()?.code, code)
    }
  }

  func testSaysWhichModelIsRefused() {
    let session = Running(FakeBackend(), models: [model, "/nowhere"])
    XCTAssertEqual(session.read()?.kind, 1)
    let error = session.readError()
    XCTAssertEqual(error?.id, 0)
    XCTAssertEqual(error?.code, .modelMissing)
    XCTAssertEqual(session.end(), 1)
  }

  func testRefusesAProtocolItDoesNotSpeak() {
    let session = Running(FakeBackend(), models: [model], version: 2)
    XCTAssertEqual(session.readError()?.code, .protocolVersion)
    XCTAssertEqual(session.end(), 1)
  }
}
