import XCTest

@testable import ProbeCore

final class FramesTests: XCTestCase {
  private func header(_ bytes: [UInt8], limit: Int = 1000) throws -> FrameHeader {
    try bytes.withUnsafeBytes { try FrameHeader(client: $0, limit: limit) }
  }

  private func code(_ bytes: [UInt8], limit: Int = 1000) -> ProbeErrorCode? {
    do {
      _ = try header(bytes, limit: limit)
      return nil
    } catch {
      return (error as? ProbeError)?.code
    }
  }

  private let predict: [UInt8] = [0x4C, 0x41, 0x59, 0x50, 16, 0, 0, 0, 1, 2, 3, 4, 0xE8, 3, 0, 0]

  private func with(_ index: Int, _ value: UInt8) -> [UInt8] {
    var bytes = predict
    bytes[index] = value
    return bytes
  }

  func testReadsAHeader() throws {
    XCTAssertEqual(try header(predict), FrameHeader(kind: .predict, id: 0x0403_0201, payload: 1000))
  }

  func testNamesTheFirstFieldThatIsWrong() {
    XCTAssertEqual(code(with(0, 0)), .frameMagic)
    XCTAssertEqual(code(with(4, 1)), .frameKind, "HELLO is the probe's")
    XCTAssertEqual(code(with(4, 99)), .frameKind)
    for index in 5...7 { XCTAssertEqual(code(with(index, 1)), .frameReserved) }
    XCTAssertEqual(code(predict, limit: 999), .frameTooLarge)
    XCTAssertEqual(code(with(15, 0xFF)), .frameTooLarge)
    XCTAssertEqual(code(with(4, 17)), .frameTooLarge, "CANCEL has no payload")
  }

  func testWritesTheHeaderBeforeThePayload() {
    let buffer = FrameBuffer(capacity: 3)
    buffer.payload(3).copyBytes(from: [7, 8, 9])
    let frame = buffer.frame(FrameHeader(kind: .error, id: 258, payload: 3))
    XCTAssertEqual(Array(frame), [0x4C, 0x41, 0x59, 0x50, 4, 0, 0, 0, 2, 1, 0, 0, 3, 0, 0, 0, 7, 8, 9])
    XCTAssertEqual(Int(bitPattern: buffer.payload(3).baseAddress) % 64, 0)
  }

  func testABufferThatIsHeldIsNotUsedAgain() {
    let pool = BufferPool(keeping: 2)
    let held = pool.take(10)
    pool.give(held)
    let other = pool.take(10)
    XCTAssertFalse(held === other)
  }

  func testABufferThatIsFreeIsUsedAgain() {
    let pool = BufferPool(keeping: 1)
    var first: FrameBuffer? = pool.take(10)
    let address = first?.payload(1).baseAddress
    if let buffer = first.take() { pool.give(buffer) }
    XCTAssertEqual(pool.take(8).payload(1).baseAddress, address)
  }
}
