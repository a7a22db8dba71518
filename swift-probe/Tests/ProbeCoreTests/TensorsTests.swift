import XCTest

@testable import ProbeCore

final class TensorsTests: XCTestCase {
  func testLaysTensorsOutAtMultiplesOf64() {
    let specs = [
      TensorSpec(name: "a", shape: [1, 33]), TensorSpec(name: "b", shape: [32]), TensorSpec(name: "c", shape: [1]),
    ]
    let layout = TensorLayout(specs, limit: 1000)
    XCTAssertEqual(layout?.offsets, [64, 192, 256])
    XCTAssertEqual(layout?.sizes, [66, 64, 2])
    XCTAssertEqual(layout?.length, 320)
    XCTAssertNil(TensorLayout(specs, limit: 319))
  }

  func testRefusesShapesWithoutElementsOrBeyondAnyMemory() {
    for shape in [[], [0], [1, -1], [Int.max, 2], [Int.max / 2 + 1, 2], [1 << 40]] {
      XCTAssertNil(TensorLayout([TensorSpec(name: "a", shape: shape)], limit: 1 << 26), "\(shape)")
    }
  }

  func testOrdersByTheBytesOfNames() {
    let names = ["b", "a", "Z", "\u{FF5E}", "\u{1F600}", "ab"]
    let ordered = inOrder(names.map { TensorSpec(name: $0, shape: [1]) }).map(\.name)
    XCTAssertEqual(ordered, ["Z", "a", "ab", "b", "\u{FF5E}", "\u{1F600}"])
  }

  func testPrefixOfARequestHasZerosAfterItsNumbers() {
    var bytes = [UInt8](repeating: 0, count: 64)
    bytes[0] = 1
    bytes[2] = 5
    XCTAssertEqual(bytes.withUnsafeBytes { TensorPrefix(request: $0) }, TensorPrefix(model: 1, tensors: 5))
    bytes[63] = 1
    XCTAssertNil(bytes.withUnsafeBytes { TensorPrefix(request: $0) })
    XCTAssertNil([UInt8](repeating: 0, count: 63).withUnsafeBytes { TensorPrefix(request: $0) })
  }

  func testGathersStridedElements() {
    XCTAssertEqual(strides(of: [2, 3, 4]), [12, 4, 1])
    let source: [UInt16] = [1, 2, 3, 0, 4, 5, 6, 0]
    var target = [UInt16](repeating: 0, count: 6)
    source.withUnsafeBytes { from in
      target.withUnsafeMutableBytes { gather(from, shape: [2, 3], strides: [4, 1], to: $0) }
    }
    XCTAssertEqual(target, [1, 2, 3, 4, 5, 6])
    source.withUnsafeBytes { from in
      target.withUnsafeMutableBytes { gather(from, shape: [1, 6], strides: [999, 1], to: $0) }
    }
    XCTAssertEqual(target, [1, 2, 3, 0, 4, 5])
  }
}
