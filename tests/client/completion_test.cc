// Tests what the program offers shells for a line that is being typed, and the pages for man.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/command_table.h"
#include "client/completion/values.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class CompletionTest : public ClientTest {
 protected:
  // The first line of the answer, and the words of the others.
  std::vector<std::string> Complete(std::vector<std::string> words) {
    words.insert(words.begin(), "__complete");
    const Outcome outcome = Run(words);
    EXPECT_EQ(outcome.code, kSuccess);
    EXPECT_EQ(outcome.err, "");
    std::vector<std::string> answer;
    for (const absl::string_view line : absl::StrSplit(outcome.out, '\n', absl::SkipEmpty())) {
      answer.emplace_back(line.substr(0, line.find('\t')));
    }
    return answer;
  }

  void AnswerExperiments(const std::vector<std::pair<std::string, std::string>>& experiments) {
    answers_.list = [this, experiments](const v1::ListExperimentsRequest&,
                                        v1::ListExperimentsResponse* response) {
      asked_.emplace_back("experiments");
      for (const auto& [id, name] : experiments) {
        v1::Experiment& experiment = *response->add_experiments();
        experiment.set_name("experiments/" + id);
        experiment.mutable_spec()->set_name(name);
        experiment.mutable_spec()->set_question("Does\n$(it)\thelp?");
      }
      return result_;
    };
  }

  void AnswerCells() {
    answers_.runs = [this](const v1::ListRunsRequest& request, v1::ListRunsResponse* response) {
      asked_.push_back(request.experiment());
      for (const auto& [cell, seed] :
           {std::pair("pre-s1", 1), std::pair("pre-s2", 2), std::pair("s3", 3)}) {
        v1::RunRow& row = *response->add_rows();
        row.set_cell(cell);
        row.set_seed(seed);
        row.set_state(v1::RunState::DONE);
      }
      return result_;
    };
  }
};

// Nothing can be offered for these; a new metavar is added here or to client/completion/values.cc.
const std::set<std::string>& MetavarsWithoutValues() {
  static const auto& metavars = *new std::set<std::string>{"A,B,…",
                                                           "ADDRESS",
                                                           "AXIS",
                                                           "AXIS=LABEL",
                                                           "CELL",
                                                           "DEVICES",
                                                           "DIRECTIVE",
                                                           "HOST",
                                                           "HOST:PORT",
                                                           "ID,...",
                                                           "IMAGE",
                                                           "KEY",
                                                           "KEY=VALUE",
                                                           "KEYS",
                                                           "LEVEL",
                                                           "MARGIN",
                                                           "PATTERN",
                                                           "PROGRAM",
                                                           "TOOL",
                                                           "LABEL",
                                                           "LINE",
                                                           "LIST",
                                                           "N",
                                                           "NAME",
                                                           "NAME=PATH[:FOLDER…]",
                                                           "NAME=VALUE",
                                                           "NAME=VALUES",
                                                           "P",
                                                           "PATH=VALUE",
                                                           "PORT",
                                                           "PREFIX",
                                                           "QUERY",
                                                           "SBATCH",
                                                           "SECONDS",
                                                           "SEEDS",
                                                           "SETTING=VALUE",
                                                           "SHARE",
                                                           "SIZE",
                                                           "STEP",
                                                           "TAG",
                                                           "TEXT",
                                                           "TIME",
                                                           "TOKEN",
                                                           "USER",
                                                           "WIDTH",
                                                           "X"};
  return metavars;
}

TEST(ValuesTest, KnowsTheMetavarsOfEveryCommand) {
  for (const CommandRow& row : CommandTable()) {
    std::string name = row.name;
    for (const CommandGroup* group = row.group; group != nullptr; group = group->parent) {
      name = absl::StrCat(group->name, " ", name);
    }
    CLI::App app;
    Action chosen;
    Command command(&app, &chosen);
    row.define(&command);
    for (const CLI::Option* option : app.get_options()) {
      const std::string metavar =
          option->get_positional() ? option->get_name(true) : option->get_type_name();
      if (option->get_items_expected_max() == 0) continue;  // a flag
      const bool known = ValuesOf(name, metavar) != Values::kNone;
      EXPECT_TRUE(known || MetavarsWithoutValues().count(metavar) > 0)
          << "ablate " << name << ": add " << metavar << " to client/completion/values.cc";
    }
  }
}

