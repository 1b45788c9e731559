// Tests the output that scripts rely on, and the errors that people meet first.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(CommandLineTest, SaysHowToStartAServerWhenThereIsNone) {
  PersonalServer server;
  const Output output = server.Ablate({"ls"});
  EXPECT_EQ(output.exit_code, 69);
  EXPECT_THAT(output.err, HasSubstr("ablate up"));
  EXPECT_EQ(output.out, "");
}

TEST(CommandLineTest, StartsTwiceAndStopsTwiceWithoutHarm) {
  PersonalServer server;
  server.Up();
  const int pid = server.ServerPid();
  server.Up();
  EXPECT_EQ(server.ServerPid(), pid);
  EXPECT_EQ(server.Ablate({"down"}).exit_code, 0);
  EXPECT_EQ(server.ServerPid(), 0);
  EXPECT_EQ(server.Ablate({"down"}).exit_code, 0);
}

TEST(CommandLineTest, ServesAFolderOfAnyName) {
  PersonalServer server("50%20 of?it#\nfünf");
  server.Up();
  const auto attached = [&server] {
    const nlohmann::json workers = server.Json({"workers", "--json"})["workers"];
    return std::count_if(workers.begin(), workers.end(),
                         [](const nlohmann::json& worker) { return worker["state"] != "AWAY"; });
  };
  EXPECT_TRUE(Eventually([&] { return attached() == 2; }));
  EXPECT_NE(server.ServerPid(), 0);
  EXPECT_EQ(server.Ablate({"down"}).exit_code, 0);
  EXPECT_EQ(server.ServerPid(), 0);
}

TEST(CommandLineTest, ReplacesAWorkerThatOutlivedItsServerWithOtherOptions) {
  PersonalServer server;
  const auto lanes = [&server] {
    const nlohmann::json workers = server.Json({"workers", "--json"})["workers"];
    for (const nlohmann::json& worker : workers) {
      if (worker["name"] == "workers/cpu-train" && worker["state"] != "AWAY") {
        return worker["lanes"].get<int>();
      }
    }
    return 0;
  };
  server.Up({"--lanes", "1"});
  ASSERT_TRUE(Eventually([&] { return lanes() == 1; }));
  const int worker = server.WorkerPid();
  PersonalServer::Kill(server.ServerPid());
  server.Up({"--lanes", "1"});
  EXPECT_EQ(server.WorkerPid(), worker) << "the same options";
  PersonalServer::Kill(server.ServerPid());
  server.Up({"--lanes", "2"});
  EXPECT_TRUE(Eventually([&] { return lanes() == 2; }));
  EXPECT_NE(server.WorkerPid(), worker);
}

TEST(CommandLineTest, AsksForAFolderWhenTheEnvironmentNamesNone) {
  const Output output = RunProgram({ABLATE_BIN "/ablated", "--no-workers"}, "",
                                   {{"ABLATE_HOME", ""}, {"XDG_DATA_HOME", ""}, {"HOME", ""}});
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err, AllOf(HasSubstr("--home"), HasSubstr("ABLATE_HOME")));
}

TEST(CommandLineTest, WorksInAHomeWhosePathIsTooLongForASocket) {
  PersonalServer server;
  const std::string home = server.home() + "/" + std::string(120, 'x');
  const auto ablate = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {ABLATE_BIN "/ablate"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return RunProgram(command, "", {{"ABLATE_HOME", home}, {"ABLATE_SERVER", ""}});
  };
  std::filesystem::create_directories(server.home());
  const Output up = ablate({"up"});
  EXPECT_EQ(up.exit_code, 0) << up.err;
  EXPECT_EQ(ablate({"ls"}).exit_code, 0);
  EXPECT_EQ(ablate({"down"}).exit_code, 0);
}

TEST(CommandLineTest, CreatesNothingFromABadFile) {
  PersonalServer server;
  server.Up();
  const Output output = server.Ablate(
      {"submit", "-"},
      SmallNames("bad", 10, "axes: [{field: model.heads, values: [3]}]\nsedes: {count: 1}\n"));
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err, AllOf(HasSubstr("sedes"), HasSubstr("seeds")));
  const Output heads = server.Ablate(
      {"submit", "-"}, SmallNames("bad", 10, "axes: [{field: model.heads, values: [3]}]\n"));
  EXPECT_EQ(heads.exit_code, 1);
  EXPECT_THAT(heads.err, HasSubstr("width 16"));
  EXPECT_THAT(server.Json({"ls", "--json"})["experiments"], SizeIs(0));
}

