// swift-tools-version: 6.0
import PackageDescription

var coreMLDependencies: [Target.Dependency] = ["ProbeCore"]
var standIns: [Target] = []

#if os(Linux)
  // Elsewhere than on Apple's systems a stand-in module takes Core ML's name. Library evolution makes its enums non-frozen,
  // as the framework's are.
  standIns = [
    .target(
      name: "CoreML", path: "Stub/CoreML",
      swiftSettings: [.swiftLanguageMode(.v5), .unsafeFlags(["-enable-library-evolution"])])
  ]
  coreMLDependencies.append("CoreML")
#endif

let package = Package(
  name: "swift-probe",
  // Artifacts are made for macOS 15; everything used of Core ML is older (core-ml-api.json).
  platforms: [.macOS(.v15)],
  products: [.executable(name: "laya-probe", targets: ["laya-probe"])],
  targets: [
    .target(name: "ProbeCore"),
    // Language mode 5: which types of Core ML are Sendable can't be checked without Apple's SDK.
    .target(name: "ProbeCoreML", dependencies: coreMLDependencies, swiftSettings: [.swiftLanguageMode(.v5)]),
    .executableTarget(name: "laya-probe", dependencies: ["ProbeCore", "ProbeCoreML"]),
    .testTarget(name: "ProbeCoreTests", dependencies: ["ProbeCore"]),
  ] + standIns
)