TEST_F(CompletionTest, OffersWhatTheTableOfCommandsHas) {
  using Answer = std::vector<std::string>;
  const std::tuple<std::vector<std::string>, Answer> cases[] = {
      {{"su"}, {"words", "submit"}},
      {{"data", ""}, {"words", "ls", "add", "get", "encode", "rm"}},
      {{"admin", "tok"}, {"words", "token"}},
      {{"admin", "token", "re"}, {"words", "revoke"}},
      {{"edit", "names", "--priority", ""}, {"words", "interactive", "normal", "background"}},
      {{"queue", "move", "names", ""}, {"words", "first", "last"}},
      {{"judge", "--better", ""}, {"words", "lower", "higher"}},
      {{"nothing", ""}, {"words"}},
      {{"help", "data", "e"}, {"words", "encode"}},
      {{"help", "show", ""}, {"words"}},
      {{"help", "analyze", "log"}, {"words", "logit_lens"}},
      {{"help", "--m"}, {"words", "--markdown", "--man"}},
      {{"help", "--man", ""}, {"folders"}},
      {{"ls", "--o"}, {"words", "--owner"}},
      {{"ls", "--ser"}, {"words", "--server"}},
      {{"ls", ""},
       {"words", "--help", "--owner", "--mine", "--tag", "--archived", "--limit", "--json",
        "--server"}},
      {{"submit", ""}, {"files"}},
      {{"submit", "--set", "a"}, {"words"}},
      {{"submit", "--wait", "f"}, {"files"}},
      {{"up", "--home", ""}, {"folders"}},
      {{"report", "e", "-o", ""}, {"files"}},
      {{"report", "e", "--output="}, {"files"}},
      {{"export", "e", "--format", ""}, {"words", "csv", "jsonl", "tensorboard"}},
      {{"export", "e", "--format=c"}, {"words", "--format=csv"}},
      {{"table", "--format", "csv", "--format", "l"}, {"words", "latex"}},
      {{"figure", "e", "le"}, {"words", "levels"}},
      {{"analyze", "hes"}, {"words", "hessian"}},
      {{"artifact", "get", "e/c", ""}, {"words", "checkpoint", "output"}},
      {{"admin", "user", "add", "x", "--role", ""},
       {"words", "reader", "member", "admin", "worker"}},
      {{"up", "--programs", ""}, {"words", "sandboxed", "unsandboxed", "off"}},
      {{"completion", ""}, {"words", "bash", "zsh", "fish"}},
      {{"show", "\xff"}, {}},
      {{}, {}}};
  for (const auto& [words, answer] : cases) {
    EXPECT_EQ(Complete(words), answer) << absl::StrJoin(words, " ");
  }
  EXPECT_THAT(Run({"__complete", "su"}).out,
              "words\nsubmit\tCreate an experiment from a file and queue its runs\n");
  EXPECT_THAT(Run({"--help"}).out, Not(HasSubstr("__complete")));
}

TEST_F(CompletionTest, OffersExperimentsByOneCall) {
  AnswerExperiments({{"norm-2", "norm"}, {"norm-1", "norm"}, {"data-1", "data"}});
  StartServer();
  EXPECT_THAT(Complete({"show", ""}), ElementsAre("words", "norm", "norm-1", "data"));
  EXPECT_EQ(asked_.size(), 1);
  EXPECT_EQ(Run({"__complete", "show", "d"}).out, "words\ndata\tDoes $(it) help?\n");
  EXPECT_THAT(Complete({"rm", "x", "n"}), ElementsAre("words", "norm", "norm-1"));
  EXPECT_THAT(Complete({"show", "experiments/d"}), ElementsAre("words", "experiments/data-1"));
  EXPECT_THAT(Complete({"logs", "da"}), ElementsAre("nospace", "data/"));
  EXPECT_THAT(Complete({"logs", "experiments/d"}), ElementsAre("nospace", "experiments/data-1/"));
  EXPECT_THAT(Complete({"metrics", "da"}), ElementsAre("nospace", "data"));
  EXPECT_THAT(Complete({"runs", "da"}), ElementsAre("nospace", "data"));
  EXPECT_THAT(Complete({"compare", "a", "da"}), ElementsAre("nospace", "data"));
  EXPECT_THAT(Complete({"generate", ""}),
              ElementsAre("nospace", "norm/", "norm-1/", "data/", "models/"));
  EXPECT_EQ(asked_.size(), 10);
}

