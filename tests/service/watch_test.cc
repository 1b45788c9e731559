// Tests WatchExperiment: cells, changes, tokens, pace, snapshots, ends.
#include <chrono>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

class WatchTest : public ServiceTest {
 protected:
  struct Watch {
    Context context;
    std::unique_ptr<grpc::ClientReader<v1::ExperimentEvent>> reader;
  };

  std::unique_ptr<Watch> Open(const std::string& name, const std::string& token = "",
                              const std::vector<std::string>& keys = {}) {
    v1::WatchExperimentRequest request;
    request.set_name(name);
    request.set_token(token);
    for (const std::string& key : keys) request.add_keys(key);
    return Open(request);
  }
  std::unique_ptr<Watch> Open(const v1::WatchExperimentRequest& request) {
    auto watch = std::make_unique<Watch>();
    watch->reader = experiments_->WatchExperiment(&watch->context, request);
    return watch;
  }

  std::unique_ptr<Watch> OpenSnapshots(const std::string& name) {
    v1::WatchExperimentRequest request;
    request.set_name(name);
    request.set_snapshots(true);
    return Open(request);
  }

  // Returns the next event that satisfies `wanted`; an empty one at the end of the stream.
  template <class Wanted>
  v1::ExperimentEvent Next(Watch* watch, Wanted wanted) {
    v1::ExperimentEvent event;
    while (watch->reader->Read(&event)) {
      if (wanted(event)) return event;
    }
    ADD_FAILURE() << "the stream ended";
    return {};
  }
  v1::ExperimentEvent Next(Watch* watch) {
    return Next(watch, [](const v1::ExperimentEvent&) { return true; });
  }
  v1::ExperimentEvent NextOf(Watch* watch, const std::string& run, v1::RunState::Value state) {
    return Next(watch, [&](const v1::ExperimentEvent& event) {
      return event.run() == "runs/" + run && event.state() == state;
    });
  }
  // Returns the status of a watch that sends nothing.
  grpc::Status Refusal(const std::string& name, const std::string& token = "") {
    const auto watch = Open(name, token);
    v1::ExperimentEvent event;
    EXPECT_FALSE(watch->reader->Read(&event));
    return watch->reader->Finish();
  }
};

TEST_F(WatchTest, TellsEveryCellThenChangesThenTheEnd) {
  const std::string name = Create(SmallSpec(2)).experiment().name();
  const auto watch = Open(name);
  std::map<std::string, v1::RunState::Value> states;
  for (int i = 0; i < 4; ++i) {
    const v1::ExperimentEvent event = Next(watch.get());
    EXPECT_EQ(event.state(), v1::RunState::QUEUED);
    EXPECT_EQ(event.steps(), 10u);
    EXPECT_EQ(event.counts().queued(), 4u);
    states[event.cell()] = event.state();
  }
  EXPECT_EQ(states.size(), 4u);
  const auto worker = MakeWorker();
  TrainAll(worker.get(), 4);
  v1::ExperimentEvent event;
  while (watch->reader->Read(&event)) {
    EXPECT_GE(event.state(), states[event.cell()]);  // states are in the order of a run's life
    states[event.cell()] = event.state();
  }
  EXPECT_TRUE(watch->reader->Finish().ok());
  for (const auto& [cell, state] : states) EXPECT_EQ(state, v1::RunState::DONE) << cell;
  EXPECT_EQ(event.counts().done(), 4u);
}

