/// A device that can compute.
public struct ComputeDevice: Codable, Sendable, Equatable {
  /// Its kind.
  public let kind: DeviceKind
  /// Cores, where the system tells.
  public let cores: Int?

  /// Makes a device from its parts.
  public init(kind: DeviceKind, cores: Int?) {
    self.kind = kind
    self.cores = cores
  }
}

/// The report of `device` (§2.1).
public struct DeviceReport: Codable, Sendable, Equatable {
  /// The operating system.
  public struct System: Codable, Sendable, Equatable {
    /// `macOS` or `Linux`.
    public let name: String
    /// As in 15.5, or 15.5.1.
    public let version: String
    /// As in 24F74.
    public let build: String?
  }

  /// `arm64`, `x86_64` or `unknown`.
  public let architecture: String
  /// As in Apple M4.
  public let soc: String?
  /// The operating system.
  public let system: System
  /// Physical memory.
  public let memoryBytes: UInt64
  /// What computes.
  public let coreML: CoreMLKind
  /// The devices Core ML can see.
  public let computeDevices: [ComputeDevice]

  enum CodingKeys: String, CodingKey {
    case architecture, soc, system
    case memoryBytes = "memory_bytes"
    case coreML = "core_ml"
    case computeDevices = "compute_devices"
  }
}

/// The report of `compile` (§2.2).
public struct CompileReport: Codable, Sendable, Equatable {
  /// The compiled model.
  public let model: String
  /// Number of its files.
  public let files: Int
  /// Their bytes.
  public let bytes: Int
  /// Time taken.
  public let seconds: Double
}

/// The report of `predict` (§2.4).
public struct PredictReport: Codable, Sendable, Equatable {
  /// One output.
  public struct Output: Codable, Sendable, Equatable {
    /// Its name.
    public let name: String
    /// Its shape.
    public let shape: [Int]
    /// Its FP16 elements in base64.
    public let fp16: String
  }

  /// Times taken.
  public struct Seconds: Codable, Sendable, Equatable {
    /// Loading the model.
    public let load: Double
    /// The first run.
    public let first: Double
    /// Median of the repeats.
    public let median: Double?
  }

  /// The units asked for.
  public let units: ComputeUnits
  /// Outputs by name.
  public let outputs: [Output]
  /// Times taken.
  public let seconds: Seconds
  /// True when each repeat gave the first run's bytes.
  public let repeatedEqual: Bool

  enum CodingKeys: String, CodingKey {
    case units, outputs, seconds
    case repeatedEqual = "repeated_equal"
  }
}

/// The payload of READY (§4.2).
public struct ReadyReport: Codable, Sendable, Equatable {
  /// One model.
  public struct Model: Codable, Sendable, Equatable {
    /// As given.
    public let path: String
    /// In the order of the tensors.
    public let inputs: [TensorSpec]
    /// In the order of the tensors.
    public let outputs: [TensorSpec]
  }

  /// In the order of the arguments.
  public let models: [Model]
  /// Time taken to load all.
  public let seconds: Double
}

/// The payload of HELLO (§4.1).
public struct HelloReport: Codable, Sendable, Equatable {
  /// Bounds of a session.
  public struct Limits: Codable, Sendable, Equatable {
    /// Bytes of a payload.
    public let frame: Int
    /// Requests without an answer.
    public let queue: Int

    /// The bounds of this version.
    public static let standard = Limits(frame: 64 << 20, queue: 8)
  }

  /// See `Identity`.
  public let name: String
  /// See `Identity`.
  public let version: String
  /// See `Identity`.
  public let `protocol`: Int
  /// See `Identity`.
  public let protocols: [Int]
  /// See `Identity`.
  public let coreML: CoreMLKind
  /// The units models are loaded with.
  public let units: ComputeUnits
  /// Bounds of this session.
  public let limits: Limits

  enum CodingKeys: String, CodingKey {
    case name, version, `protocol`, protocols, units, limits
    case coreML = "core_ml"
  }

  /// What a session says first.
  public init(identity: Identity, units: ComputeUnits, limits: Limits) {
    name = identity.name
    version = identity.version
    `protocol` = identity.protocol
    protocols = identity.protocols
    coreML = identity.coreML
    self.units = units
    self.limits = limits
  }
}
