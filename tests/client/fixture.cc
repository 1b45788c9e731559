// Runs the program as a shell would.
#include "tests/client/fixture.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/command_table.h"

namespace ablate::client {

ClientTest::ClientTest() {
  static std::atomic<int> counter = 0;
  folder_ = std::filesystem::path(::testing::TempDir()) /
            absl::StrCat("ablate-client-", getpid(), "-", counter++);
  std::filesystem::create_directories(folder_);
  environment_["ABLATE_HOME"] = folder_ + "/home";
}

ClientTest::~ClientTest() {
  server_.reset();
  std::filesystem::remove_all(folder_);
}

void ClientTest::StartServer() {
  server_ = std::make_unique<FakeServer>(folder_ + "/socket", &answers_);
  environment_["ABLATE_SERVER"] = server_->address();
}

Outcome ClientTest::Run(const std::vector<std::string>& arguments, const std::string& input) {
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream err;
  if (output_fails_) out.setstate(std::ios::badbit);
  Context context;
  context.console = console_;
  context.console.in = &in;
  context.console.out = &out;
  context.console.err = &err;
  context.environment = [this](const char* name) -> std::optional<std::string> {
    const auto found = environment_.find(name);
    if (found == environment_.end() || found->second.empty()) return std::nullopt;
    return found->second;
  };
  context.now = [this] { return real_clock_ ? absl::Now() : now_; };
  context.sleep = [this](absl::Duration duration) {
    slept_ += duration;
    now_ += duration;
    if (real_clock_) absl::SleepFor(duration);
  };
  Outcome outcome;
  outcome.code = RunProgram(arguments, context);
  outcome.out = out.str();
  outcome.err = err.str();
  return outcome;
}

std::string ClientTest::Write(const std::string& name, absl::string_view text) {
  const std::filesystem::path path = std::filesystem::path(folder_) / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

std::string ClientTest::Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace ablate::client
