/// A kind of device, as reports name it.
public enum DeviceKind: String, Codable, Sendable {
  /// The processor.
  case cpu
  /// The graphics processor.
  case gpu
  /// Apple's Neural Engine.
  case ane
  /// One that is newer than this program.
  case unknown
}

/// One operation of a program, as the compute plan sees it; `preferred` is nil when the plan has no device for it.
public struct PlannedOperation: Sendable, Equatable {
  /// Name of its first output.
  public let name: String
  /// Its operator, as in `ios18.conv`.
  public let `operator`: String
  /// The device it would run on.
  public let preferred: DeviceKind?
  /// The devices it could run on.
  public let supported: [DeviceKind]
  /// Core ML's estimate.
  public let cost: Double?

  /// Makes an operation from its parts.
  public init(
    name: String, operator kind: String, preferred: DeviceKind?, supported: [DeviceKind] = [], cost: Double? = nil
  ) {
    self.name = name
    self.operator = kind
    self.preferred = preferred
    self.supported = supported
    self.cost = cost
  }

  /// True when it only holds values and has no device (§2.3).
  public var isConstant: Bool {
    guard preferred == nil else { return false }
    let base = `operator`.split(separator: ".", omittingEmptySubsequences: false).last.map(String.init) ?? `operator`
    return base == "const" || base.hasPrefix("constexpr_")
  }
}

/// The report of `plan` (§2.3).
public struct PlanReport: Codable, Sendable, Equatable {
  /// A counted operation.
  public struct Operation: Codable, Sendable, Equatable {
    /// Name of its first output.
    public let name: String
    /// Its operator.
    public let `operator`: String
    /// Kind of device, or `none`.
    public let preferred: String
    /// Kinds of devices.
    public let supported: [DeviceKind]
    /// Core ML's estimate.
    public let cost: Double?
  }

  /// The units asked for.
  public let units: ComputeUnits
  /// Counted operations in program order.
  public let operations: [Operation]
  /// Operations that only hold values.
  public let constants: Int
  /// Number of `operations`.
  public let counted: Int
  /// Counted operations by preferred device.
  public let devices: [String: Int]
  /// Known weights by preferred device.
  public let cost: [String: Double]
  /// Changes of the preferred device along the counted operations.
  public let transitions: Int
  /// Counted operations that don't prefer the Neural Engine, by operator.
  public let offANE: [String: Int]

  enum CodingKeys: String, CodingKey {
    case units, operations, constants, counted, devices, cost, transitions
    case offANE = "off_ane"
  }

  /// Counts a program's operations.
  public init(units: ComputeUnits, program: [PlannedOperation]) {
    let computing = program.filter { !$0.isConstant }
    let names = computing.map { $0.preferred?.rawValue ?? "none" }
    var devices: [String: Int] = [:]
    var cost: [String: Double] = [:]
    var offANE: [String: Int] = [:]
    for (operation, device) in zip(computing, names) {
      devices[device, default: 0] += 1
      if let weight = operation.cost, weight.isFinite { cost[device, default: 0] += weight }
      if operation.preferred != .ane { offANE[operation.operator, default: 0] += 1 }
    }
    self.units = units
    self.operations = zip(computing, names).map { operation, device in
      let cost = operation.cost.flatMap { $0.isFinite ? $0 : nil }
      return Operation(
        name: operation.name, operator: operation.operator, preferred: device, supported: operation.supported,
        cost: cost)
    }
    self.constants = program.count - computing.count
    self.counted = computing.count
    self.devices = devices
    self.cost = cost
    self.transitions = zip(names, names.dropFirst()).filter { $0 != $1 }.count
    self.offANE = offANE
  }
}
