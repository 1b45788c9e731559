// `ablate`, the command line of the lab.
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "base/private_folder.h"
#include "client/command_table.h"

int main(int argc, char** argv) {
  // gRPC prints the reasons of failed handshakes; commands print them as errors.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  ablate::client::Context context;
  context.environment = ablate::process::EnvironmentVariable;
  context.console = ablate::client::ProcessConsole(context.environment);
  context.now = [] { return absl::Now(); };
  context.sleep = [](absl::Duration duration) { absl::SleepFor(duration); };
  return ablate::client::RunProgram(std::vector<std::string>(argv + 1, argv + argc), context);
}
