import XCTest

@testable import ProbeCore

final class PlanTests: XCTestCase {
  private func operation(_ kind: String, _ preferred: DeviceKind?, cost: Double? = nil) -> PlannedOperation {
    PlannedOperation(name: "\(kind)_out", operator: kind, preferred: preferred, supported: [.cpu], cost: cost)
  }

  func testCountsConstantsApart() {
    let report = PlanReport(
      units: .cpuAndNeuralEngine,
      program: [
        operation("const", nil), operation("ios18.conv", .ane, cost: 0.75),
        operation("ios18.constexpr_lut_to_dense", nil), operation("ios18.add", .ane, cost: 0.25),
      ])
    XCTAssertEqual(report.constants, 2)
    XCTAssertEqual(report.counted, 2)
    XCTAssertEqual(report.devices, ["ane": 2])
    XCTAssertEqual(report.cost, ["ane": 1])
    XCTAssertEqual(report.transitions, 0)
    XCTAssertEqual(report.offANE, [:])
  }

  func testCountsTransitionsAlongProgramOrder() {
    let program = [
      operation("a", .ane), operation("b", .cpu), operation("const", nil), operation("b", .cpu), operation("c", .gpu),
      operation("a", .ane),
    ]
    let report = PlanReport(units: .all, program: program)
    XCTAssertEqual(report.transitions, 3)
    XCTAssertEqual(report.offANE, ["b": 2, "c": 1])
    XCTAssertEqual(report.operations.map(\.operator), ["a", "b", "b", "c", "a"])
  }

  func testAnOperationWithoutDeviceIsCounted() {
    let report = PlanReport(units: .all, program: [operation("ios18.conv", nil), operation("ios18.constant", nil)])
    XCTAssertEqual(report.counted, 2)
    XCTAssertEqual(report.devices, ["none": 2])
    XCTAssertEqual(report.offANE, ["ios18.conv": 1, "ios18.constant": 1])
  }

  func testAConstantThatHasADeviceIsCounted() {
    XCTAssertEqual(PlanReport(units: .all, program: [operation("const", .cpu)]).devices, ["cpu": 1])
  }

  func testCostsThatAreNoNumbersAreLeftOut() throws {
    let report = PlanReport(units: .all, program: [operation("a", .ane, cost: .nan), operation("a", .ane, cost: 0.5)])
    XCTAssertEqual(report.cost, ["ane": 0.5])
    XCTAssertNoThrow(try jsonData(report))
  }

  func testAnEmptyProgramHasNothing() {
    let report = PlanReport(units: .all, program: [])
    XCTAssertEqual([report.counted, report.constants, report.transitions], [0, 0, 0])
  }
}
