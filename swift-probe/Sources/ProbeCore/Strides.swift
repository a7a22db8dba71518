/// Strides of a row-major array, in elements.
public func strides(of shape: [Int]) -> [Int] {
  var strides = [Int](repeating: 1, count: shape.count)
  for axis in shape.indices.dropLast().reversed() { strides[axis] = strides[axis + 1] * shape[axis + 1] }
  return strides
}

/// Copies an FP16 array with any strides to row-major order. Strides of axes with one element don't matter.
public func gather(
  _ source: UnsafeRawBufferPointer, shape: [Int], strides given: [Int], to target: UnsafeMutableRawBufferPointer
) {
  let wanted = strides(of: shape)
  let same = shape.indices.allSatisfy { shape[$0] == 1 || given[$0] == wanted[$0] }
  if same {
    target.copyMemory(from: UnsafeRawBufferPointer(rebasing: source[0..<target.count]))
    return
  }
  for element in 0..<(target.count / 2) {
    var rest = element
    var offset = 0
    for axis in shape.indices {
      offset += rest / wanted[axis] * given[axis]
      rest %= wanted[axis]
    }
    let value = source.loadUnaligned(fromByteOffset: offset * 2, as: UInt16.self)
    target.storeBytes(of: value, toByteOffset: element * 2, as: UInt16.self)
  }
}