// One problem of each stage: reading, an option, fields, the grid, a cell, the report, an
// analysis's step, its model and the data that it reads.
TEST(CommandLineTest, ReportsProblemsOfEveryStageAtOnce) {
  PersonalServer server;
  const std::string yaml = SmallNames("A name", 10,
                                      "axes: [{field: model.heads, values: [2, 3]}]\n"
                                      "sedes: {count: 1}\n"
                                      "limits: {runs: 1}\n"
                                      "report: {primary: eval/los, smooth: much}\n"
                                      "analyses:\n"
                                      "  - {spectrum: {}, at: [77]}\n"
                                      "  - {name: site, spectrum: {site: block.7.output}}\n"
                                      "  - {name: prompt, spectrum: {}, inputs: {prompt: '%'}}\n");
  const auto submit = [&](const std::vector<std::string>& options) {
    std::vector<std::string> command = {"submit", "-", "--set", "training.clip=often"};
    command.insert(command.end(), options.begin(), options.end());
    const Output output = server.Ablate(command, yaml);
    EXPECT_EQ(output.exit_code, 1);
    return output.err;
  };
  const auto client = AllOf(HasSubstr("<stdin>:8:1: sedes: "), HasSubstr("report.smooth: "),
                            HasSubstr("--set training.clip: "));
  EXPECT_THAT(submit({}), AllOf(client, HasSubstr("could not be asked for further problems"),
                                HasSubstr("3 problems; nothing was created")));
  server.Up();
  const auto but_data = AllOf(
      client, HasSubstr("<stdin>:1:1: name: "), HasSubstr("<stdin>:7:41: axes[0].values[1]: "),
      HasSubstr("<stdin>:9:10: limits.runs: "), HasSubstr("<stdin>:10:10: report.primary: "),
      HasSubstr("<stdin>:12:25: analyses[0].at[0]: "),
      HasSubstr("<stdin>:13:29: analyses[1].spectrum.site: "));
  EXPECT_THAT(submit({}), AllOf(but_data, HasSubstr("9 problems; nothing was created"),
                                HasSubstr("note: the server lacks data sets of the file")));
  EXPECT_THAT(server.Json({"data", "ls", "--json"})["datasets"], SizeIs(0)) << "none is uploaded";
  EXPECT_EQ(server.Ablate({"data", "add", ABLATE_SOURCE "/examples/data/names.txt"}).exit_code, 0);
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{}, std::vector<std::string>{"--dry-run"}}) {
    EXPECT_THAT(submit(options),
                AllOf(but_data, HasSubstr("<stdin>:14:43: analyses[2].inputs.prompt: "),
                      HasSubstr("10 problems; nothing was created")));
  }
  EXPECT_THAT(server.Json({"ls", "--json"})["experiments"], SizeIs(0));
}

TEST(CommandLineTest, TakesUniquePrefixes) {
  PersonalServer server;
  server.Up();
  const std::string name =
      server.Json({"submit", "-", "--wait", "--json"},
                  SmallNames("prefix", 5, "seeds: {count: 1}\n"))["experiment"]["name"];
  const std::string id = name.substr(std::string("experiments/").size());
  EXPECT_EQ(server.Ablate({"show", name}).exit_code, 0);
  EXPECT_EQ(server.Ablate({"show", id}).exit_code, 0);
  EXPECT_EQ(server.Ablate({"show", "pref"}).exit_code, 0);
  const Output wrong = server.Ablate({"show", "nothing"});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("nothing"));
}

