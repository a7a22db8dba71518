/// A command with its arguments (§2).
public enum Command: Equatable, Sendable {
  /// Who this is.
  case version
  /// What this machine is.
  case device
  /// Compile a package.
  case compile(package: String, out: String)
  /// Where the operations of a model would run.
  case plan(model: String, units: ComputeUnits)
  /// Run a model.
  case predict(model: String, units: ComputeUnits, inputs: String?, repeats: Int)
  /// Answer requests over stdin and stdout.
  case serve(models: [String], units: ComputeUnits, version: Int)

  /// The name as typed.
  public var name: String {
    switch self {
    case .version: return "version"
    case .device: return "device"
    case .compile: return "compile"
    case .plan: return "plan"
    case .predict: return "predict"
    case .serve: return "serve"
    }
  }
}

/// Words split into positional ones and options; every word is used or refused.
struct Words {
  private(set) var positional: [String] = []
  private var options: [String: String] = [:]

  init(_ words: ArraySlice<String>, options known: [String]) throws {
    var rest = words
    while let word = rest.popFirst() {
      if word == "--" {
        positional += rest
        return
      }
      guard word.hasPrefix("-"), word != "-" else {
        positional.append(word)
        continue
      }
      guard known.contains(word) else { throw ProbeError(.usage, "unknown option \(word)", where: word) }
      guard let value = rest.popFirst() else { throw ProbeError(.usage, "\(word) needs a value", where: word) }
      guard options.updateValue(value, forKey: word) == nil else {
        throw ProbeError(.usage, "\(word) is given twice", where: word)
      }
    }
  }

  func units() throws -> ComputeUnits {
    guard let text = options["--units"] else { return .cpuAndNeuralEngine }
    guard let units = ComputeUnits(rawValue: text) else {
      let names = ComputeUnits.allCases.map(\.rawValue).joined(separator: ", ")
      throw ProbeError(.usage, "unknown compute units \(text): expected one of \(names)", where: "--units")
    }
    return units
  }

  func number(_ option: String, default standard: Int, in range: ClosedRange<Int>) throws -> Int {
    guard let text = options[option] else { return standard }
    guard text.allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int(text), range.contains(number) else {
      throw ProbeError(
        .usage, "\(text) is no whole number from \(range.lowerBound) to \(range.upperBound)", where: option)
    }
    return number
  }

  func text(_ option: String) -> String? { options[option] }

  func exactly(_ names: String...) throws -> [String] {
    guard positional.count == names.count, !positional.contains("") else {
      throw ProbeError(.usage, "expected \(names.joined(separator: " ")), found \(positional.count) arguments")
    }
    return positional
  }
}

/// Reads the arguments, without the program's own name. Throws `USAGE`.
public func parseArguments(_ arguments: [String]) throws -> Command {
  guard let name = arguments.first else {
    throw ProbeError(.usage, "no command", hint: "laya-probe version | device | compile | plan | predict | serve")
  }
  let rest = arguments.dropFirst()
  switch name {
  case "version", "device":
    _ = try Words(rest, options: []).exactly()
    return name == "version" ? .version : .device
  case "compile":
    let paths = try Words(rest, options: []).exactly("PACKAGE", "OUT")
    return .compile(package: paths[0], out: paths[1])
  case "plan":
    let words = try Words(rest, options: ["--units"])
    return .plan(model: try words.exactly("MODEL")[0], units: try words.units())
  case "predict":
    let words = try Words(rest, options: ["--units", "--inputs", "--repeat"])
    let repeats = try words.number("--repeat", default: 0, in: 0...10_000)
    return .predict(
      model: try words.exactly("MODEL")[0], units: try words.units(), inputs: words.text("--inputs"), repeats: repeats)
  case "serve":
    let words = try Words(rest, options: ["--units", "--protocol"])
    guard !words.positional.isEmpty, !words.positional.contains("") else {
      throw ProbeError(.usage, "expected MODEL..., found none")
    }
    let version = try words.number("--protocol", default: Identity.currentProtocol, in: 0...65_535)
    return .serve(models: words.positional, units: try words.units(), version: version)
  default:
    throw ProbeError(.usage, "unknown command \(name)", where: name)
  }
}
