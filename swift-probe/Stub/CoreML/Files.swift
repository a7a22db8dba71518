import Foundation

/// Inputs and outputs as metadata.json tells them.
func readDescription(_ url: URL) throws -> MLModelDescription {
  let data = try Data(contentsOf: url.appendingPathComponent("metadata.json"))
  guard let models = try JSONSerialization.jsonObject(with: data) as? [[String: Any]], let model = models.first else {
    throw StubError(description: "no model in metadata.json")
  }
  return MLModelDescription(
    inputs: try features(model["inputSchema"]), outputs: try features(model["outputSchema"]))
}

private func features(_ schema: Any?) throws -> [MLFeatureDescription] {
  guard let entries = schema as? [[String: Any]] else { throw StubError(description: "no schema in metadata.json") }
  return try entries.map { entry in
    guard let name = entry["name"] as? String, let shape = entry["shape"] as? String else {
      throw StubError(description: "an entry of metadata.json has no name or shape")
    }
    let digits = shape.split { !$0.isNumber }.compactMap { Int($0) }.map { NSNumber(value: $0) }
    let type: MLMultiArrayDataType = entry["dataType"] as? String == "Float16" ? .float16 : .float32
    return MLFeatureDescription(name: name, multiArrayConstraint: .init(shape: digits, dataType: type))
  }
}

/// Statements of model.mil, in order; the text's operators have no version, Core ML's reports do.
func readProgram(_ url: URL) throws -> MLModelStructure.Program {
  let text = try String(contentsOf: url.appendingPathComponent("model.mil"), encoding: .utf8)
  let operations = text.split(separator: "\n").compactMap { line -> MLModelStructure.Program.Operation? in
    guard let equals = line.range(of: " = ") else { return nil }
    let right = line[equals.upperBound...]
    guard let parenthesis = right.firstIndex(of: "("), line.hasSuffix(";") else { return nil }
    let left = line[..<equals.lowerBound]
    guard let name = left.split(separator: ",").first?.split(separator: " ").last else { return nil }
    let firstName = left.contains(", tensor") ? left.components(separatedBy: ", tensor")[0] : String(left)
    let output = firstName.split(separator: " ").last ?? name
    return .init(
      operatorName: "ios18.\(right[..<parenthesis])", outputs: [.init(name: String(output))], blocks: [])
  }
  return .init(functions: ["main": .init(block: .init(operations: operations))])
}

/// A folder with the files a compiled model has, whatever the package says.
func compile(_ url: URL) throws -> URL {
  print("stub: compiling \(url.lastPathComponent)")
  let model = url.appendingPathComponent("Data/com.apple.CoreML/model.mlmodel")
  let bytes = try Data(contentsOf: model)
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).mlmodelc")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  try bytes.write(to: folder.appendingPathComponent("coremldata.bin"))
  try Data("program(1.3)\n{\n}\n".utf8).write(to: folder.appendingPathComponent("model.mil"))
  return folder
}
