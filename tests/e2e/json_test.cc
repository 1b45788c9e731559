// Tests that each command with --json prints JSON alone, also when it fails.
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"
#include "tests/test_folder.h"

namespace ablate::e2e {
namespace {

// Returns the number of JSON texts that follow each other; -1 if there is anything else.
int CountJson(const std::string& text) {
  int count = 0;
  size_t begin = text.find_first_not_of(" \n");
  while (begin != std::string::npos) {
    // The first end at which the text so far is one JSON text.
    size_t end = begin;
    do {
      end = text.find('\n', end + 1);
      if (end == std::string::npos) end = text.size();
    } while (!nlohmann::json::accept(text.substr(begin, end - begin)) && end < text.size());
    if (!nlohmann::json::accept(text.substr(begin, end - begin))) return -1;
    ++count;
    begin = text.find_first_not_of(" \n", end);
  }
  return count;
}

// Returns the commands whose help has --json, such as "data ls".
std::set<std::string> CommandsWithJson(const PersonalServer& server) {
  std::set<std::string> commands;
  std::string command;
  const std::string help = server.Ablate({"help", "--markdown"}).out;
  for (const absl::string_view line : absl::StrSplit(help, '\n')) {
    constexpr absl::string_view kHeading = "### ablate ";
    if (absl::StartsWith(line, kHeading)) command = std::string(line.substr(kHeading.size()));
    if (absl::StartsWith(line, "- `--json`")) commands.insert(command);
  }
  return commands;
}

class JsonTest : public ::testing::Test {
 protected:
  // Runs a command with --json, which must succeed and print JSON.
  void Succeed(const std::string& command, const std::vector<std::string>& arguments = {},
               const std::string& input = "") {
    const Output output = Run(command, arguments, input);
    EXPECT_EQ(output.exit_code, 0) << command << ": " << output.err;
    EXPECT_GT(CountJson(output.out), 0) << command << ": " << output.out;
  }

  // Runs a command that must fail: its output is empty or JSON, and the error is apart from it.
  void Fail(const std::string& command, const std::vector<std::string>& arguments,
            const std::string& input = "") {
    const Output output = Run(command, arguments, input);
    EXPECT_NE(output.exit_code, 0) << command;
    EXPECT_GE(CountJson(output.out), 0) << command << ": " << output.out;
    EXPECT_NE(output.err, "") << command;
  }

  std::string File(const std::string& name) const {
    return absl::StrCat(folder_.path(), "/", name);
  }

  PersonalServer server_;
  std::set<std::string> tried_;

 private:
  Output Run(const std::string& command, const std::vector<std::string>& arguments,
             const std::string& input) {
    tried_.insert(command);
    std::vector<std::string> line = absl::StrSplit(command, ' ');
    line.insert(line.end(), arguments.begin(), arguments.end());
    line.emplace_back("--json");
    return server_.Ablate(line, input);
  }

