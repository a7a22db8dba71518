/// Name and shape of an FP16 array.
public struct TensorSpec: Codable, Sendable, Equatable {
  /// Its name in the model.
  public let name: String
  /// Its dimensions.
  public let shape: [Int]

  /// Makes a description from its parts.
  public init(name: String, shape: [Int]) {
    self.name = name
    self.shape = shape
  }
}

/// Where tensors lie in a payload (§4.3).
public struct TensorLayout: Sendable, Equatable {
  /// Everything starts at a multiple of it.
  public static let alignment = 64

  /// The tensors in their order.
  public let specs: [TensorSpec]
  /// Where each starts, from the payload's start.
  public let offsets: [Int]
  /// Bytes of each, without padding.
  public let sizes: [Int]
  /// Length of the whole payload.
  public let length: Int

  /// Lays tensors out; nil when a shape is empty or not positive, or the payload would be longer than `limit`.
  public init?(_ specs: [TensorSpec], limit: Int) {
    var offsets: [Int] = []
    var sizes: [Int] = []
    var end = TensorLayout.alignment
    for spec in specs {
      guard let size = TensorLayout.bytes(of: spec.shape, limit: limit) else { return nil }
      offsets.append(end)
      sizes.append(size)
      end += (size + TensorLayout.alignment - 1) / TensorLayout.alignment * TensorLayout.alignment
      guard end <= limit else { return nil }
    }
    guard specs.count <= Int(UInt16.max) else { return nil }
    self.specs = specs
    self.offsets = offsets
    self.sizes = sizes
    self.length = end
  }

  private static func bytes(of shape: [Int], limit: Int) -> Int? {
    guard !shape.isEmpty else { return nil }
    var count = 2
    for dimension in shape {
      let (product, overflow) = count.multipliedReportingOverflow(by: dimension)
      guard dimension > 0, !overflow, product <= limit else { return nil }
      count = product
    }
    return count
  }
}

/// The order of tensors: by the UTF-8 bytes of their names (§4.2).
public func inOrder(_ specs: [TensorSpec]) -> [TensorSpec] {
  specs.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
}

/// The 64 bytes before the tensors.
public struct TensorPrefix: Equatable, Sendable {
  /// Index of the model.
  public var model: UInt16
  /// Number of tensors.
  public var tensors: UInt16
  /// Microseconds of the prediction; 0 in a request.
  public var predicted: UInt32 = 0
  /// Microseconds of waiting; 0 in a request.
  public var waited: UInt32 = 0

  /// Makes a prefix from its parts.
  public init(model: UInt16, tensors: UInt16) {
    self.model = model
    self.tensors = tensors
  }

  /// Reads the prefix of a request; nil when a byte that must be zero is not.
  public init?(request bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= TensorLayout.alignment else { return nil }
    guard bytes[4..<TensorLayout.alignment].allSatisfy({ $0 == 0 }) else { return nil }
    model = bytes.little(at: 0, as: UInt16.self)
    tensors = bytes.little(at: 2, as: UInt16.self)
  }

  /// Writes all 64 bytes.
  public func write(to bytes: UnsafeMutableRawBufferPointer) {
    for index in 0..<TensorLayout.alignment { bytes[index] = 0 }
    bytes.store(little: model, at: 0)
    bytes.store(little: tensors, at: 2)
    bytes.store(little: predicted, at: 4)
    bytes.store(little: waited, at: 8)
  }
}

extension UnsafeRawBufferPointer {
  func little<Number: FixedWidthInteger>(at offset: Int, as type: Number.Type) -> Number {
    Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
  }
}

extension UnsafeMutableRawBufferPointer {
  func store<Number: FixedWidthInteger>(little number: Number, at offset: Int) {
    storeBytes(of: number.littleEndian, toByteOffset: offset, as: Number.self)
  }
}
