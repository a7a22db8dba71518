#if canImport(CoreML)
  import CoreML
  import Foundation
  import ProbeCore

  /// A loaded model whose inputs and outputs are FP16 arrays of fixed shapes.
  final class CoreMLModel: LoadedModel {
    let inputs: [TensorSpec]
    let outputs: [TensorSpec]
    private let model: MLModel

    init(_ model: MLModel, path: String) throws {
      self.model = model
      inputs = try CoreMLModel.specs(model.modelDescription.inputDescriptionsByName, path)
      outputs = try CoreMLModel.specs(model.modelDescription.outputDescriptionsByName, path)
    }

    private static func specs(_ descriptions: [String: MLFeatureDescription], _ path: String) throws -> [TensorSpec] {
      let specs = try descriptions.map { name, description in
        guard let constraint = description.multiArrayConstraint, constraint.dataType == .float16 else {
          throw ProbeError(.modelInterface, "\(name) is no FP16 array", where: path)
        }
        return TensorSpec(name: name, shape: constraint.shape.map(\.intValue))
      }
      return inOrder(specs)
    }

    /// Core ML reads the inputs where they lie. The synchronous call: the caller's thread is there to wait.
    func predict(_ source: Tensors, into target: Tensors) throws {
      var features: [String: MLFeatureValue] = [:]
      for (index, spec) in inputs.enumerated() {
        features[spec.name] = MLFeatureValue(multiArray: try array(source, index))
      }
      let results = try model.prediction(from: MLDictionaryFeatureProvider(dictionary: features))
      for (index, spec) in outputs.enumerated() {
        guard let array = results.featureValue(for: spec.name)?.multiArrayValue else {
          throw ProbeError(.predictionFailed, "the prediction has no output \(spec.name)")
        }
        try copy(array, spec, to: target[index])
      }
    }

    private func array(_ source: Tensors, _ index: Int) throws -> MLMultiArray {
      let bytes = source[index]
      guard let start = bytes.baseAddress else { throw ProbeError(.predictionFailed, "an input without elements") }
      let buffer = source.buffer
      let shape = inputs[index].shape
      return try MLMultiArray(
        dataPointer: start, shape: shape.map { NSNumber(value: $0) }, dataType: .float16,
        strides: strides(of: shape).map { NSNumber(value: $0) },
        deallocator: { _ in withExtendedLifetime(buffer) {} })
    }

    private func copy(_ array: MLMultiArray, _ spec: TensorSpec, to target: UnsafeMutableRawBufferPointer) throws {
      guard array.dataType == .float16, array.shape.map(\.intValue) == spec.shape else {
        throw ProbeError(.predictionFailed, "the output \(spec.name) has another type or shape than declared")
      }
      array.withUnsafeMutableBytes { bytes, strides in
        gather(UnsafeRawBufferPointer(bytes), shape: spec.shape, strides: strides, to: target)
      }
    }
  }
#endif
