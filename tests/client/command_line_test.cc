// Tests the command line as a whole: help, mistakes, exit codes.
#include <filesystem>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/analysis_kinds.h"
#include "client/command_table.h"
#include "client/context.h"
#include "client/output/terminal_text.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class CommandLineTest : public ClientTest {};

// What is typed for each command, such as {"data", "ls"}.
std::vector<std::vector<std::string>> Commands() {
  std::vector<std::vector<std::string>> commands;
  for (const CommandRow& row : CommandTable()) {
    commands.emplace_back();
    for (const CommandGroup* group = row.group; group != nullptr; group = group->parent) {
      commands.back().insert(commands.back().begin(), group->name);
    }
    commands.back().emplace_back(row.name);
  }
  return commands;
}

TEST(CommandTableTest, HasACommandForEveryFileAndAnActionForEveryCommand) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(COMMANDS)) {
    if (entry.path().extension() != ".cc") continue;
    const std::string name = entry.path().stem().string();
    files.insert(name.substr(0, name.find('_')));  // admin_user.cc has some of admin's
  }
  std::set<std::string> commands;
  for (const CommandRow& row : CommandTable()) {
    const CommandGroup* first = row.group;
    while (first != nullptr && first->parent != nullptr) first = first->parent;
    const std::string name = first != nullptr ? first->name : row.name;
    commands.insert(name.substr(0, name.find('-')));  // check_resume.cc has check-resume
    CommandLine line("ablate", "0", "");
    Command command = line.root().Add(row.name, row.help);
    EXPECT_TRUE(row.define(&command) != nullptr) << row.name;
  }
  EXPECT_EQ(commands, files);
}

TEST_F(CommandLineTest, HasHelpWithAnExampleForEveryCommand) {
  const Outcome all = Run({"--help"});
  EXPECT_EQ(all.code, kSuccess);
  for (const std::vector<std::string>& command : Commands()) {
    std::vector<std::string> arguments = command;
    arguments.push_back("--help");
    const Outcome help = Run(arguments);
    EXPECT_EQ(help.code, kSuccess) << command[0];
    EXPECT_EQ(help.err, "");
    EXPECT_THAT(help.out, HasSubstr("Usage: ablate " + absl::StrJoin(command, " ")));
    EXPECT_THAT(help.out, ContainsRegex("Examples?:\n  ablate " + absl::StrJoin(command, " ")));
    EXPECT_THAT(all.out, HasSubstr("\n  " + command[0] + " "));
  }
  for (const char* code : {"0", "1", "2", "64", "69", "70"}) {
    EXPECT_THAT(all.out, HasSubstr(std::string("\n  ") + code + " "));
  }
}

TEST_F(CommandLineTest, OffersJsonEverywhere) {
  for (const std::vector<std::string>& command : Commands()) {
    const std::string& first = command[0];
    if (first == "help" || first == "completion" || first == "cluster") continue;  // print text
    std::vector<std::string> arguments = command;
    arguments.push_back("--help");
    EXPECT_THAT(Run(arguments).out, HasSubstr("--json")) << command[0];
  }
}

TEST_F(CommandLineTest, FitsAllHelpInto80Columns) {
  std::vector<std::vector<std::string>> asked = Commands();
  for (std::vector<std::string>& command : asked) command.push_back("--help");
  for (const char* group : {"data", "artifact", "admin", "queue", "cluster"})
    asked.push_back({group, "--help"});
  for (const char* group : {"user", "token", "quota"}) asked.push_back({"admin", group, "--help"});
  for (const AnalysisKindRow& kind : AnalysisKindTable()) {
    asked.push_back({"help", "analyze", kind.name});
  }
  asked.push_back({"--help"});
  for (const std::vector<std::string>& arguments : asked) {
    const Outcome help = Run(arguments);
    EXPECT_EQ(help.code, kSuccess);
    for (const absl::string_view line : absl::StrSplit(help.out, '\n')) {
      EXPECT_LE(DisplayWidth(line), 80) << absl::StrJoin(arguments, " ") << ": " << line;
    }
  }
}

TEST_F(CommandLineTest, StartsTheHelpOfEveryOptionWithACapital) {
  for (const std::vector<std::string>& command : Commands()) {
    std::vector<std::string> arguments = command;
    arguments.push_back("--help");
    const std::string help = Run(arguments).out;
    for (absl::string_view line : absl::StrSplit(help, '\n')) {
      if (!absl::ConsumePrefix(&line, "  -")) continue;
      const size_t text = line.find("  ");
      if (text == line.npos) continue;  // on the next line
      line = absl::StripLeadingAsciiWhitespace(line.substr(text));
      EXPECT_TRUE(absl::ascii_isupper(line[0])) << absl::StrJoin(command, " ") << ": " << line;
    }
  }
}

