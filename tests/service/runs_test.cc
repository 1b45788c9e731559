// Tests runs: one, a grid's rows, a history.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

class RunsTest : public ServiceTest {
 protected:
  std::vector<std::string> History(const std::string& run) {
    v1::ListRunEventsRequest request;
    request.set_run(run);
    const auto response = AnswerOf(*runs_, &v1::Runs::Stub::ListRunEvents, request);
    std::vector<std::string> kinds;
    for (const v1::RunEvent& event : response.events()) kinds.push_back(event.kind());
    return kinds;
  }
};

TEST_F(RunsTest, TellsWhatARunIsAndDid) {
  const auto worker = MakeWorker();
  const v1::CreateExperimentResponse created = Create(SmallSpec());
  TrainAll(worker.get(), 2);
  const v1::Run run = GetRun(created.cells(0).run());
  EXPECT_EQ(run.name(), created.cells(0).run());
  EXPECT_EQ(run.state(), v1::RunState::DONE);
  EXPECT_EQ(run.step(), 10u);
  EXPECT_EQ(run.steps(), 10u);
  EXPECT_EQ(run.parameters(), created.parameters(0).parameters());
  EXPECT_EQ(run.resolved_spec().seed(), 0u);
  EXPECT_TRUE(run.resolved_spec().spec().model().has_bias());  // a default, written out
  EXPECT_EQ(run.provenance().worker(), "workers/cpu-train");
  EXPECT_EQ(run.provenance().trainer(), "native");
  EXPECT_EQ(run.provenance().device(), "an abacus, 2 lanes");
  EXPECT_EQ(run.provenance().build(), "test");
  EXPECT_EQ(run.provenance().device_time().nanos(), 1'000'000);
  EXPECT_EQ(run.provenance().contended_time().nanos(), 50'000);
  EXPECT_EQ(run.provenance().tokens(), 9u);
  EXPECT_TRUE(run.has_create_time() && run.has_start_time() && run.has_end_time());
  ASSERT_EQ(run.summaries_size(), 1);
  const v1::Summary& loss = run.summaries(0);
  EXPECT_EQ(loss.key(), "train/loss");
  EXPECT_EQ(loss.first(), 9);
  EXPECT_EQ(loss.last(), .1);
  EXPECT_EQ(loss.min(), .1);
  EXPECT_EQ(loss.max(), 9);
  EXPECT_EQ(loss.count(), 10u);
  EXPECT_EQ(loss.nonfinite(), 0u);
  EXPECT_FALSE(loss.has_first_nonfinite_step());
}

TEST_F(RunsTest, IsFoundByIdAndPrefix) {
  const std::string name = Create(SmallSpec()).cells(0).run();
  const std::string id = name.substr(5);
  EXPECT_EQ(GetRun(id).name(), name);
  EXPECT_EQ(GetRun(id.substr(0, 8)).name(), name);
  std::string typo = id;
  typo[9] = typo[9] == 'a' ? 'b' : 'a';
  const grpc::Status status =
      StatusOf(*runs_, &v1::Runs::Stub::GetRun, Named<v1::GetRunRequest>(typo));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(status), "RUN_NOT_FOUND");
  EXPECT_EQ(status.error_message(),
            absl::StrCat("there is no run \"", typo, "\"; did you mean ", id, "?"));
}

TEST_F(RunsTest, LeavesOutWhatIsNotFinite) {
  const auto worker = MakeWorker();
  const std::string name = Create(SmallSpec()).cells(0).run();
  const FakeWorker::Leased run = worker->NextRun();
  worker->Started(run);
  worker->Points(run, {{"train/loss", {0, 1}, {NAN, INFINITY}}, {"mixed", {0, 1}, {2, NAN}}}, 2);
  worker->Finished(run, 2, true);
  worker->Settle();
  const v1::Run got = GetRun("runs/" + run.run.run());
  EXPECT_EQ(got.state(), v1::RunState::DIVERGED);
  ASSERT_EQ(got.summaries_size(), 2);
  EXPECT_EQ(got.summaries(0).key(), "mixed");
  EXPECT_EQ(got.summaries(0).first(), 2);
  EXPECT_FALSE(got.summaries(0).has_last());
  EXPECT_EQ(got.summaries(0).nonfinite(), 1u);
  EXPECT_EQ(got.summaries(0).first_nonfinite_step(), 1u);
  const v1::Summary& loss = got.summaries(1);
  EXPECT_FALSE(loss.has_first() || loss.has_last() || loss.has_min() || loss.has_max() ||
               loss.has_mean());
  EXPECT_EQ(loss.count(), 2u);
  EXPECT_EQ(loss.nonfinite(), 2u);
}

TEST_F(RunsTest, SaysWhyARunFailed) {
  const auto worker = MakeWorker();
  const std::string experiment = Create(SmallSpec()).experiment().name();
  std::string failed;
  for (int attempt = 0; attempt < 6; ++attempt) {
    const FakeWorker::Leased run = worker->NextRun();
    worker->Started(run);
    worker->Failed(run, absl::StrCat("no \"luck\"\n in ", run.run.run()));
    worker->Settle();
    failed = run.run.run();
  }
  const v1::Run run = GetRun(failed);
  EXPECT_EQ(run.state(), v1::RunState::FAILED);
  EXPECT_EQ(run.attempts(), 3u);
  EXPECT_EQ(run.failure(), "no \"luck\"\n in " + failed);
  EXPECT_EQ(Get(experiment).counts().failed(), 2u);
  const std::vector<std::string> history = History(failed);
  EXPECT_EQ(history.front(), "queued");
  EXPECT_EQ(history.back(), "failed");
}

TEST_F(RunsTest, ListsAGridInItsOrderPageByPage) {
  const std::string name = Create(SmallSpec(5)).experiment().name();
  const auto worker = MakeWorker();
  TrainAll(worker.get(), 10);
  std::vector<v1::RunRow> rows;
  std::string token;
  do {
    v1::ListRunsRequest request;
    request.set_experiment(name);
    request.set_page_size(4);
    request.set_page_token(token);
    const auto response = AnswerOf(*runs_, &v1::Runs::Stub::ListRuns, request);
    EXPECT_LE(response.rows_size(), 4);
    rows.insert(rows.end(), response.rows().begin(), response.rows().end());
    token = response.next_page_token();
  } while (!token.empty());
  ASSERT_EQ(rows.size(), 10u);
  for (uint32_t i = 0; i < 10; ++i) {
    EXPECT_EQ(rows[i].cell(), absl::StrCat(i < 5 ? "pre" : "post", "-s", i % 5));
    EXPECT_EQ(rows[i].labels().at("placement"), i < 5 ? "pre" : "post");
    EXPECT_EQ(rows[i].seed(), i % 5);
    EXPECT_EQ(rows[i].state(), v1::RunState::DONE);
    EXPECT_EQ(rows[i].step(), 10u);
    ASSERT_EQ(rows[i].summaries_size(), 1);
    EXPECT_EQ(rows[i].summaries(0).last(), .1);
  }
}

TEST_F(RunsTest, TellsARunsHistoryOldestFirst) {
  const auto worker = MakeWorker();
  const std::string run = Create(SmallSpec()).cells(0).run();
  TrainAll(worker.get(), 2);
  EXPECT_THAT(History(run), testing::ElementsAre("queued", "granted", "started", "done"));
}

}  // namespace
}  // namespace ablate::service