TEST_F(CompletionTest, OffersCellsAndSettingsAfterASlash) {
  AnswerCells();
  StartServer();
  EXPECT_THAT(Complete({"logs", "norm/p"}), ElementsAre("words", "norm/pre-s1", "norm/pre-s2"));
  EXPECT_THAT(asked_, ElementsAre("experiments/norm"));
  EXPECT_THAT(Complete({"diff", "a", "experiments/norm/"}),
              ElementsAre("words", "experiments/norm/pre-s1", "experiments/norm/pre-s2",
                          "experiments/norm/s3", "experiments/norm/pre", "experiments/norm/@best",
                          "experiments/norm/@chosen"));
  for (const char* command : {"metrics", "runs", "analyses"}) {
    EXPECT_THAT(Complete({command, "norm/pre"}),
                ElementsAre("words", "norm/pre-s1", "norm/pre-s2", "norm/pre"));
  }
  EXPECT_THAT(Complete({"analyze", "cka", "norm/@"}),
              ElementsAre("words", "norm/@best", "norm/@chosen"));
  EXPECT_THAT(Complete({"compare", "norm/@"}), ElementsAre("words"));
  EXPECT_THAT(Complete({"logs", "norm/@"}), ElementsAre("words", "norm/@best"));
  EXPECT_THAT(Complete({"table", "e", "--with=norm/s"}), ElementsAre("words", "--with=norm/s3"));
  EXPECT_EQ(Run({"__complete", "logs", "norm/s"}).out, "words\nnorm/s3\tdone\n");
}

TEST_F(CompletionTest, OffersOtherNames) {
  answers_.datasets = [](const v1::ListDatasetsRequest&, v1::ListDatasetsResponse* response) {
    response->add_datasets()->set_display_name("names.txt");
    return absl::OkStatus();
  };
  answers_.models = [](const v1::ListModelsRequest&, v1::ListModelsResponse* response) {
    response->add_models()->set_name("models/gpt2");
    return absl::OkStatus();
  };
  StartServer();
  EXPECT_THAT(Complete({"data", "get", "n"}), ElementsAre("words", "names.txt"));
  EXPECT_THAT(Complete({"model", "show", ""}), ElementsAre("words", "gpt2"));
  EXPECT_THAT(Complete({"generate", "models/"}), ElementsAre("words", "models/gpt2"));
  environment_["XDG_CONFIG_HOME"] = folder_;
  ASSERT_TRUE(Known().Add("lab", JoinOf("lab.example.org")).ok());
  EXPECT_THAT(Complete({"ls", "--server", ""}), ElementsAre("words", "personal", "lab"));
  EXPECT_THAT(Complete({"logout", "l"}), ElementsAre("words", "lab"));
}

TEST_F(CompletionTest, LeavesOutNamesThatMeanSomethingInAShell) {
  const char* const kHostile[] = {"a b",  "a\nb", "a\tb", "$(touch x)", "`x`",    "a'b",
                                  "a\"b", "-rf",  "~x",   "a;b",        "a|b",    "a&b",
                                  "a*b",  "a?b",  "a[b]", "{a}",        "a\\",    "\x1b[",
                                  "a>b",  "#a",   "!a",   "",           "\u202e", "ä"};
  std::vector<std::pair<std::string, std::string>> experiments = {{"good-1", "good"}};
  for (const char* name : kHostile) experiments.emplace_back(name, name);
  AnswerExperiments(experiments);
  StartServer();
  EXPECT_THAT(Complete({"show", ""}), ElementsAre("words", "good"));
}

