import Foundation
import ProbeCore
import ProbeCoreML

let output = claimProtocolOutput()
let commands = Commands(backend: makeBackend(), input: 0, output: output)
exit(await commands.run(Array(CommandLine.arguments.dropFirst())))
