#if canImport(CoreML)
  import CoreML
  import Foundation
  import ProbeCore

  /// Core ML, by the signatures listed in core-ml-api.json.
  struct CoreMLBackend: Backend {
    var kind: CoreMLKind {
      #if os(macOS)
        return .apple
      #else
        return .stub
      #endif
    }

    func devices() -> [ComputeDevice] {
      MLModel.availableComputeDevices.map { device in
        switch device {
        case .cpu: return ComputeDevice(kind: .cpu, cores: nil)
        case .gpu: return ComputeDevice(kind: .gpu, cores: nil)
        case .neuralEngine(let engine): return ComputeDevice(kind: .ane, cores: engine.totalCoreCount)
        @unknown default: return ComputeDevice(kind: .unknown, cores: nil)
        }
      }
    }

    func compile(package: String) async throws -> String {
      do {
        return try await MLModel.compileModel(at: URL(fileURLWithPath: package)).path
      } catch {
        throw ProbeError(.compileFailed, "Core ML refused the package: \(error)", where: package)
      }
    }

    func plan(model: String, units: ComputeUnits) async throws -> [PlannedOperation] {
      let plan: MLComputePlan
      do {
        plan = try await MLComputePlan.load(
          contentsOf: URL(fileURLWithPath: model), configuration: configuration(units))
      } catch {
        throw ProbeError(.planFailed, "Core ML made no compute plan: \(error)", where: model)
      }
      guard case .program(let program) = plan.modelStructure, let main = program.functions["main"] else {
        throw ProbeError(.planFailed, "the model is no program with a function main", where: model)
      }
      return operations(of: main.block, in: plan)
    }

    func load(model: String, units: ComputeUnits) throws -> any LoadedModel {
      do {
        let loaded = try MLModel(contentsOf: URL(fileURLWithPath: model), configuration: configuration(units))
        return try CoreMLModel(loaded, path: model)
      } catch let error as ProbeError {
        throw error
      } catch {
        throw ProbeError(.modelRefused, "Core ML did not load the model: \(error)", where: model)
      }
    }

    private func configuration(_ units: ComputeUnits) -> MLModelConfiguration {
      let configuration = MLModelConfiguration()
      switch units {
      case .cpuAndNeuralEngine: configuration.computeUnits = .cpuAndNeuralEngine
      case .cpuOnly: configuration.computeUnits = .cpuOnly
      case .cpuAndGPU: configuration.computeUnits = .cpuAndGPU
      case .all: configuration.computeUnits = .all
      }
      return configuration
    }

    private func operations(of block: MLModelStructure.Program.Block, in plan: MLComputePlan) -> [PlannedOperation] {
      block.operations.flatMap { operation in
        let usage = plan.deviceUsage(for: operation)
        let planned = PlannedOperation(
          name: operation.outputs.first?.name ?? "", operator: operation.operatorName,
          preferred: usage.map { kind(of: $0.preferred) }, supported: usage?.supported.map { kind(of: $0) } ?? [],
          cost: plan.estimatedCost(of: operation)?.weight)
        return [planned] + operation.blocks.flatMap { operations(of: $0, in: plan) }
      }
    }

    private func kind(of device: MLComputeDevice) -> DeviceKind {
      switch device {
      case .cpu: return .cpu
      case .gpu: return .gpu
      case .neuralEngine: return .ane
      @unknown default: return .unknown
      }
    }
  }
#endif
