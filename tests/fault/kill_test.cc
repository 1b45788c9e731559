// Kills the real server and the real worker during a grid and compares every number with an
// undisturbed run.
#include <signal.h>
#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kMinKills = 6;
constexpr int kMaxKills = 20;  // per grid; it then ends undisturbed
constexpr int kGridSeeds = 3;
constexpr int kMaxRounds = 20;

// Returns another grid each round, so that no run is known yet. How often a grid can be disturbed
// depends on the machine: rounds are repeated until there were enough kills.
std::string Grid(int round) {
  return SmallNames("grid", 20000,
                    "axes:\n"
                    "  - {name: norm, settings: [{label: pre}, {label: post, set: "
                    "{model.norm.placement: post}}]}\n"
                    "seeds: {first: " +
                        std::to_string(7 + round * kGridSeeds) +
                        ", count: " + std::to_string(kGridSeeds) + "}\n");
}

// One run for each rule and part of a model with a state of its own (feedback matrices, running
// statistics, drawn masks) and for each task.
constexpr char kKinds[] =
    "axes:\n"
    "  - name: kind\n"
    "    settings:\n"
    "      - {label: documents}\n"
    "      - {label: feedback, set: {training.rule: feedback_alignment}}\n"
    "      - {label: direct, set: {training.rule: direct_feedback_alignment}}\n"
    "      - {label: batch-norm, set: {model.norm.kind: batch}}\n"
    "      - {label: dropout, set: {model.dropout: 0.2}}\n"
    "      - {label: recall, set: {task: {recall: {pairs: 15}}}}\n"
    "      - {label: legacy, set: {task: {legacy_recall: {keys: 30, draw: 15}}}}\n"
    "      - label: text\n"
    "        set: {task: {text: {dataset: " ABLATE_SOURCE
    "/examples/data/names.txt}}, evaluation.batches: 4}\n";
constexpr size_t kKindsInAll = 8;

std::string EveryKind(int round) {
  return SmallNames("kinds", 12000,
                    kKinds + ("seeds: {first: " + std::to_string(7 + round)) + ", count: 1}\n");
}

// Returns why a test gives up.
std::string TooFast(int kills) {
  return "grids end before they can be disturbed: " + std::to_string(kills) + " kills of " +
         std::to_string(kMinKills) + " in " + std::to_string(kMaxRounds) + " grids";
}

// The results of a finished experiment: all points in full precision and the final parameters of
// every cell.
struct Results {
  std::string points;
  std::vector<std::string> parameters;
};

Results Collect(const PersonalServer& server, const std::string& experiment) {
  Results results;
  results.points = server.Ablate({"metrics", experiment, "--csv"}).out;
  const nlohmann::json runs = server.Json({"runs", experiment, "--json"});
  for (const nlohmann::json& row : runs["rows"]) {
    // So many steps overfit a small data set: a held-out loss above the uniform guess is DIVERGED,
    // and comparable, too.
    EXPECT_THAT(row["state"], testing::AnyOf("DONE", "DIVERGED"));
    const std::string cell = row["cell"];
    const std::string file = server.home() + "/../" + cell + ".safetensors";
    EXPECT_EQ(server
                  .Ablate({"artifact", "get", experiment + "/" + cell, "checkpoint", "-o", file,
                           "--force"})
                  .exit_code,
              0);
    results.parameters.push_back(ReadFile(file));
  }
  return results;
}

Results Undisturbed(const std::string& grid) {
  PersonalServer server;
  server.Up({"--lanes", "2"});
  const std::string experiment =
      server.Json({"submit", "-", "--wait", "--json"}, grid)["experiment"]["name"];
  return Collect(server, experiment);
}

uint64_t StepsStored(const PersonalServer& server, const std::string& experiment) {
  uint64_t steps = 0;
  const nlohmann::json runs = server.Json({"runs", experiment, "--json"});
  for (const nlohmann::json& row : runs["rows"]) {
    steps += row["step"].get<uint64_t>();
  }
  return steps;
}

// Waits until `more` further steps are stored or everything has ended; returns true if something is
// left to disturb.
bool Advance(const PersonalServer& server, const std::string& experiment, uint64_t more) {
  const uint64_t from = StepsStored(server, experiment);
  bool ended = false;
  EXPECT_TRUE(Eventually([&] {
    const std::string state = server.Json({"show", experiment, "--json"})["state"];
    ended = state != "ACTIVE";
    // A rewind can reduce the count below its earlier value.
    const uint64_t now = StepsStored(server, experiment);
    return ended || now >= from + more || now < from;
  }));
  return !ended;
}