TEST_F(CommandLineTest, GroupsCommandsByPurpose) {
  const std::string help = Run({"--help"}).out;
  for (const char* heading : {"Server", "Experiments", "Results", "Trained models", "Data",
                              "Access", "More", "Options"}) {
    EXPECT_THAT(help, HasSubstr(absl::StrCat("\n\n", heading, ":\n  ")));
  }
  EXPECT_THAT(Run({"help", "data"}).out, HasSubstr("\n\nCommands:\n  ls    "));
}

TEST_F(CommandLineTest, PrintsHelpByACommand) {
  EXPECT_EQ(Run({"help"}).out, Run({"--help"}).out);
  EXPECT_EQ(Run({"help", "data", "add"}).out, Run({"data", "add", "--help"}).out);
  EXPECT_EQ(Run({"help", "sumbit"}).err,
            "error: \"sumbit\" isn't a command of ablate; did you mean submit?\n"
            "see ablate --help\n");
  EXPECT_EQ(Run({"help", "ls", "--json"}).out, Run({"ls", "--help"}).out);
}

TEST_F(CommandLineTest, PrintsAllHelpAsAPage) {
  const Outcome page = Run({"help", "--markdown"});
  EXPECT_EQ(page.code, kSuccess);
  for (const std::vector<std::string>& command : Commands()) {
    const std::string name = absl::StrCat("ablate ", absl::StrJoin(command, " "));
    EXPECT_THAT(page.out, HasSubstr(absl::StrCat("\n### ", name, "\n\n")));
    EXPECT_THAT(page.out,
                HasSubstr(absl::StrCat("](#", absl::StrReplaceAll(name, {{" ", "-"}}), ")")));
  }
  EXPECT_THAT(page.out, HasSubstr("\n- `-n, --limit N`: List at most N, 0 for all [100]\n"));
  for (const absl::string_view line : absl::StrSplit(page.out, '\n')) {
    EXPECT_LE(DisplayWidth(line), 100) << line;
  }
}

TEST_F(CommandLineTest, SaysWhatWasMeant) {
  const std::tuple<std::vector<std::string>, std::string> cases[] = {
      {{"sumbit", "x"},
       "error: \"sumbit\" isn't a command of ablate; did you mean submit?\nsee ablate --help\n"},
      {{"data", "lst"},
       "error: \"lst\" isn't a command of ablate data; did you mean ls?\nsee ablate data --help\n"},
      {{"submit", "f", "--sed", "1"},
       "error: ablate submit: unexpected argument \"--sed\"; did you mean --set?\n"
       "see ablate submit --help\n"},
      {{"submit"},
       "error: ablate submit: FILE is missing; give a file, --again EXP or --extend EXP\n"},
      {{"show"}, "error: ablate show: EXP is required\nsee ablate show --help\n"},
      {{"submit", "f.yaml", "training.lr=0.1"},
       "error: ablate submit: unexpected argument \"training.lr=0.1\"; did you mean --set "
       "training.lr=0.1?\nsee ablate submit --help\n"},
      {{"show", "a", "b=1"},
       "error: ablate show: unexpected argument \"b=1\"\nsee ablate show --help\n"},
      {{"show", "a", "b"},
       "error: ablate show: unexpected argument \"b\"\nsee ablate show --help\n"},
      {{"ls", "-n", "few"},
       "error: ablate ls: --limit: \"few\" is not a whole number from 0 to 4294967295\n"
       "see ablate ls --help\n"},
      {{"artifact", "get", "a/b", "checkpoint"},
       "error: ablate artifact get: --output is required\nsee ablate artifact get --help\n"},
      {{"metrics", "e", "--csv", "--json"},
       "error: ablate metrics: --csv: can't be combined with --json or --list; remove one of "
       "them\n"},
      {{"submit", "f", "--seeds", "9..1"},
       "error: --seeds: the range \"9..1\" ends before it begins; expected FIRST..LAST\n"},
      {{"submit", "f", "--set", "training.steps"},
       "error: --set training.steps: write path=value, such as training.steps=100\n"}};
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, kUsage) << message;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, message);
  }
}

TEST_F(CommandLineTest, RefusesEmptyValues) {
  const std::vector<std::string> cases[] = {{"submit", "f", "--seeds", ""},
                                            {"submit", "f", "--seeds="},
                                            {"submit", "f", "--set", ""},
                                            {"down", "--home", ""},
                                            {"metrics", "e", "--key", ""},
                                            {"ls", "--limit", ""},
                                            {"artifact", "get", "a/b", "checkpoint", "-o", ""}};
  for (const std::vector<std::string>& arguments : cases) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, kUsage) << arguments[2];
    EXPECT_THAT(outcome.err, ::testing::StartsWith("error: ablate " + arguments[0]))
        << arguments[2];
  }
  EXPECT_THAT(Run({"submit", "f", "--seeds", ""}).err,
              ::testing::StartsWith(
                  "error: ablate submit: --seeds: the value is empty; expected a value\n"));
}

