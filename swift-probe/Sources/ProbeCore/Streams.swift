import Foundation

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Duplicates fd 1 for the protocol and points fd 1 at stderr, so that nobody else's printing can reach it (§1).
public func claimProtocolOutput() -> Int32 {
  fflush(nil)
  let output = dup(1)
  guard output >= 0, dup2(2, 1) >= 0 else { _exit(1) }
  _ = fcntl(output, F_SETFD, FD_CLOEXEC)
  signal(SIGPIPE, SIG_IGN)
  return output
}

/// Leaves an interrupt from the terminal to the parent, which gets it too (§1).
public func ignoreInterrupts() {
  signal(SIGINT, SIG_IGN)
}

/// Nobody reads any more.
struct BrokenStream: Error {}

/// Writes whole frames; may be used from several threads.
public final class FrameWriter: @unchecked Sendable {
  private let descriptor: Int32
  private let lock = NSLock()

  /// Writes to a file descriptor.
  public init(descriptor: Int32) { self.descriptor = descriptor }

  func send(_ kind: FrameKind, id: UInt32, _ buffer: FrameBuffer, length: Int) throws {
    let bytes = buffer.frame(FrameHeader(kind: kind, id: id, payload: length))
    try lock.withLock { try writeAll(bytes, to: descriptor) }
  }

  func send(_ kind: FrameKind, id: UInt32, json value: some Encodable) throws {
    let data = try jsonData(value)
    let buffer = FrameBuffer(capacity: data.count)
    data.withUnsafeBytes { buffer.payload(data.count).copyMemory(from: $0) }
    try send(kind, id: id, buffer, length: data.count)
  }
}

/// Writes every byte, or throws when nobody reads.
func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws {
  var rest = bytes[...]
  while let start = UnsafeRawBufferPointer(rebasing: rest).baseAddress, !rest.isEmpty {
    let count = write(descriptor, start, rest.count)
    if count > 0 {
      rest = rest.dropFirst(count)
    } else if count < 0, errno != EINTR {
      throw BrokenStream()
    }
  }
}

/// Fills the memory from a stream; gives the number of bytes there were until the stream ended.
func readFully(_ bytes: UnsafeMutableRawBufferPointer, from descriptor: Int32) -> Int {
  guard let start = bytes.baseAddress else { return 0 }
  var filled = 0
  while filled < bytes.count {
    let count = read(descriptor, start + filled, bytes.count - filled)
    if count > 0 {
      filled += count
    } else if count == 0 || errno != EINTR {
      return filled
    }
  }
  return filled
}

/// A value as one line of JSON with sorted keys.
public func jsonData(_ value: some Encodable) throws -> Data {
  let encoder = JSONEncoder()
  encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
  return try encoder.encode(value)
}

/// Runs a step and drains what Objective-C autoreleased meanwhile.
func drained<Outcome>(_ step: () -> Outcome) -> Outcome {
  #if canImport(ObjectiveC)
    return autoreleasepool(invoking: step)
  #else
    return step()
  #endif
}

/// Seconds of a monotonic clock.
func monotonicSeconds() -> Double {
  Double(DispatchTime.now().uptimeNanoseconds) / 1e9
}
