import Foundation

public class MLCPUComputeDevice: NSObject {}

public class MLGPUComputeDevice: NSObject {}

public class MLNeuralEngineComputeDevice: NSObject {
  public var totalCoreCount: Int { 16 }
}

public enum MLComputeDevice {
  case cpu(MLCPUComputeDevice)
  case gpu(MLGPUComputeDevice)
  case neuralEngine(MLNeuralEngineComputeDevice)
}

public enum MLModelStructure {
  public struct Program {
    public struct NamedValueType {
      public let name: String
    }

    public struct Function {
      public let block: Block
    }

    public struct Block {
      public let operations: [Operation]
    }

    public struct Operation {
      public let operatorName: String
      public let outputs: [NamedValueType]
      public let blocks: [Block]
    }

    public let functions: [String: Function]
  }

  public struct NeuralNetwork {}

  public struct Pipeline {}

  case neuralNetwork(NeuralNetwork)
  case program(Program)
  case pipeline(Pipeline)
  case unsupported
}

/// The stand-in's plan: constants have no device; operators named in LAYA_STUB_CPU_OPERATORS (comma-separated) prefer the
/// CPU, all others the Neural Engine.
public class MLComputePlan {
  public struct DeviceUsage {
    public let supported: [MLComputeDevice]
    public let preferred: MLComputeDevice
  }

  public struct Cost {
    public let weight: Double
  }

  public let modelStructure: MLModelStructure
  private let onCPU: Set<String>

  init(_ structure: MLModelStructure) {
    modelStructure = structure
    let names = ProcessInfo.processInfo.environment["LAYA_STUB_CPU_OPERATORS"] ?? ""
    onCPU = Set(names.split(separator: ",").map(String.init))
  }

  public static func load(contentsOf url: URL, configuration: MLModelConfiguration) async throws -> MLComputePlan {
    print("stub: planning \(url.lastPathComponent)")
    return MLComputePlan(.program(try readProgram(url)))
  }

  public func deviceUsage(for operation: MLModelStructure.Program.Operation) -> DeviceUsage? {
    let name = operation.operatorName.split(separator: ".").last.map(String.init) ?? ""
    if name == "const" || name.hasPrefix("constexpr_") { return nil }
    let cpu = MLComputeDevice.cpu(MLCPUComputeDevice())
    if onCPU.contains(name) { return DeviceUsage(supported: [cpu], preferred: cpu) }
    let engine = MLComputeDevice.neuralEngine(MLNeuralEngineComputeDevice())
    return DeviceUsage(supported: [cpu, engine], preferred: engine)
  }

  public func estimatedCost(of operation: MLModelStructure.Program.Operation) -> Cost? {
    deviceUsage(for: operation).map { _ in Cost(weight: 0.5) }
  }
}