TEST(CommandLineTest, TakesANameForItsNewestExperiment) {
  PersonalServer server;
  server.Up();
  // The questions differ: an identical experiment wouldn't be created.
  int questions = 0;
  const auto submit = [&](const std::string& name) {
    const std::string yaml = SmallNames(
        name, 5,
        "axes: [{field: training.batch, values: [1, 2]}]\nseeds: {count: 2}\nquestion: number " +
            std::to_string(++questions) + "\n");
    const std::string full =
        server.Json({"submit", "-", "--wait", "--json"}, yaml)["experiment"]["name"];
    return full.substr(std::string("experiments/").size());
  };
  submit("same-longer");
  const std::string first = submit("same");
  EXPECT_EQ(server.Ablate({"show", "same"}).err, "");
  const std::string second = submit("same");
  const std::string note =
      "note: several experiments are named same; using the newest, " + second + "\n";
  const std::string csv = server.home() + "/../same.csv";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"show", "same"},
        {"compare", "same"},
        {"logs", "same/batch1-s0"},
        {"export", "same", "--format", "csv", "-o", csv, "--json"},
        {"metrics", "same", "--csv"}}) {
    const Output output = server.Ablate(command);
    EXPECT_EQ(output.exit_code, 0) << output.err;
    EXPECT_EQ(output.err, note) << command[0];
  }
  for (const char* command : {"rm", "cancel"}) {
    std::vector<std::string> line = {command, "same"};
    if (line[0] == "rm") line.push_back("--yes");
    const Output refused = server.Ablate(line);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err, HasSubstr("\"same\" is the name of several experiments"));
  }
  EXPECT_EQ(server.Ablate({"rm", "sa", "--yes"}).exit_code, 1);
  EXPECT_EQ(server.Ablate({"rm", first}).exit_code, 64) << "nobody can be asked";
  EXPECT_EQ(server.Ablate({"rm", first, "--yes"}).exit_code, 0);
  EXPECT_EQ(server.Ablate({"rm", "same", "--yes"}).exit_code, 0) << "one is left";
  EXPECT_THAT(server.Json({"ls", "--json"})["experiments"], SizeIs(1));
}

TEST(CommandLineTest, PrintsJsonInSnakeCaseWithDefaults) {
  PersonalServer server;
  server.Up();
  nlohmann::json workers;
  ASSERT_TRUE(Eventually([&] {
    workers = server.Json({"workers", "--json"});
    return workers["workers"].size() == 2;
  })) << "workers attach while they warm up";
  EXPECT_TRUE(workers["workers"][0].contains("runs"));
  EXPECT_EQ(workers["workers"][0]["role"], "analysis");
  EXPECT_EQ(workers["workers"][1]["role"], "train");
  const nlohmann::json created = server.Json({"submit", "-", "--wait", "--json"},
                                             SmallNames("json", 5, "seeds: {count: 1}\n"));
  EXPECT_TRUE(created.contains("differs_only_in_evaluation"));
  EXPECT_TRUE(created["experiment"].contains("create_time"));
}

// Returns the lines of `text` that submit something, with a dry run instead of the wait.
std::vector<std::string> Submissions(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("ablate submit examples/") == std::string::npos) continue;
    const size_t wait = line.find("--wait");
    if (wait == std::string::npos) {
      line += " --dry-run";
    } else {
      line.replace(wait, 6, "--dry-run");
    }
    found.push_back(line);
  }
  return found;
}

TEST(CommandLineTest, AcceptsTheSubmissionsThatReadmeQuickstartAndHelpShow) {
  PersonalServer server;
  server.Up();
  std::vector<std::string> lines;
  for (const std::string& text :
       {ReadFile(ABLATE_SOURCE "/README.md"), ReadFile(ABLATE_SOURCE "/deploy/quickstart.sh"),
        server.Ablate({"submit", "--help"}).out}) {
    const std::vector<std::string> found = Submissions(text);
    EXPECT_THAT(found, ::testing::Not(SizeIs(0)));
    lines.insert(lines.end(), found.begin(), found.end());
  }
  for (const std::string& line : lines) {
    const Output output = RunProgram(
        {"/bin/bash", "-c",
         "set -eo pipefail; cd '" ABLATE_SOURCE "'; PATH='" ABLATE_BIN "':$PATH; " + line},
        "", {{"ABLATE_HOME", server.home()}, {"ABLATE_SERVER", ""}});
    EXPECT_EQ(output.exit_code, 0) << line << "\n" << output.err;
  }
}

}  // namespace
}  // namespace ablate::e2e
