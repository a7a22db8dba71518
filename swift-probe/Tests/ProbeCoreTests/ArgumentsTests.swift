import XCTest

@testable import ProbeCore

final class ArgumentsTests: XCTestCase {
  private func code(_ arguments: String...) -> ProbeErrorCode? {
    do {
      _ = try parseArguments(arguments)
      return nil
    } catch {
      return (error as? ProbeError)?.code
    }
  }

  func testReadsEveryCommand() throws {
    XCTAssertEqual(try parseArguments(["version"]), .version)
    XCTAssertEqual(try parseArguments(["device"]), .device)
    XCTAssertEqual(try parseArguments(["compile", "a.mlpackage", "b"]), .compile(package: "a.mlpackage", out: "b"))
    XCTAssertEqual(try parseArguments(["plan", "m"]), .plan(model: "m", units: .cpuAndNeuralEngine))
    XCTAssertEqual(
      try parseArguments(["predict", "--units", "cpuOnly", "m", "--repeat", "3", "--inputs", "-"]),
      .predict(model: "m", units: .cpuOnly, inputs: "-", repeats: 3))
    XCTAssertEqual(
      try parseArguments(["serve", "a", "b", "--protocol", "7"]),
      .serve(models: ["a", "b"], units: .cpuAndNeuralEngine, version: 7))
  }

  func testTakesEverythingAfterTwoDashesAsPaths() throws {
    XCTAssertEqual(try parseArguments(["plan", "--", "--units"]), .plan(model: "--units", units: .cpuAndNeuralEngine))
  }

  // B08: an option or unit that is not known is an error, never ignored.
  func testRefusesWhatItDoesNotKnow() {
    XCTAssertEqual(code(), .usage)
    XCTAssertEqual(code("fly"), .usage)
    XCTAssertEqual(code("plan", "m", "--unit", "cpuOnly"), .usage)
    XCTAssertEqual(code("plan", "m", "--units", "CPU_ONLY"), .usage)
    XCTAssertEqual(code("plan", "m", "--units"), .usage)
    XCTAssertEqual(code("plan", "m", "--units", "all", "--units", "all"), .usage)
    XCTAssertEqual(code("plan", "m", "n"), .usage)
    XCTAssertEqual(code("plan", ""), .usage)
    XCTAssertEqual(code("compile", "a"), .usage)
    XCTAssertEqual(code("serve"), .usage)
    XCTAssertEqual(code("version", "x"), .usage)
    for number in ["-1", "10001", "1e3", " 1", "٣", ""] {
      XCTAssertEqual(code("predict", "m", "--repeat", number), .usage, number)
    }
  }
}