// Returns the name of a row's run as the database has it.
std::string RunId(const nlohmann::json& row) {
  return std::string(row["run"]).substr(std::string("runs/").size());
}

// Returns the step of the last saved state of each unfinished run of the grid; 0 if it has none.
// Read from the database, because no program prints it.
std::map<std::string, int64_t> SavedSteps(const PersonalServer& server,
                                          const std::string& experiment) {
  std::map<std::string, int64_t> saved;
  const nlohmann::json runs = server.Json({"runs", experiment, "--json"});
  for (const nlohmann::json& row : runs["rows"]) {
    if (row["state"] == "QUEUED" || row["state"] == "RUNNING") saved[RunId(row)] = 0;
  }
  sqlite3* database = nullptr;
  sqlite3_stmt* states = nullptr;
  if (sqlite3_open_v2((server.home() + "/ablate.db").c_str(), &database, SQLITE_OPEN_READONLY,
                      nullptr) == SQLITE_OK &&
      sqlite3_prepare_v2(database,
                         "SELECT runs.name, resume_states.step FROM resume_states JOIN runs ON "
                         "runs.id = resume_states.run",
                         -1, &states, nullptr) == SQLITE_OK) {
    while (sqlite3_step(states) == SQLITE_ROW) {
      const std::string run = reinterpret_cast<const char*>(sqlite3_column_text(states, 0));
      if (saved.count(run) > 0) saved[run] = sqlite3_column_int64(states, 1);
    }
  } else {
    ADD_FAILURE() << sqlite3_errmsg(database);
  }
  sqlite3_finalize(states);
  sqlite3_close(database);
  return saved;
}

// Returns labels of the cells whose run continued from a state of a later step than 0.
std::set<std::string> Resumed(const PersonalServer& server, const std::string& experiment) {
  std::set<std::string> resumed;
  const nlohmann::json runs = server.Json({"runs", experiment, "--json"});
  for (const nlohmann::json& row : runs["rows"]) {
    const std::string cell = row["cell"];
    const std::string history = server.Ablate({"logs", experiment + "/" + cell}).out;
    if (std::regex_search(history, std::regex(" resumed +[1-9]"))) {
      resumed.insert(row["labels"].dump());
    }
  }
  return resumed;
}

// Waits until a run of a setting that isn't in `resumed` has saved a state, or, if each is, until
// the next steps are stored; returns true if a run is left to disturb.
bool AwaitState(const PersonalServer& server, const std::string& experiment,
                const std::set<std::string>& resumed) {
  std::map<std::string, bool> wanted;  // by run
  const nlohmann::json runs = server.Json({"runs", experiment, "--json"});
  for (const nlohmann::json& row : runs["rows"]) {
    wanted[RunId(row)] = resumed.count(row["labels"].dump()) == 0;
  }
  bool left = false;
  bool found = false;
  EXPECT_TRUE(Eventually([&] {
    bool awaited = false;
    left = false;
    for (const auto& [run, step] : SavedSteps(server, experiment)) {
      left = true;
      awaited |= wanted.at(run);
      found |= wanted.at(run) && step > 0;
    }
    return found || !awaited;
  }));
  return found || (left && Advance(server, experiment, 1));
}

