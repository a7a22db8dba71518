import Foundation

private let requiredFiles = ["coremldata.bin", "model.mil"]

/// Compiles a package and moves what was made to its place (§2.2).
func compilePackage(_ package: String, to out: String, with backend: any Backend) async throws -> CompileReport {
  let files = FileManager.default
  guard files.fileExists(atPath: URL(fileURLWithPath: package).appendingPathComponent("Manifest.json").path) else {
    throw ProbeError(.packageMissing, "no .mlpackage with a Manifest.json there", where: package)
  }
  guard (try? files.attributesOfItem(atPath: out)) == nil else {
    throw ProbeError(.outputExists, "something is there already", where: out)
  }
  let started = monotonicSeconds()
  let made = try await backend.compile(package: package)
  let seconds = monotonicSeconds() - started
  defer { try? files.removeItem(atPath: made) }
  try requireCompiled(made)
  let sizes = try fileSizes(made)
  try moveFolder(made, to: out)
  return CompileReport(model: out, files: sizes.count, bytes: sizes.reduce(0, +), seconds: seconds)
}

/// An exit without an error is no proof that something was made.
func requireCompiled(_ folder: String) throws {
  for name in requiredFiles {
    let path = URL(fileURLWithPath: folder).appendingPathComponent(name).path
    let attributes = try? FileManager.default.attributesOfItem(atPath: path)
    guard let size = attributes?[.size] as? NSNumber, size.intValue > 0 else {
      throw ProbeError(.compileOutput, "Core ML reported success, but \(name) is missing or empty", where: folder)
    }
  }
}

private func fileSizes(_ folder: String) throws -> [Int] {
  let files = FileManager.default
  return try files.subpathsOfDirectory(atPath: folder).compactMap { path in
    let attributes = try files.attributesOfItem(atPath: URL(fileURLWithPath: folder).appendingPathComponent(path).path)
    guard attributes[.type] as? FileAttributeType == .typeRegular else { return nil }
    return (attributes[.size] as? NSNumber)?.intValue
  }
}

/// One rename makes the folder appear; from another volume it is copied beside its place first.
func moveFolder(_ folder: String, to out: String) throws {
  if rename(folder, out) == 0 { return }
  let beside = "\(out).partial-\(getpid())"
  do {
    try FileManager.default.copyItem(atPath: folder, toPath: beside)
    guard rename(beside, out) == 0 else { throw CocoaError(.fileWriteUnknown) }
  } catch {
    try? FileManager.default.removeItem(atPath: beside)
    throw ProbeError(.outputFailed, "the compiled model can't be moved there: \(error)", where: out)
  }
}
