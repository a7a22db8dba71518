import Foundation

public enum MLMultiArrayDataType: Int {
  case double = 65600
  case float32 = 65568
  case float16 = 65552
  case int32 = 131104
}

public class MLMultiArray: NSObject {
  public let shape: [NSNumber]
  public let dataType: MLMultiArrayDataType
  public let strides: [NSNumber]
  public var count: Int { shape.reduce(1) { $0 * $1.intValue } }

  private let memory: UnsafeMutableRawPointer
  private let release: ((UnsafeMutableRawPointer) -> Void)?

  public init(shape: [NSNumber], dataType: MLMultiArrayDataType) throws {
    guard dataType == .float16 else { throw StubError(description: "FP16 only") }
    self.shape = shape
    self.dataType = dataType
    strides = contiguous(shape)
    memory = .allocate(byteCount: shape.reduce(2) { $0 * $1.intValue }, alignment: 64)
    release = { $0.deallocate() }
  }

  public init(
    dataPointer: UnsafeMutableRawPointer, shape: [NSNumber], dataType: MLMultiArrayDataType, strides: [NSNumber],
    deallocator: ((UnsafeMutableRawPointer) -> Void)? = nil
  ) throws {
    guard dataType == .float16, strides == contiguous(shape) else {
      throw StubError(description: "row-major FP16 only")
    }
    self.shape = shape
    self.dataType = dataType
    self.strides = strides
    memory = dataPointer
    release = deallocator
  }

  deinit { release?(memory) }

  public func withUnsafeMutableBytes<R>(
    _ body: (_ ptr: UnsafeMutableRawBufferPointer, _ strides: [Int]) throws -> R
  ) rethrows -> R {
    try body(UnsafeMutableRawBufferPointer(start: memory, count: count * 2), strides.map(\.intValue))
  }

  func half(_ index: Int) -> UInt16 { memory.load(fromByteOffset: index * 2, as: UInt16.self) }

  func setHalf(_ index: Int, _ bits: UInt16) {
    memory.storeBytes(of: bits, toByteOffset: index * 2, as: UInt16.self)
  }
}

private func contiguous(_ shape: [NSNumber]) -> [NSNumber] {
  var strides: [NSNumber] = []
  var stride = 1
  for dimension in shape.reversed() {
    strides.insert(NSNumber(value: stride), at: 0)
    stride *= dimension.intValue
  }
  return strides
}

public class MLFeatureValue: NSObject {
  public let multiArrayValue: MLMultiArray?

  public init(multiArray: MLMultiArray) { multiArrayValue = multiArray }
}

public protocol MLFeatureProvider {
  var featureNames: Set<String> { get }
  func featureValue(for featureName: String) -> MLFeatureValue?
}

public class MLDictionaryFeatureProvider: NSObject, MLFeatureProvider {
  private let values: [String: MLFeatureValue]

  public init(dictionary: [String: Any]) throws {
    values = try dictionary.mapValues { value in
      guard let feature = value as? MLFeatureValue else { throw StubError(description: "no feature value") }
      return feature
    }
  }

  public var featureNames: Set<String> { Set(values.keys) }

  public func featureValue(for featureName: String) -> MLFeatureValue? { values[featureName] }
}