// Kills server or worker, or both, at random moments until the grids were disturbed often enough
// and `settings` of them have continued from a state, each grid at most kMaxKills times; all
// results must equal the undisturbed ones. Every other kill waits for the first state of a setting
// that hasn't continued yet, because a short run saves few of them.
void ExpectKillsToLoseNothing(std::string (*grid)(int round), size_t lanes, size_t settings) {
  const std::vector<std::string> up = {"--lanes", std::to_string(lanes), "--resume-every", "0.1"};
  PersonalServer server;
  server.Up(up);
  std::mt19937 random(20261121);
  int kills = 0;
  std::set<std::string> resumed;
  for (int round = 0; kills < kMinKills || resumed.size() < settings; ++round) {
    ASSERT_LT(round, kMaxRounds) << TooFast(kills) << ", " << resumed.size() << " of " << settings
                                 << " settings resumed";
    const Results expected = Undisturbed(grid(round));
    const std::string experiment =
        server.Json({"submit", "-", "--json"}, grid(round))["experiment"]["name"];
    const int most = kills + kMaxKills;
    for (bool states = true; kills < most; states = !states) {
      const bool left = states ? AwaitState(server, experiment, resumed)
                               : Advance(server, experiment, 100 + random() % 700);
      if (!left) break;
      const bool kill_server = !states && random() % 2 == 0;
      PersonalServer::Kill(kill_server ? server.ServerPid() : server.WorkerPid());
      if (!kill_server && random() % 3 == 0) PersonalServer::Kill(server.ServerPid());
      if (server.ServerPid() == 0) server.Up(up);
      ++kills;
      if (states) resumed.merge(Resumed(server, experiment));
    }
    EXPECT_EQ(server.Ablate({"wait", experiment}).exit_code, 0);
    const Results results = Collect(server, experiment);
    EXPECT_EQ(results.points == expected.points, true)
        << "points differ after " << kills << " kills";
    EXPECT_EQ(results.parameters == expected.parameters, true) << "parameters differ";
    resumed.merge(Resumed(server, experiment));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(KillTest, LosesNothingWhenServerAndWorkerAreKilledAtRandomMoments) {
  ExpectKillsToLoseNothing(Grid, 2, 2);
}

// All of them train at once, so that a killed worker is in the middle of each.
TEST(KillTest, LosesNothingOfAnyRuleNormOrTask) {
  ExpectKillsToLoseNothing(EveryKind, kKindsInAll, kKindsInAll);
}

TEST(KillTest, CostsNoRunItsLeaseWhenOnlyTheServerIsKilled) {
  PersonalServer server;
  server.Up({"--lanes", "2", "--resume-every", "0.05"});
  int kills = 0;
  for (int round = 0; kills < kMinKills; ++round) {
    ASSERT_LT(round, kMaxRounds) << TooFast(kills);
    const std::string experiment =
        server.Json({"submit", "-", "--json"}, Grid(round))["experiment"]["name"];
    while (Advance(server, experiment, 300)) {
      PersonalServer::Kill(server.ServerPid());
      server.Up({"--lanes", "2", "--resume-every", "0.05"});
      ++kills;
    }
    const nlohmann::json runs = server.Json({"runs", experiment, "--json"});
    for (const nlohmann::json& row : runs["rows"]) {
      EXPECT_EQ(row["state"], "DONE");
      const std::string cell = row["cell"];
      const std::string history = server.Ablate({"logs", experiment + "/" + cell}).out;
      // A grant that was stored but not sent costs nothing: the worker never had it.
      const std::regex unsent("lost +0 +cpu-train +the worker does not hold it");
      EXPECT_THAT(std::regex_replace(history, unsent, "unsent"), Not(HasSubstr(" lost ")))
          << history;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(KillTest, ReplacesAWorkerThatIsStopped) {
  PersonalServer server;
  server.Up({"--lanes", "1", "--worker-silence", "2"});
  const std::string experiment = SubmitEndlessRun(server, "stopped");
  ASSERT_TRUE(Eventually([&] { return StepsStored(server, experiment) > 0; }));
  const int stopped = server.WorkerPid();
  ASSERT_EQ(::kill(stopped, SIGSTOP), 0);
  ASSERT_TRUE(Eventually([&] { return server.WorkerPid() != 0 && server.WorkerPid() != stopped; }));
  EXPECT_NE(::kill(stopped, 0), 0) << "the stopped process is still there";
  const uint64_t steps = StepsStored(server, experiment);
  EXPECT_TRUE(Eventually([&] { return StepsStored(server, experiment) > steps; }));
  EXPECT_THAT(ReadFile(server.home() + "/log/ablated.log"),
              HasSubstr("worker cpu-train hangs: it sent nothing for 2s; killing its process " +
                        std::to_string(stopped)));
  const std::string cell = server.Json({"runs", experiment, "--json"})["rows"][0]["cell"];
  EXPECT_THAT(server.Ablate({"logs", experiment + "/" + cell}).out,
              HasSubstr("the worker was silent"));
}

TEST(KillTest, FailsARunWhoseWorkerKeepsCrashing) {
  PersonalServer server;
  server.Up({"--lanes", "1"});
  const std::string experiment = SubmitEndlessRun(server, "crash");
  const auto state = [&] {
    return std::string(server.Json({"runs", experiment, "--json"})["rows"][0]["state"]);
  };
  for (int crash = 0; crash < 3; ++crash) {
    ASSERT_TRUE(Eventually([&] { return state() == "RUNNING" && server.WorkerPid() != 0; }));
    ::kill(server.WorkerPid(), SIGSEGV);
    ASSERT_TRUE(Eventually([&] { return state() != "RUNNING"; }));
  }
  ASSERT_TRUE(Eventually([&] { return state() == "FAILED"; }));
  EXPECT_EQ(server.Ablate({"wait", experiment}).exit_code, 1);
  const std::string cell = server.Json({"runs", experiment, "--json"})["rows"][0]["cell"];
  EXPECT_THAT(server.Ablate({"logs", experiment + "/" + cell}).out, HasSubstr("SIGSEGV"));
}

}  // namespace
}  // namespace ablate::e2e
