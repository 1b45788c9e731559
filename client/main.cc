// `ablate`, the command line of the lab.
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "client/command_table.h"

int main(int argc, char** argv) {
  ablate::client::Context context;
  context.environment = [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
  context.console = ablate::client::ProcessConsole(context.environment("NO_COLOR").has_value());
  context.now = [] { return absl::Now(); };
  context.sleep = [](absl::Duration duration) { absl::SleepFor(duration); };
  return ablate::client::RunProgram(std::vector<std::string>(argv + 1, argv + argc), context);
}
