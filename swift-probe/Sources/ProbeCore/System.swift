import Foundation

/// What this machine is (§2.1).
func deviceReport(coreML: CoreMLKind, devices: [ComputeDevice]) -> DeviceReport {
  let info = ProcessInfo.processInfo
  let version = info.operatingSystemVersion
  let patch = version.patchVersion == 0 ? "" : ".\(version.patchVersion)"
  #if os(macOS)
    let name = "macOS"
  #else
    let name = "Linux"
  #endif
  return DeviceReport(
    architecture: architecture, soc: systemText("machdep.cpu.brand_string"),
    system: .init(
      name: name, version: "\(version.majorVersion).\(version.minorVersion)\(patch)",
      build: systemText("kern.osversion")),
    memoryBytes: info.physicalMemory, coreML: coreML, computeDevices: devices)
}

private var architecture: String {
  #if arch(arm64)
    return "arm64"
  #elseif arch(x86_64)
    return "x86_64"
  #else
    return "unknown"
  #endif
}

/// A text that the kernel knows by name; nil elsewhere than on Apple's systems.
private func systemText(_ name: String) -> String? {
  #if canImport(Darwin)
    var size = 0
    guard sysctlbyname(name, nil, &size, nil, 0) == 0, size > 1 else { return nil }
    var bytes = [UInt8](repeating: 0, count: size)
    guard sysctlbyname(name, &bytes, &size, nil, 0) == 0 else { return nil }
    return String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
  #else
    return nil
  #endif
}
