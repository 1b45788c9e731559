// Runs the program as a shell would.
#include "tests/client/fixture.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/command_table.h"
#include "tests/client/refusals.h"
#include "tests/test_folder.h"

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
  context.environment = Variables();
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

std::vector<std::string> ClientTest::With(std::vector<std::string> arguments,
                                          const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string ClientTest::Write(const std::string& name, absl::string_view text) {
  const std::filesystem::path path = std::filesystem::path(folder_) / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

std::string ClientTest::Read(const std::string& path) { return ReadText(path); }

void ClientTest::ExpectRefusals(const std::vector<std::vector<std::string>>& command_lines) {
  for (const Refusal& refusal : kRefusals) {
    result_ = Refused(refusal);
    for (const std::vector<std::string>& arguments : command_lines) {
      SCOPED_TRACE(absl::StrCat(absl::StatusCodeToString(refusal.code), " to ",
                                absl::StrJoin(arguments, " ")));
      const Outcome refused = Run(arguments);
      EXPECT_EQ(refused.code, refusal.exit_code);
      EXPECT_EQ(refused.err, kRefusedText);
      EXPECT_EQ(refused.out, "");
    }
  }
}

v1::JoinFile ClientTest::JoinOf(const std::string& name) {
  v1::JoinFile join;
  join.set_address(name + ".example.org:7443");
  join.set_server_name(name + ".example.org");
  join.set_certificate_authority("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n");
  join.set_user("ada");
  join.set_token("ablate_" + std::string(43, 's'));
  join.mutable_expire_time()->set_seconds(2'000'000'000);
  return join;
}

void ClientTest::AnswerRun(const std::string& cell, const std::string& run) {
  answers_.runs = [cell, run](const v1::ListRunsRequest&, v1::ListRunsResponse* response) {
    v1::RunRow* row = response->add_rows();
    row->set_cell(cell);
    row->set_run(run);
    return absl::OkStatus();
  };
}

Environment ClientTest::Variables() const {
  return [this](const char* name) -> std::optional<std::string> {
    const auto found = environment_.find(name);
    if (found == environment_.end() || found->second.empty()) return std::nullopt;
    return found->second;
  };
}

}  // namespace ablate::client