  const TestFolder folder_;
};

TEST_F(JsonTest, EveryCommandPrintsJsonAlone) {
  Succeed("up", {"--lanes", "2"});
  Succeed("admin init", {"localhost:7443", "-o", File("admin.join")});
  Succeed("admin user add", {"ada", "-o", File("ada.join")});
  const std::string spec = SmallNames("small", 20,
                                      "axes: [{field: model.norm.kind, values: [layer, rms]}]\n"
                                      "seeds: {count: 2}\n");
  Succeed("submit", {"-", "--wait", "--set", "model.head_bias=false"}, spec);
  for (const char* command : {"ls", "workers", "top", "whoami", "analyses", "model ls", "data ls",
                              "admin audit", "admin user ls", "admin quota ls", "admin token ls"}) {
    Succeed(command);
  }
  for (const char* command : {"show", "runs", "spec", "watch", "wait", "compare", "metrics"}) {
    Succeed(command, {"small"});
  }
  Succeed("best", {"small"});
  Succeed("table", {"small"});
  Succeed("logs", {"small/layer-s0"});
  Succeed("diff", {"small/layer", "small/rms"});
  Succeed("edit", {"small", "--tag", "paper"});
  Succeed("sql", {"SELECT cell, reused FROM cells"});
  Succeed("figure", {"small", "curves", "-o", File("curves.svg")});
  Succeed("report", {"small", "-o", File("report.html")});
  Succeed("export", {"small", "--format", "csv", "-o", File("points.csv")});
  Succeed("generate", {"small/layer-s0", "-n", "2"});
  Succeed("analyze", {"spectrum", "small/layer-s0"});
  Succeed("artifact ls", {"small/layer-s0"});
  Succeed("artifact get", {"small/layer-s0", "checkpoint", "-o", File("model.safetensors")});
  Succeed("model export", {"small/layer-s0", "-o", File("exported")});
  Succeed("model add", {File("exported"), "--name", "again"});
  Succeed("model show", {"again"});
  Succeed("model rm", {"again"});
  WriteFile(File("own.txt"), "ada\ngrace\nedsger\nbarbara\n");
  Succeed("data add", {File("own.txt")});
  Succeed("data get", {"own.txt", "-o", File("copy.txt")});
  Succeed("data encode",
          {File("own.txt"), "--tokenizer", ABLATE_SOURCE "/examples/data/shakespeare-bpe"});
  Succeed("data rm", {"own.txt"});
  std::string table = "norm,seed,loss\n";
  for (int seed = 0; seed < 8; ++seed) {
    absl::StrAppend(&table, "pre,", seed, ",", 2 + seed, "\npost,", seed, ",", 1 + seed, "\n");
  }
  WriteFile(File("table.csv"), table);
  Succeed("import", {File("table.csv")});
  Succeed("judge", {File("table.csv")});
  Succeed("admin renew");
  Succeed("admin user role", {"ada", "reader"});
  Succeed("admin user programs", {"ada", "yes"});
  Succeed("admin quota set", {"ada", "--lanes", "1"});
  Succeed("admin token add", {"ada", "-o", File("laptop.join")});
  const nlohmann::json tokens = server_.Json({"admin", "token", "ls", "--json"});
  Succeed("admin token revoke", {tokens["tokens"][0]["name"]});
  Succeed("admin user rm", {"ada"});
  Succeed("rm", {server_.Json({"show", "small", "--json"})["name"], "--yes"});
  Succeed("submit", {"-", "--dry-run"}, spec);
  Succeed("submit", {"-"}, SmallNames("long", 1'000'000, "seeds: {count: 1}\n"));
  Succeed("queue pause", {"long"});
  Succeed("queue resume", {"long"});
  Succeed("queue move", {"long", "first"});
  Succeed("queue");
  Succeed("admin check");
  Succeed("cancel", {"long"});
  Succeed("down");

  std::set<std::string> untried = CommandsWithJson(server_);
  EXPECT_GT(untried.size(), 40u);
  for (const std::string& command : tried_) untried.erase(command);
  // They need a server that listens, or a sandbox, or don't end; SharingTest, CheckResumeTest and
  // LivePage.Browser have them.
  for (const char* command : {"login", "logout", "check-resume", "web"}) untried.erase(command);
  EXPECT_TRUE(untried.empty()) << absl::StrJoin(untried, ", ");
}

TEST_F(JsonTest, FailingCommandsPrintJsonOrNothing) {
  Fail("ls", {});  // no server
  Succeed("up");
  Fail("submit", {"-"}, "name: bad\nbase: {training: {steps: many}}\n");
  Fail("submit", {"-", "--dry-run"}, "name: bad\nbase: {model: {heads: 5}, task: {recall: {}}}\n");
  Fail("submit", {"--again", "nothing"});
  for (const char* command : {"show", "runs", "spec", "watch", "wait", "compare", "metrics", "best",
                              "table", "cancel", "artifact ls", "model show", "analyses"}) {
    Fail(command, {"nothing"});
  }
  Fail("logs", {"nothing/s0"});
  Fail("diff", {"nothing", "nothing"});
  Fail("edit", {"nothing", "--archive"});
  Fail("rm", {"nothing", "--yes"});
  Fail("sql", {"DELETE FROM runs"});
  Fail("runs", {"no.such.field = 1"});
  Fail("generate", {"nothing/s0"});
  Fail("analyze", {"spectrum", "nothing"});
  Fail("figure", {"nothing", "curves", "-o", File("f.svg")});
  Fail("report", {"nothing", "-o", File("r.html")});
  Fail("export", {"nothing", "--format", "csv", "-o", File("e.csv")});
  Fail("data add", {File("missing.txt")});
  Fail("data rm", {"nothing"});
}

}  // namespace
}  // namespace ablate::e2e
