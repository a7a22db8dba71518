import XCTest

@testable import ProbeCore

final class CompileTests: XCTestCase {
  private var folder = URL(fileURLWithPath: "/")
  private var package: String { folder.appendingPathComponent("a.mlpackage").path }
  private var out: String { folder.appendingPathComponent("out.mlmodelc").path }

  override func setUpWithError() throws {
    folder = temporaryFolder()
    try FileManager.default.createDirectory(atPath: package, withIntermediateDirectories: true)
    try Data("{}".utf8).write(to: URL(fileURLWithPath: package).appendingPathComponent("Manifest.json"))
  }

  override func tearDown() { try? FileManager.default.removeItem(at: folder) }

  private func code(_ compiled: [String: String]?, package other: String? = nil) async -> ProbeErrorCode? {
    do {
      _ = try await compilePackage(other ?? package, to: out, with: FakeBackend(compiled: compiled))
      return nil
    } catch {
      return (error as? ProbeError)?.code
    }
  }

  func testMovesWhatWasMade() async throws {
    let backend = FakeBackend(compiled: ["coremldata.bin": "abc", "model.mil": "de"])
    let report = try await compilePackage(package, to: out, with: backend)
    XCTAssertEqual(report.model, out)
    XCTAssertEqual(report.files, 2)
    XCTAssertEqual(report.bytes, 5)
    XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: out).sorted(), ["coremldata.bin", "model.mil"])
  }

  // B11: success without the files that were to be made is a failure, and leaves nothing.
  func testChecksWhatWasMade() async {
    for compiled in [[:], ["coremldata.bin": "abc"], ["coremldata.bin": "", "model.mil": "de"]] {
      let found = await code(compiled)
      XCTAssertEqual(found, .compileOutput)
      XCTAssertFalse(FileManager.default.fileExists(atPath: out))
    }
  }

  func testNamesWhatIsMissingOrInTheWay() async throws {
    let refused = await code(nil)
    XCTAssertEqual(refused, .compileFailed)
    let missing = await code([:], package: folder.path)
    XCTAssertEqual(missing, .packageMissing)
    try Data().write(to: URL(fileURLWithPath: out))
    let taken = await code(["coremldata.bin": "abc", "model.mil": "de"])
    XCTAssertEqual(taken, .outputExists)
  }
}
