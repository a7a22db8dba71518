// A stand-in for Apple's Core ML on systems that don't have it: declares the API that laya-probe uses, and computes
// something simple. Outputs: element i is taken from input number (i mod inputs), by name, at (i mod its count).

import Foundation

public struct StubError: Error, CustomStringConvertible {
  public let description: String
}

public enum MLComputeUnits: Int {
  case cpuOnly = 0
  case cpuAndGPU = 1
  case all = 2
  case cpuAndNeuralEngine = 3
}

public class MLModelConfiguration: NSObject {
  public var computeUnits: MLComputeUnits = .all
}

public class MLMultiArrayConstraint: NSObject {
  public let shape: [NSNumber]
  public let dataType: MLMultiArrayDataType

  init(shape: [NSNumber], dataType: MLMultiArrayDataType) {
    self.shape = shape
    self.dataType = dataType
  }
}

public class MLFeatureDescription: NSObject {
  public let name: String
  public let multiArrayConstraint: MLMultiArrayConstraint?

  init(name: String, multiArrayConstraint: MLMultiArrayConstraint?) {
    self.name = name
    self.multiArrayConstraint = multiArrayConstraint
  }
}

public class MLModelDescription: NSObject {
  public let inputDescriptionsByName: [String: MLFeatureDescription]
  public let outputDescriptionsByName: [String: MLFeatureDescription]

  init(inputs: [MLFeatureDescription], outputs: [MLFeatureDescription]) {
    inputDescriptionsByName = Dictionary(inputs.map { ($0.name, $0) }) { first, _ in first }
    outputDescriptionsByName = Dictionary(outputs.map { ($0.name, $0) }) { first, _ in first }
  }
}

public class MLModel: NSObject {
  public let modelDescription: MLModelDescription

  public init(contentsOf url: URL, configuration: MLModelConfiguration) throws {
    modelDescription = try readDescription(url)
    print("stub: loaded \(url.lastPathComponent)")
  }

  public class func load(
    contentsOf url: URL, configuration: MLModelConfiguration = MLModelConfiguration()
  ) async throws -> MLModel {
    try MLModel(contentsOf: url, configuration: configuration)
  }

  public class func compileModel(at url: URL) throws -> URL { try compile(url) }

  public class func compileModel(at url: URL) async throws -> URL { try compile(url) }

  public static var availableComputeDevices: [MLComputeDevice] { [.cpu(MLCPUComputeDevice())] }

  public func prediction(from input: any MLFeatureProvider) throws -> any MLFeatureProvider {
    try predict(input)
  }

  public func prediction(
    from input: any MLFeatureProvider, options: MLPredictionOptions = MLPredictionOptions()
  ) async throws -> any MLFeatureProvider {
    try predict(input)
  }

  private func predict(_ input: any MLFeatureProvider) throws -> any MLFeatureProvider {
    let arrays = try modelDescription.inputDescriptionsByName.keys.sorted().map { name in
      guard let array = input.featureValue(for: name)?.multiArrayValue else {
        throw StubError(description: "no input \(name)")
      }
      return array
    }
    var outputs: [String: MLFeatureValue] = [:]
    for (name, description) in modelDescription.outputDescriptionsByName {
      guard let constraint = description.multiArrayConstraint else { continue }
      let output = try MLMultiArray(shape: constraint.shape, dataType: .float16)
      for element in 0..<output.count {
        let source = arrays[element % arrays.count]
        output.setHalf(element, source.half(element % source.count))
      }
      outputs[name] = MLFeatureValue(multiArray: output)
    }
    return try MLDictionaryFeatureProvider(dictionary: outputs)
  }
}

public class MLPredictionOptions: NSObject {}
