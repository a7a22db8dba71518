/// The kinds of frames (§4.1).
public enum FrameKind: UInt8, Sendable {
  /// Who speaks.
  case hello = 1
  /// The models are loaded.
  case ready = 2
  /// Outputs of a request.
  case result = 3
  /// A request or the session failed.
  case error = 4
  /// Inputs of a request.
  case predict = 16
  /// A request is no longer wanted.
  case cancel = 17

  var isFromClient: Bool { self == .predict || self == .cancel }
}

/// The 16 bytes before a payload.
public struct FrameHeader: Equatable, Sendable {
  /// Bytes of a header.
  public static let length = 16
  /// "LAYP".
  static let magic: [UInt8] = [0x4C, 0x41, 0x59, 0x50]

  /// What the frame is.
  public let kind: FrameKind
  /// The request, 0 for the session.
  public let id: UInt32
  /// Bytes of the payload.
  public let payload: Int

  /// Makes a header from its parts.
  public init(kind: FrameKind, id: UInt32, payload: Int) {
    self.kind = kind
    self.id = id
    self.payload = payload
  }

  /// Reads a client's header, field by field in their order. Throws the `FRAME_*` errors.
  public init(client bytes: UnsafeRawBufferPointer, limit: Int) throws {
    guard bytes[0..<4].elementsEqual(FrameHeader.magic) else {
      throw ProbeError(.frameMagic, "a frame starts with other bytes than LAYP")
    }
    guard let kind = FrameKind(rawValue: bytes[4]), kind.isFromClient else {
      throw ProbeError(.frameKind, "unknown kind of frame \(bytes[4])")
    }
    guard bytes[5..<8].allSatisfy({ $0 == 0 }) else {
      throw ProbeError(.frameReserved, "reserved bytes of a frame are not zero")
    }
    let length = Int(bytes.little(at: 12, as: UInt32.self))
    let most = kind == .cancel ? 0 : limit
    guard length <= most else {
      throw ProbeError(.frameTooLarge, "a payload of \(length) bytes: at most \(most)")
    }
    self.init(kind: kind, id: bytes.little(at: 8, as: UInt32.self), payload: length)
  }

  /// Writes the 16 bytes.
  public func write(to bytes: UnsafeMutableRawBufferPointer) {
    for index in 0..<FrameHeader.length { bytes[index] = index < 4 ? FrameHeader.magic[index] : 0 }
    bytes[4] = kind.rawValue
    bytes.store(little: id, at: 8)
    bytes.store(little: UInt32(payload), at: 12)
  }
}

/// Memory of one frame: a payload that starts at a multiple of 64, with room for the header right before it.
public final class FrameBuffer: @unchecked Sendable {
  private static let lead = TensorLayout.alignment

  private let base: UnsafeMutableRawPointer
  /// Bytes a payload may have.
  public let capacity: Int

  /// Allocates room for a payload.
  public init(capacity: Int) {
    self.capacity = capacity
    base = .allocate(byteCount: capacity + FrameBuffer.lead, alignment: TensorLayout.alignment)
  }

  deinit { base.deallocate() }

  /// The first bytes of the payload.
  public func payload(_ length: Int) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(start: base + FrameBuffer.lead, count: length)
  }

  /// Writes the header before the payload and gives the whole frame.
  public func frame(_ header: FrameHeader) -> UnsafeRawBufferPointer {
    let start = base + (FrameBuffer.lead - FrameHeader.length)
    header.write(to: UnsafeMutableRawBufferPointer(start: start, count: FrameHeader.length))
    return UnsafeRawBufferPointer(start: start, count: FrameHeader.length + header.payload)
  }
}

/// Buffers that are used again; one that somebody still holds is not.
final class BufferPool {
  private var free: [FrameBuffer] = []
  private let most: Int

  init(keeping most: Int) { self.most = most }

  func take(_ length: Int) -> FrameBuffer {
    if let index = free.firstIndex(where: { $0.capacity >= length }) { return free.remove(at: index) }
    return FrameBuffer(capacity: length)
  }

  func give(_ buffer: consuming FrameBuffer) {
    guard free.count < most, isKnownUniquelyReferenced(&buffer) else { return }
    free.append(buffer)
  }
}