TEST_F(CompletionTest, AsksTheServerThatTheLineNames) {
  AnswerExperiments({{"a-1", "a"}});
  StartServer();
  const std::string address = environment_["ABLATE_SERVER"];
  environment_["ABLATE_SERVER"] = "unix:" + folder_ + "/gone";
  EXPECT_THAT(Complete({"show", ""}), ElementsAre("words"));
  EXPECT_THAT(Complete({"--server", address, "show", ""}), ElementsAre("words", "a"));
  EXPECT_THAT(Complete({"show", "--server=" + address, ""}), ElementsAre("words", "a"));
}

TEST_F(CompletionTest, OffersNoNamesWithoutAnAnswer) {
  EXPECT_THAT(Complete({"show", ""}), ElementsAre("words"));
  EXPECT_FALSE(std::filesystem::exists(environment_["ABLATE_HOME"]));
  AnswerExperiments({{"a-1", "a"}});
  StartServer();
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kPermissionDenied}) {
    result_ = absl::Status(code, "no");
    EXPECT_THAT(Complete({"show", ""}), ElementsAre("words"));
  }
  EXPECT_EQ(asked_.size(), 2) << "a call is not repeated";
  environment_["ABLATE_SERVER"] = "nowhere:1";
  EXPECT_THAT(Complete({"show", ""}), ElementsAre("words"));
}

TEST_F(CompletionTest, WaitsForNoSlowServer) {
  // The call may reach the server only after the test has ended.
  const auto over = std::make_shared<absl::Notification>();
  answers_.list = [over](const v1::ListExperimentsRequest&, v1::ListExperimentsResponse*) {
    over->WaitForNotification();
    return absl::OkStatus();
  };
  StartServer();
  const absl::Time began = absl::Now();
  EXPECT_THAT(Complete({"show", ""}), ElementsAre("words"));
  EXPECT_LT(absl::Now() - began, absl::Seconds(10));  // a call has 30 s otherwise
  over->Notify();
}

TEST_F(CompletionTest, PrintsAScriptForEachShell) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_THAT(Run({"completion", shell}).out, HasSubstr("__complete"));
  }
  const Outcome unknown = Run({"completion", "tcsh"});
  EXPECT_EQ(unknown.code, kUsage);
  EXPECT_EQ(unknown.err, "error: SHELL: \"tcsh\" is unknown; expected bash, zsh or fish\n");
}

TEST_F(CompletionTest, WritesPagesForMan) {
  const std::string folder = folder_ + "/man/man1";
  EXPECT_EQ(Run({"help", "--man", folder}).code, kSuccess);
  size_t pages = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    ++pages;
    const std::string page = Read(entry.path());
    for (const absl::string_view line : absl::StrSplit(page, '\n')) {
      for (const char c : line) EXPECT_GT(c, 0) << entry.path() << ": not ASCII: " << line;
    }
  }
  EXPECT_EQ(pages, CommandTable().size() + 1);
  const std::string submit = Read(folder + "/ablate-submit.1");
  EXPECT_THAT(submit, HasSubstr(".SH NAME\nablate\\-submit \\- Create an experiment"));
  EXPECT_THAT(submit, HasSubstr(".SH SYNOPSIS\n\\fBablate submit\\fR [OPTIONS] [FILE]\n"));
  EXPECT_THAT(submit, HasSubstr(".TP\n\\fB\\-\\-wait\\fR\n"));
  EXPECT_THAT(submit, HasSubstr("\n.nf\nablate submit examples/names\\-norm.yaml"));
  const std::string all = Read(folder + "/ablate.1");
  EXPECT_THAT(all, HasSubstr(".SS Experiments\n.TP\n.BR ablate\\-submit (1)\n"));
  EXPECT_THAT(all, HasSubstr(".TP\n\\fB69\\fR\nno server answers"));

  const Outcome again = Run({"help", "--man", folder});
  EXPECT_EQ(again.code, kFailure);
  EXPECT_THAT(again.err, HasSubstr("--force"));
  EXPECT_EQ(Run({"help", "--man", folder, "--force"}).code, kSuccess);
  EXPECT_EQ(Run({"help", "--man", Write("file", "")}).code, kFailure);
}

}  // namespace
}  // namespace ablate::client
