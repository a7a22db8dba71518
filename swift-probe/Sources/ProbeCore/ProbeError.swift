/// Codes that never change their meaning; the protocol's §4.6 lists when each is used.
public enum ProbeErrorCode: String, Codable, Sendable, CaseIterable {
  case usage = "USAGE"
  case protocolVersion = "PROTOCOL_VERSION"
  case coreMLMissing = "CORE_ML_MISSING"
  case packageMissing = "PACKAGE_MISSING"
  case compileFailed = "COMPILE_FAILED"
  case compileOutput = "COMPILE_OUTPUT"
  case outputExists = "OUTPUT_EXISTS"
  case outputFailed = "OUTPUT_FAILED"
  case modelMissing = "MODEL_MISSING"
  case modelRefused = "MODEL_REFUSED"
  case modelInterface = "MODEL_INTERFACE"
  case planFailed = "PLAN_FAILED"
  case inputsInvalid = "INPUTS_INVALID"
  case frameMagic = "FRAME_MAGIC"
  case frameKind = "FRAME_KIND"
  case frameReserved = "FRAME_RESERVED"
  case frameTooLarge = "FRAME_TOO_LARGE"
  case frameTruncated = "FRAME_TRUNCATED"
  case requestID = "REQUEST_ID"
  case requestModel = "REQUEST_MODEL"
  case requestShape = "REQUEST_SHAPE"
  case queueFull = "QUEUE_FULL"
  case cancelled = "CANCELLED"
  case predictionFailed = "PREDICTION_FAILED"
}

/// An error as the protocol carries it.
public struct ProbeError: Error, Codable, Sendable, Equatable {
  /// What programs match.
  public let code: ProbeErrorCode
  /// For people; may change.
  public let message: String
  /// The file, argument or field it is about.
  public let `where`: String?
  /// What to do next.
  public let hint: String?

  /// Makes an error from its parts.
  public init(_ code: ProbeErrorCode, _ message: String, where place: String? = nil, hint: String? = nil) {
    self.code = code
    self.message = message
    self.where = place
    self.hint = hint
  }

  /// The exit code of a command that ends with this error (§2).
  public var exitCode: Int32 { code == .usage ? 64 : 1 }
}