TEST_F(WatchTest, TellsARunsFirstValuesAndWantedKeysOnly) {
  const std::string name = Create(SmallSpec()).experiment().name();
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  const auto watch = Open(name, "", {"eval/accuracy"});
  const auto plain = Open(name);
  NextOf(watch.get(), run.run.run(), v1::RunState::QUEUED);
  worker->Started(run);
  NextOf(watch.get(), run.run.run(), v1::RunState::RUNNING);
  worker->Points(run, {{"train/loss", {0, 1}, {3.5, 3.25}}, {"eval/accuracy", {0}, {.125}}}, 2);
  const auto has_values = [](const v1::ExperimentEvent& event) { return !event.last().empty(); };
  const v1::ExperimentEvent chosen = Next(watch.get(), has_values);
  EXPECT_EQ(chosen.step(), 2u);
  ASSERT_EQ(chosen.last().size(), 1u);
  EXPECT_EQ(chosen.last().at("eval/accuracy"), .125);
  const v1::ExperimentEvent event = Next(plain.get(), has_values);
  ASSERT_EQ(event.last().size(), 1u);
  EXPECT_EQ(event.last().at("train/loss"), 3.25);
}

TEST_F(WatchTest, GoesOnFromAToken) {
  const std::string name = Create(SmallSpec()).experiment().name();
  std::string token;
  {
    const auto watch = Open(name);
    Next(watch.get());
    token = Next(watch.get()).token();
  }
  const auto worker = MakeWorker();
  const FakeWorker::Leased first = worker->NextRun();
  const FakeWorker::Leased second = worker->NextRun();
  worker->Started(first);
  worker->Started(second);
  worker->Settle();
  const auto watch = Open(name, token);
  // Nothing about QUEUED, which is known.
  EXPECT_EQ(Next(watch.get()).state(), v1::RunState::RUNNING);
  token = Next(watch.get()).token();
  worker->Points(second, {{"train/loss", {0}, {2}}}, 1);
  worker->Settle();
  const auto later = Open(name, token);
  EXPECT_EQ(Next(later.get()).run(), "runs/" + second.run.run());
}

TEST_F(WatchTest, GoesOnAfterARestart) {
  const std::string name = Create(SmallSpec()).experiment().name();
  std::string token;
  {
    const auto watch = Open(name);
    Next(watch.get());
    token = Next(watch.get()).token();
  }
  Restart();
  const auto watch = Open(name, token);
  const auto worker = MakeWorker();
  worker->Started(worker->NextRun());
  Next(watch.get(),
       [](const v1::ExperimentEvent& event) { return event.state() == v1::RunState::RUNNING; });
}

