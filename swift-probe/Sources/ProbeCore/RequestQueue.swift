import Foundation

/// A request that was accepted.
struct Request {
  let id: UInt32
  let model: Int
  let buffer: FrameBuffer
  let arrived: Double
}

/// The requests of a session: accepted by the reader, taken by the worker, one at a time.
final class RequestQueue: @unchecked Sendable {
  private let condition = NSCondition()
  private let limit: Int
  private var waiting: [Request] = []
  private var running: UInt32?
  private var runningIsCancelled = false
  private var ended = false

  init(limit: Int) { self.limit = limit }

  /// True while a request with this id has no answer.
  func contains(_ id: UInt32) -> Bool {
    condition.withLock { running == id || waiting.contains { $0.id == id } }
  }

  /// False when too many are under way.
  func add(_ request: Request) -> Bool {
    condition.withLock {
      guard waiting.count + (running == nil ? 0 : 1) < limit else { return false }
      waiting.append(request)
      condition.signal()
      return true
    }
  }

  /// Takes a waiting request out, or marks the running one; the request if it is to be answered now.
  func cancel(_ id: UInt32) -> Request? {
    condition.withLock {
      if running == id { runningIsCancelled = true }
      guard let index = waiting.firstIndex(where: { $0.id == id }) else { return nil }
      return waiting.remove(at: index)
    }
  }

  /// The next request; nil when there are no more.
  func next() -> Request? {
    condition.withLock {
      while waiting.isEmpty && !ended { condition.wait() }
      guard !waiting.isEmpty else { return nil }
      let request = waiting.removeFirst()
      running = request.id
      runningIsCancelled = false
      return request
    }
  }

  /// Ends the running request; true when it was cancelled meanwhile. Its id is free from now on.
  func finish() -> Bool {
    condition.withLock {
      running = nil
      return runningIsCancelled
    }
  }

  /// No more requests will be added.
  func end() {
    condition.withLock {
      ended = true
      condition.broadcast()
    }
  }
}
