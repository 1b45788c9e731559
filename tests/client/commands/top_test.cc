// Tests `top`.
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::HasSubstr;

class TopTest : public ClientTest {
 protected:
  TopTest() {
    answers_.workers = [](const v1::ListWorkersRequest&, v1::ListWorkersResponse* response) {
      v1::Worker* worker = response->add_workers();
      worker->set_name("workers/cpu-train");
      worker->set_role(v1::WorkerRole::train);
      worker->set_state(v1::WorkerState::BUSY);
      worker->set_lanes(4);
      worker->set_busy_lanes(3);  // one by a run of another user
      for (const char* run : {"runs/a", "runs/b", "runs/c"}) worker->add_runs(run);
      for (const char* run : {"runs/a", "runs/b"}) {
        v1::TrainingRun* training = worker->add_training();
        training->set_run(run);
        training->set_steps_per_second(2000);
        for (const float loss : {3.f, 2.5f}) training->add_losses(loss);
      }
      v1::Worker* analyst = response->add_workers();
      analyst->set_name("workers/cpu-analyze");
      analyst->set_role(v1::WorkerRole::analysis);
      analyst->set_state(v1::WorkerState::IDLE);
      analyst->set_lanes(2);
      response->set_queued_analyses(7);
      return absl::OkStatus();
    };
    answers_.runs = [this](const v1::ListRunsRequest& request, v1::ListRunsResponse* response) {
      asked_.push_back(request.filter());
      for (const char* run : {"a", "b"}) {
        v1::RunRow* row = response->add_rows();
        row->set_experiment("experiments/small-1a2b");
        row->set_cell(std::string("cell-") + run);
        row->set_run(std::string("runs/") + run);
        row->set_step(10);
        row->set_steps(100);
      }
      return absl::OkStatus();
    };
    answers_.list = [](const v1::ListExperimentsRequest&, v1::ListExperimentsResponse* response) {
      v1::Experiment* ended = response->add_experiments();
      ended->set_name("experiments/over-3c4d");
      ended->set_state(v1::ExperimentState::ENDED);
      return absl::OkStatus();
    };
    // It is older than those of the list.
    answers_.get = [](const v1::GetExperimentRequest& request, v1::Experiment* experiment) {
      experiment->set_name(request.name());
      experiment->set_state(v1::ExperimentState::ACTIVE);
      experiment->mutable_counts()->set_running(2);
      experiment->mutable_counts()->set_queued(5);
      experiment->mutable_counts()->set_done(5);
      return absl::OkStatus();
    };
    StartServer();
  }
};

TEST_F(TopTest, DrawsWhatTheServerCounts) {
  const Outcome outcome = Run({"top"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_THAT(asked_, ::testing::ElementsAre("state = running"));
  EXPECT_EQ(outcome.out,
            R"(3 of 4 lanes training, 5 runs queued, 1 experiment active, 7 analyses queued

worker       state  lanes  device
cpu-train    BUSY     3/4
cpu-analyze  IDLE

experiment  ended  training  queued
small-1a2b   5/12         2       5

training             step  steps/s   loss
small-1a2b/cell-a  10/100    2,000  2.500  █▁
small-1a2b/cell-b  10/100    2,000  2.500  █▁
)");
}

TEST_F(TopTest, ShowsTheAnalysesThatExperimentsWaitFor) {
  answers_.get = [](const v1::GetExperimentRequest& request, v1::Experiment* experiment) {
    experiment->set_name(request.name());
    experiment->mutable_analyses()->set_queued(4);
    experiment->mutable_analyses()->set_running(1);
    return absl::OkStatus();
  };
  const std::string out = Run({"top"}).out;
  EXPECT_THAT(out,
              HasSubstr("analyses left\nsmall-1a2b    0/0         0       0              5\n"));
}

TEST_F(TopTest, PrintsTheMessagesAsJson) {
  const auto json = nlohmann::json::parse(Run({"top", "--json"}).out);
  ASSERT_EQ(json.size(), 3u);
  EXPECT_EQ(json[0]["workers"][0]["name"], "workers/cpu-train");
  EXPECT_EQ(json[1]["experiments"][0]["name"], "experiments/small-1a2b");
  EXPECT_EQ(json[2]["rows"][1]["cell"], "cell-b");
}

TEST_F(TopTest, ReportsErrors) {
  answers_.workers = nullptr;
  EXPECT_EQ(Run({"top"}).code, kFailure);
}

TEST_F(TopTest, GivesTheTerminalBackWhenAnErrorDoesNotPass) {
  console_.out_is_terminal = true;
  const auto once = answers_.workers;
  answers_.workers = [this, once](const v1::ListWorkersRequest& request,
                                  v1::ListWorkersResponse* response) {
    if (slept_ > absl::Seconds(3)) return absl::PermissionDeniedError("the token was revoked");
    if (slept_ > absl::Seconds(1)) return absl::UnavailableError("going down");
    return once(request, response);
  };
  const Outcome outcome = Run({"top"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err, "error: the token was revoked\n");
  EXPECT_THAT(outcome.out, HasSubstr("connection lost"));
  EXPECT_THAT(outcome.out, ::testing::EndsWith("\x1b[?1049l"));
}

}  // namespace
}  // namespace ablate::client