TEST_F(WatchTest, RefusesTokensOfOtherFilesAndOfTheFuture) {
  const std::string name = Create(SmallSpec()).experiment().name();
  const grpc::Status other = Refusal(name, "0000.1");
  EXPECT_EQ(other.error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(ReasonOf(other), "TOKEN_EXPIRED");
  const std::string future = absl::StrCat(store().generation(), ".", store().change_number() + 1);
  EXPECT_EQ(Refusal(name, future).error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(Refusal(name, "nonsense").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(WatchTest, TellsTheWholeOfAnExperimentThatHasEnded) {
  const auto worker = MakeWorker();
  const std::string name = Create(SmallSpec()).experiment().name();
  TrainAll(worker.get(), 2);
  const auto watch = Open(name);
  v1::ExperimentEvent event;
  int events = 0;
  while (watch->reader->Read(&event)) {
    ++events;
    EXPECT_EQ(event.state(), v1::RunState::DONE);
    EXPECT_EQ(event.last().at("train/loss"), .1);
  }
  EXPECT_EQ(events, 2);
  EXPECT_TRUE(watch->reader->Finish().ok());
}

TEST_F(WatchTest, EndsWhenTheExperimentIsCancelled) {
  const std::string name = Create(SmallSpec()).experiment().name();
  const auto watch = Open(name);
  Next(watch.get());
  Next(watch.get());
  Cancel(name);
  EXPECT_EQ(Next(watch.get()).state(), v1::RunState::CANCELLED);
  EXPECT_EQ(Next(watch.get()).state(), v1::RunState::CANCELLED);
  v1::ExperimentEvent event;
  EXPECT_FALSE(watch->reader->Read(&event));
  EXPECT_TRUE(watch->reader->Finish().ok());
}

TEST_F(WatchTest, EndsWithUnavailableWhenTheServerDoes) {
  const std::string name = Create(SmallSpec()).experiment().name();
  const auto watch = Open(name);
  Next(watch.get());
  Next(watch.get());
  StopServer();
  v1::ExperimentEvent event;
  EXPECT_FALSE(watch->reader->Read(&event));
  EXPECT_EQ(watch->reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(WatchTest, EndsAtItsDeadline) {
  const std::string name = Create(SmallSpec()).experiment().name();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  v1::WatchExperimentRequest request;
  request.set_name(name);
  const auto reader = experiments_->WatchExperiment(&context, request);
  v1::ExperimentEvent event;
  while (reader->Read(&event)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(WatchTest, RefusesTooManyAndTakesNewOnesWhenOldOnesLeave) {
  const std::string name = Create(SmallSpec()).experiment().name();
  std::vector<std::unique_ptr<v1::Experiments::Stub>> stubs;
  std::vector<std::unique_ptr<Watch>> watches;
  for (size_t i = 0; i < lookup::kMaxWatches.total; ++i) {
    // A connection has room for 1,024 calls.
    if (i % 512 == 0) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      stubs.push_back(
          std::exchange(experiments_, v1::Experiments::NewStub(grpc::CreateCustomChannel(
                                          absl::StrCat("unix:", folder(), "/c"),
                                          grpc::InsecureChannelCredentials(), arguments))));
    }
    watches.push_back(Open(name));
    Next(watches.back().get());
  }
  const grpc::Status refused = Refusal(name);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.error_message(),
            "too many watches at once; expected at most 2,048. Retry later");
  for (const auto& watch : watches) watch->context.TryCancel();
  // The server learns of it soon after.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  bool accepted = false;
  while (!accepted && std::chrono::steady_clock::now() < end) {
    const auto watch = Open(name);
    v1::ExperimentEvent event;
    accepted = watch->reader->Read(&event);
    watch->context.TryCancel();
    watch->reader->Finish();
  }
  EXPECT_TRUE(accepted);
}

TEST_F(WatchTest, PacesProgress) {
  constexpr uint32_t kFlushes = 200;
  const std::string name = Create(SmallSpec(1, "small", kFlushes + 1)).experiment().name();
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  const auto watch = Open(name, "", {"train/loss"});
  worker->Started(run);
  worker->Points(run, {{"train/loss", {0}, {1}}}, 1);
  Next(watch.get(), [](const v1::ExperimentEvent& event) { return !event.last().empty(); });
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t i = 1; i <= kFlushes; ++i) {
    worker->Points(run, {{"train/loss", {i}, {1.0 / i}}}, i + 1);
    worker->Settle();
  }
  worker->Finished(run, kFlushes + 1);
  uint32_t messages = 0;
  v1::ExperimentEvent event;
  do {
    ASSERT_TRUE(watch->reader->Read(&event));
    messages += event.run() == "runs/" + run.run.run() ? 1 : 0;
  } while (event.state() != v1::RunState::DONE);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(messages, 3 + 20 * took.count());
  EXPECT_EQ(event.last().at("train/loss"), 1.0 / kFlushes);
}

TEST_F(WatchTest, TellsManyCellsInOneGo) {
  v1::ExperimentSpec spec = SmallSpec(2'000);
  spec.mutable_limits()->set_runs(4'000);
  const std::string name = Create(spec).experiment().name();
  const auto watch = Open(name);
  std::map<std::string, int> cells;
  while (cells.size() < 4'000) ++cells[Next(watch.get()).cell()];
  for (const auto& [cell, count] : cells) ASSERT_EQ(count, 1) << cell;
}

TEST_F(WatchTest, CountsRunsAsRunningOnceALaneHasBegunThem) {
  const std::string name = Create(SmallSpec()).experiment().name();
  const auto watch = OpenSnapshots(name);
  const v1::ExperimentEvent first = Next(watch.get());
  EXPECT_EQ(first.counts().queued(), 2u);
  EXPECT_EQ(first.token(), "");
  EXPECT_EQ(first.cell(), "");
  ASSERT_EQ(first.snapshot().settings_size(), 2);
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  worker->NextRun();
  worker->Started(run);
  worker->Points(run, {{"train/loss", {0, 1}, {3.5, 3.25}}}, 2);
  const v1::ExperimentEvent event = Next(watch.get(), [](const v1::ExperimentEvent& next) {
    return next.snapshot().lanes_size() > 0 && next.snapshot().lanes(0).step() == 2;
  });
  EXPECT_EQ(event.counts().running(), 1u);
  EXPECT_EQ(event.counts().queued(), 1u) << "it waits in the worker";
  ASSERT_EQ(event.snapshot().lanes_size(), 1);
  const v1::TrainingRun& training = event.snapshot().lanes(0).training();
  EXPECT_EQ(training.run(), "runs/" + run.run.run());
  ASSERT_EQ(training.losses_size(), 1);
  EXPECT_EQ(training.losses(0), 3.25f);
  EXPECT_EQ(event.snapshot().newest().key(), "train/loss");
}

TEST_F(WatchTest, SendsSnapshotsAtAPaceAndTheLastOneBeforeTheEnd) {
  constexpr uint32_t kFlushes = 100;
  const std::string name = Create(SmallSpec(1, "small", kFlushes)).experiment().name();
  const auto worker = MakeWorker();
  const auto begin = std::chrono::steady_clock::now();
  const auto watch = OpenSnapshots(name), other = OpenSnapshots(name);
  for (int i = 0; i < 2; ++i) {
    const FakeWorker::Leased run = worker->NextRun();
    worker->Started(run);
    for (uint32_t step = 0; step < kFlushes; ++step) {
      worker->Points(run, {{"eval/loss", {step}, {1.0 / (step + 1)}}}, step + 1);
      worker->Settle();
    }
    worker->Finished(run, kFlushes);
    worker->Settle();
  }
  for (Watch* reader : {watch.get(), other.get()}) {
    v1::ExperimentEvent event;
    int messages = 0;
    while (reader->reader->Read(&event)) ++messages;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_TRUE(reader->reader->Finish().ok());
    EXPECT_LE(messages, 3 + 4 * took.count());
    EXPECT_EQ(event.counts().done(), 2u);
    EXPECT_EQ(event.snapshot().fraction(), 1);
    EXPECT_EQ(event.snapshot().lanes_size(), 0);
    ASSERT_EQ(event.snapshot().settings_size(), 2);
    EXPECT_EQ(event.snapshot().settings(0).mean(), 1.0 / kFlushes);
  }
}

TEST_F(WatchTest, SendsTheLastSnapshotOfACancelledExperiment) {
  const std::string name = Create(SmallSpec()).experiment().name();
  const auto watch = OpenSnapshots(name), other = OpenSnapshots(name);
  Next(watch.get());
  Next(other.get());
  Cancel(name);
  for (Watch* reader : {watch.get(), other.get()}) {
    EXPECT_EQ(Next(reader).counts().cancelled(), 2u);
    v1::ExperimentEvent event;
    EXPECT_FALSE(reader->reader->Read(&event));
    EXPECT_TRUE(reader->reader->Finish().ok());
  }
}

TEST_F(WatchTest, EndsWithoutANewSnapshotIfOnlyTheExperimentIsCancelled) {
  const std::string name = Create(SmallSpec()).experiment().name();
  const auto watch = OpenSnapshots(name), other = OpenSnapshots(name);
  Next(watch.get());
  Next(other.get());
  Create(SmallSpec(1, "another"));  // needs the same runs
  Cancel(name);
  for (Watch* reader : {watch.get(), other.get()}) {
    v1::ExperimentEvent event;
    EXPECT_FALSE(reader->reader->Read(&event));
    EXPECT_TRUE(reader->reader->Finish().ok());
  }
}

}  // namespace
}  // namespace ablate::service