TEST_F(CommandLineTest, ShowsHelpWhenNoCommandIsGiven) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{}, {"data"}}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, kUsage);
    EXPECT_THAT(outcome.err, HasSubstr("Usage: ablate"));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(CommandLineTest, PrintsItsVersion) {
  EXPECT_THAT(Run({"--version"}).out, ::testing::MatchesRegex("ablate [0-9.]+\n"));
}

TEST_F(CommandLineTest, SaysHowToStartAServerWhenThereIsNone) {
  const Outcome none = Run({"ls"});
  EXPECT_EQ(none.code, kNoServer);
  EXPECT_THAT(none.err, ::testing::MatchesRegex("error: no server runs in .*: run `ablate up`\n"));
  environment_["ABLATE_SERVER"] = "unix:" + folder_ + "/gone";
  const Outcome gone = Run({"ls"});
  EXPECT_EQ(gone.code, kNoServer);
  EXPECT_THAT(gone.err, HasSubstr("error: no server answers at unix:"));
  EXPECT_THAT(gone.err, ::testing::Not(HasSubstr("ablate up"))) << "it may be a forwarded socket";
  EXPECT_GT(slept_, absl::ZeroDuration());  // it was tried again first
}

TEST_F(CommandLineTest, TakesAMistakeInASettingForOneOnTheCommandLine) {
  for (const char* server : {"example.org:1", "attic"}) {
    environment_["ABLATE_SERVER"] = server;
    for (const char* command : {"show", "wait"}) EXPECT_EQ(Run({command, "a"}).code, kUsage);
  }
  environment_["ABLATE_SERVER"] = environment_["ABLATE_HOME"] = "";
  for (const char* command : {"ls", "up", "down"}) {
    const Outcome outcome = Run({command});
    EXPECT_EQ(outcome.code, kUsage);
    EXPECT_EQ(outcome.err, "error: no folder for the personal server: set ABLATE_HOME or HOME\n");
  }
}

TEST_F(CommandLineTest, RefusesArgumentsThatAreNotUtf8) {
  const Outcome outcome = Run({"show", "a\xff"});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_EQ(outcome.err,
            "error: argument 2: not UTF-8 (a\\xff); expected UTF-8\nsee ablate show --help\n");
}

TEST_F(CommandLineTest, ColoursMessagesOnlyWhenAsked) {
  console_.color = true;
  for (const bool terminal : {false, true}) {
    console_.err_is_terminal = terminal;
    EXPECT_THAT(Run({"ls"}).err, ::testing::StartsWith("\x1b[31merror:\x1b[0m "));
  }
}

TEST_F(CommandLineTest, ShowsTheFieldsThatTheServerComplainsAbout) {
  answers_.list = [](const v1::ListExperimentsRequest&, v1::ListExperimentsResponse*) {
    google::rpc::BadRequest bad;
    bad.add_field_violations()->set_description("page_size is 9; expected 1 to 8");
    bad.add_field_violations()->set_description("page_token is \"x\x1b\"; expected a token");
    google::rpc::Status details;
    details.add_details()->PackFrom(bad);
    absl::Status status = absl::InvalidArgumentError("page_size is 9; expected 1 to 8");
    status.SetPayload(kDetails, absl::Cord(details.SerializeAsString()));
    return status;
  };
  StartServer();
  const Outcome outcome = Run({"ls"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err,
            "error: page_size is 9; expected 1 to 8; page_token is \"x\\x1b\"; expected a token\n");
}

TEST_F(CommandLineTest, FailsWhenTheOutputCantBeWritten) {
  answers_.list = [](const v1::ListExperimentsRequest&, v1::ListExperimentsResponse*) {
    return absl::OkStatus();
  };
  StartServer();
  output_fails_ = true;
  const Outcome outcome = Run({"ls", "--json"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err, "error: writing the output failed\n");
}

TEST_F(CommandLineTest, RepeatsCallsOnlyWhileTheServerIsUnavailable) {
  int calls = 0;
  answers_.list = [&](const v1::ListExperimentsRequest&, v1::ListExperimentsResponse* response) {
    response->add_experiments()->set_name("experiments/a");
    return ++calls < 3 ? absl::UnavailableError("restarting") : absl::OkStatus();
  };
  int removals = 0;
  answers_.remove = [&](const v1::DeleteExperimentRequest&, v1::DeleteExperimentResponse*) {
    ++removals;
    return absl::UnavailableError("restarting");
  };
  answers_.get = [&](const v1::GetExperimentRequest& request, v1::Experiment* experiment) {
    ++calls;
    experiment->set_name(request.name());
    return request.name() == "experiments/a" ? absl::OkStatus() : absl::InternalError("broken");
  };
  StartServer();
  EXPECT_EQ(Run({"ls"}).code, kSuccess);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(Run({"rm", "a", "--yes"}).code, kNoServer);
  EXPECT_EQ(removals, 1);
  calls = 0;
  EXPECT_EQ(Run({"show", "b"}).code, kFailure);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace ablate::client
