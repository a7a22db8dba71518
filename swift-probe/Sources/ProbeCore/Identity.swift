/// What computes behind this build (§3).
public enum CoreMLKind: String, Codable, Sendable {
  /// Apple's framework.
  case apple
  /// The stand-in module of the Linux build.
  case stub
  /// Nothing: built without Core ML.
  case none
}

/// Who speaks, and which protocol (§3).
public struct Identity: Codable, Sendable, Equatable {
  /// The version of this executable.
  public static let currentVersion = "0.1.0"
  /// The version of docs/probe-protocol.md that is spoken.
  public static let currentProtocol = 1

  /// Always `laya-probe`.
  public let name: String
  /// Version of the executable.
  public let version: String
  /// The protocol spoken.
  public let `protocol`: Int
  /// All protocols that can be spoken.
  public let protocols: [Int]
  /// What computes.
  public let coreML: CoreMLKind

  enum CodingKeys: String, CodingKey {
    case name, version, `protocol`, protocols
    case coreML = "core_ml"
  }

  /// The identity of this build.
  public init(coreML: CoreMLKind) {
    name = "laya-probe"
    version = Identity.currentVersion
    `protocol` = Identity.currentProtocol
    protocols = [Identity.currentProtocol]
    self.coreML = coreML
  }
}

/// The compute units a model may use, by Core ML's names.
public enum ComputeUnits: String, Codable, Sendable, CaseIterable {
  /// CPU and Neural Engine.
  case cpuAndNeuralEngine
  /// The CPU alone.
  case cpuOnly
  /// CPU and GPU.
  case cpuAndGPU
  /// Whatever there is.
  case all
}
