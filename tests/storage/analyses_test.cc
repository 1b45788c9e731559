// Tests analyses: created once, queued again after a failure, their states, removal with their
// runs.
#include <cmath>
#include <filesystem>
#include <tuple>

#include "base/sha256.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

NewAnalysis Ask(const std::string& id, std::vector<AnalysisSubject> subjects) {
  return {id, "signature", "request of " + id, std::move(subjects), {}};
}

std::vector<std::string> Ids(const std::vector<AnalysisRecord>& records) {
  std::vector<std::string> ids;
  for (const AnalysisRecord& record : records) ids.push_back(record.id);
  return ids;
}

AnalysisProgress At(double progress, Micros device_time = 0) {
  AnalysisProgress at;
  at.progress = progress;
  at.device_time = device_time;
  return at;
}

AnalysisEnd Done(const std::string& artifact = "") {
  AnalysisEnd end;
  end.result = "r";
  end.artifact = artifact;
  return end;
}

AnalysisEnd Failure(const std::string& why) {
  AnalysisEnd end;
  end.failure = why;
  return end;
}

class AnalysesTest : public StoreTest {
 protected:
  // Trains runs to their end, with checkpoints of steps 50 and 100. Returns the experiment.
  std::string TrainRuns(const std::vector<std::string>& runs) {
    const std::string experiment = Submit(runs).id;
    Lease lease(&store(), "lease of " + experiment, runs);
    for (const std::string& run : runs) {
      for (const uint32_t step : {50, 100}) lease.Send(run, Checkpoint(step));
      EXPECT_EQ(lease.Send(run, FinishedEvent{false, 100}), Applied::kApplied);
    }
    return experiment;
  }
  CreatedAnalysis Make(const NewAnalysis& analysis) {
    return Value(store().CreateAnalysis(analysis, kMostOpen));
  }
  // Makes one of run "a" at its end, which is trained for it.
  void MakeOne(const std::string& id = "x") {
    if (!store().GetRun("a").ok()) TrainRuns({"a"});
    Make(Ask(id, {{"a", 100}}));
  }
  AnalysisRecord Get(const std::string& id) { return Value(store().GetAnalysis(id)); }
  void Begin(const std::string& id) { EXPECT_TRUE(store().BeginAnalysis(id).ok()); }
  void Save(const std::string& id, const AnalysisProgress& progress) {
    EXPECT_TRUE(store().SaveAnalysis(id, progress).ok());
  }
  void End(const std::string& id, const AnalysisEnd& end) {
    EXPECT_TRUE(store().EndAnalysis(id, end).ok());
  }
  void Fail(const std::string& id) { End(id, Failure("out of memory")); }
  void Cancel(const std::string& id) { EXPECT_TRUE(store().CancelAnalysis(id).ok()); }
  // Returns progress with a published state of these bytes.
  AnalysisProgress SavedIn(const std::string& bytes) {
    AnalysisProgress saved = At(.5, 10);
    saved.state_blob = Publish(bytes);
    saved.state_bytes = bytes.size();
    return saved;
  }
  void Delete(const std::string& experiment) {
    ASSERT_TRUE(store().DeleteExperiment(experiment).ok());
    ASSERT_TRUE(store().Maintain().ok());
  }
  bool Exists(const std::string& bytes) { return BlobExists(Sha256Hex(bytes)); }
  void ExpectGone(const std::string& bytes, bool trashed) {
    EXPECT_FALSE(Exists(bytes)) << bytes;
    EXPECT_EQ(IsInTrash(Sha256Hex(bytes)), trashed) << bytes;
  }
};
INSTANTIATE_TEST_SUITE_P(, AnalysesTest, ::testing::Values(Where::kFile, Where::kMemory),
                         WhereName);

auto Fields(const AnalysisRecord& r) {
  std::vector<std::pair<std::string, uint32_t>> subjects;
  for (const AnalysisSubject& subject : r.subjects)
    subjects.emplace_back(subject.run, subject.step);
  return std::make_tuple(r.id, r.request, subjects, r.state, r.progress, r.state_blob,
                         r.state_on_gpu, r.result, r.artifact, r.artifact_bytes, r.failure,
                         r.device_time, r.create_time, r.start_time, r.end_time);
}

TEST_P(AnalysesTest, KeepsWhatIsAsked) {
  TrainRuns({"b", "a"});
  const NewAnalysis asked = {
      "x", "signature", std::string("a\0b", 3), {{"b", 100}, {"a", 50}, {"b", 100}}, {}};
  const CreatedAnalysis made = Make(asked);
  EXPECT_FALSE(made.reused);
  const AnalysisRecord record = Get("x");
  EXPECT_EQ(Fields(record), Fields(made.record));
  EXPECT_EQ(record.id, "x");
  EXPECT_EQ(record.request, asked.request);
  EXPECT_EQ(record.subjects, asked.subjects);
  EXPECT_EQ(record.state, AnalysisState::kQueued);
  EXPECT_EQ(record.progress, 0);
  EXPECT_EQ(record.state_blob, "");
  EXPECT_EQ(record.result, "");
  EXPECT_EQ(record.artifact, "");
  EXPECT_EQ(record.failure, "");
  EXPECT_EQ(record.device_time, 0);
  EXPECT_EQ(record.create_time, now());
  EXPECT_EQ(record.start_time, 0);
  EXPECT_EQ(record.end_time, 0);
  EXPECT_EQ(CodeOf(store().GetAnalysis("y")), absl::StatusCode::kNotFound);
}

// An analysis of norms' response to a vector has no model.
TEST_P(AnalysesTest, NeedsNoSubject) {
  Make(Ask("x", {}));
  EXPECT_THAT(Get("x").subjects, IsEmpty());
  EXPECT_THAT(Value(store().OpenAnalyses()), SizeIs(1));
}

TEST_P(AnalysesTest, SumsUpTheTimesOfAGroup) {
  TrainRuns({"a"});
  const auto make = [&](const std::string& id, const std::string& group, double guess) {
    NewAnalysis asked = Ask(id, {{"a", 100}});
    asked.time_group = group;
    asked.guessed_time = guess;
    Make(asked);
  };
  const auto sums = [&](const std::string& group) {
    const AnalysisTimes times = Value(store().MeasuredAnalysisTimes(group));
    return std::make_tuple(times.analyses, times.device_time, times.guessed_time, times.largest);
  };
  const auto took = [](Micros device_time) {
    AnalysisEnd end = Done();
    end.device_time = device_time;
    return end;
  };
  EXPECT_EQ(sums("hessian"), std::make_tuple(0u, 0., 0., 0.));
  make("x", "hessian", 300);
  Save("x", At(.5, 40));
  EXPECT_EQ(sums("hessian"), std::make_tuple(0u, 0., 0., 0.)) << "it is not done";
  End("x", took(60));
  make("y", "hessian", 200);
  End("y", took(10));
  EXPECT_EQ(sums("hessian"), std::make_tuple(2u, 110., 500., 300.));

  make("failed", "hessian", 200);
  Save("failed", At(.5, 40));
  Fail("failed");
  make("another", "spectrum", 7);
  End("another", took(1));
  make("unknown", "", 0);
  End("unknown", took(1));
  EXPECT_EQ(sums("hessian"), std::make_tuple(2u, 110., 500., 300.));
  EXPECT_EQ(sums("spectrum"), std::make_tuple(1u, 1., 7., 7.));
}

TEST_P(AnalysesTest, CountsThoseOfRunsThatAreDone) {
  TrainRuns({"a", "b"});
  const auto make = [&](const std::string& id, const std::string& signature,
                        std::vector<AnalysisSubject> subjects) {
    NewAnalysis asked = Ask(id, std::move(subjects));
    asked.signature = signature;
    Make(asked);
  };
  make("x", "s", {{"a", 50}});
  make("y", "s", {{"a", 100}});
  make("z", "t", {{"b", 50}, {"a", 100}});
  make("queued", "s", {{"b", 100}});
  for (const char* id : {"x", "y", "z"}) End(id, Done());
  using Counts = std::map<std::string, uint64_t>;
  EXPECT_EQ(Value(store().CountDoneAnalyses({"a", "b"})), (Counts{{"s", 2}, {"t", 1}}));
  EXPECT_EQ(Value(store().CountDoneAnalyses({"a"})), (Counts{{"s", 2}}));
  EXPECT_EQ(Value(store().CountDoneAnalyses({"c"})), Counts());
  std::vector<std::string> many(500, "c");  // more than one read takes
  many.front() = "b";
  many.back() = "a";
  EXPECT_EQ(Value(store().CountDoneAnalyses(many)), (Counts{{"s", 2}, {"t", 1}}));
}

TEST_P(AnalysesTest, FindsIdsByTheirBeginning) {
  TrainRuns({"a"});
  for (const char* id : {"ab2", "b1", "ab1", "a"}) MakeOne(id);
  EXPECT_THAT(Value(store().FindAnalyses(kServer, "ab", 9)), ElementsAre("ab1", "ab2"));
  EXPECT_THAT(Value(store().FindAnalyses(kServer, "", 2)), ElementsAre("a", "ab1"));
  EXPECT_THAT(Value(store().FindAnalyses(kServer, "c", 9)), IsEmpty());
}

TEST_P(AnalysesTest, ReturnsTheOneThatIsThere) {
  MakeOne();
  const auto make_again = [&] {
    const auto before = Fields(Get("x"));
    const uint64_t change = store().change_number();
    Advance(5);
    const CreatedAnalysis again = Make(Ask("x", {{"a", 100}}));
    EXPECT_TRUE(again.reused);
    EXPECT_EQ(Fields(again.record), before);
    EXPECT_EQ(Fields(Get("x")), before);
    EXPECT_EQ(store().change_number(), change);
    return again.record.state;
  };
  EXPECT_EQ(make_again(), AnalysisState::kQueued);
  Begin("x");
  EXPECT_EQ(make_again(), AnalysisState::kRunning);
  End("x", Done(Publish("arrays")));
  EXPECT_EQ(make_again(), AnalysisState::kDone);
}

TEST_P(AnalysesTest, QueuesAgainFromTheBeginningWhatFailedOrWasCancelled) {
  MakeOne();
  const auto fresh = Fields(Get("x"));
  for (const bool failed : {true, false}) {
    Advance(5);
    Begin("x");
    Save("x", SavedIn("state"));
    failed ? Fail("x") : Cancel("x");
    EXPECT_EQ(Get("x").end_time, now());
    const CreatedAnalysis again = Make(Ask("x", {{"a", 100}}));
    EXPECT_FALSE(again.reused);
    EXPECT_EQ(Fields(again.record), fresh);
    EXPECT_EQ(Fields(Get("x")), fresh);
  }
  EXPECT_THAT(Value(store().ListAnalyses(kServer, "", 9)), SizeIs(1));
}

TEST_P(AnalysesTest, NeedsEverySubjectsCheckpoint) {
  TrainRuns({"a"});
  const auto no_run = store().CreateAnalysis(Ask("x", {{"a", 50}, {"b", 50}}), kMostOpen);
  EXPECT_EQ(CodeOf(no_run), absl::StatusCode::kNotFound);
  EXPECT_THAT(no_run.status().message(), HasSubstr("no run 'b'"));
  const auto no_step = store().CreateAnalysis(Ask("x", {{"a", 50}, {"a", 51}}), kMostOpen);
  EXPECT_EQ(CodeOf(no_step), absl::StatusCode::kNotFound);
  EXPECT_THAT(no_step.status().message(), HasSubstr("run 'a' has no checkpoint of step 51"));
  EXPECT_THAT(Value(store().ListAnalyses(kServer, "", 9)), IsEmpty());
}

TEST_P(AnalysesTest, NeedsTheCheckpointToBeQueuedAgain) {
  Submit({"a"});
  Lease first(&store(), "l1", {"a"});
  first.Send("a", Checkpoint(5));
  Make(Ask("x", {{"a", 5}}));
  Cancel("x");
  first.Send("a", ReleasedEvent{});
  Lease second(&store(), "l2", {"a"});  // from step 0: the checkpoint is undone
  EXPECT_EQ(CodeOf(store().CreateAnalysis(Ask("x", {{"a", 5}}), kMostOpen)),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Get("x").state, AnalysisState::kCancelled);
}

TEST_P(AnalysesTest, RefusesMoreThanMayBeOpen) {
  TrainRuns({"a"});
  const auto make = [&](const std::string& id) {
    return store().CreateAnalysis(Ask(id, {{"a", 100}}), 2);
  };
  const auto expect_refused = [&](const std::string& id) {
    const auto refused = make(id);
    EXPECT_EQ(CodeOf(refused), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(refused.status().message(), HasSubstr("the analysis queue is full (2)"));
  };
  EXPECT_TRUE(make("cancelled").ok());
  Cancel("cancelled");
  EXPECT_TRUE(make("x").ok());
  EXPECT_TRUE(make("y").ok());
  Begin("x");
  expect_refused("z");
  expect_refused("cancelled");
  EXPECT_EQ(CodeOf(store().GetAnalysis("z")), absl::StatusCode::kNotFound);
  EXPECT_EQ(Get("cancelled").state, AnalysisState::kCancelled);
  EXPECT_TRUE(Value(make("x")).reused);
  // It doesn't mean a full disk, which would pause training.
  EXPECT_EQ(store().stalled(), "");
  End("x", Done());
  EXPECT_TRUE(make("z").ok());
}

TEST_P(AnalysesTest, ListsTheNewestFirstInPages) {
  TrainRuns({"a"});
  for (const char* id : {"y", "z", "x"}) MakeOne(id);
  EXPECT_THAT(Ids(Value(store().ListAnalyses(kServer, "", 2))), ElementsAre("x", "z"));
  EXPECT_THAT(Ids(Value(store().ListAnalyses(kServer, "z", 2))), ElementsAre("y"));
  EXPECT_THAT(Ids(Value(store().ListAnalyses(kServer, "y", 2))), IsEmpty());
  EXPECT_EQ(CodeOf(store().ListAnalyses(kServer, "w", 2)), absl::StatusCode::kNotFound);
  const auto newest = Value(store().ListAnalyses(kServer, "", 1));
  ASSERT_THAT(newest, SizeIs(1));
  EXPECT_EQ(Fields(newest[0]), Fields(Get("x")));
}

TEST_P(AnalysesTest, ListsThoseOfARun) {
  TrainRuns({"a", "b", "c"});
  Make(Ask("of a", {{"a", 50}}));
  Make(Ask("of b", {{"b", 50}}));
  Make(Ask("of both", {{"b", 50}, {"a", 50}}));
  Make(Ask("of steps", {{"a", 50}, {"a", 100}}));
  EXPECT_THAT(Ids(Value(store().RunAnalyses(kServer, "a", "", 2))),
              ElementsAre("of steps", "of both"));
  EXPECT_THAT(Ids(Value(store().RunAnalyses(kServer, "a", "of both", 2))), ElementsAre("of a"));
  EXPECT_THAT(Ids(Value(store().RunAnalyses(kServer, "b", "", 9))), ElementsAre("of both", "of b"));
  EXPECT_THAT(Ids(Value(store().RunAnalyses(kServer, "c", "", 9))), IsEmpty());
  EXPECT_EQ(CodeOf(store().RunAnalyses(kServer, "d", "", 9)), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf(store().RunAnalyses(kServer, "a", "w", 9)), absl::StatusCode::kNotFound);
}

TEST_P(AnalysesTest, ListsThoseOfAnExperiment) {
  TrainRuns({"a", "b"});
  const std::string experiment = Submit({"a", "b", "a"}).id;
  const std::string other = TrainRuns({"c"});
  const std::string third = Submit({"b", "c"}).id;
  Make(Ask("of a", {{"a", 50}}));
  Make(Ask("of c", {{"c", 50}}));
  Make(Ask("of all", {{"b", 50}, {"a", 50}, {"c", 100}}));
  const auto of = [&](const std::string& id) {
    return Ids(Value(store().ExperimentAnalyses(kServer, id, "", 9)));
  };
  EXPECT_THAT(of(experiment), ElementsAre("of all", "of a"));
  EXPECT_THAT(of(other), ElementsAre("of all", "of c"));
  EXPECT_THAT(of(third), ElementsAre("of all", "of c"));
  EXPECT_THAT(Ids(Value(store().ExperimentAnalyses(kServer, experiment, "", 1))),
              ElementsAre("of all"));
  EXPECT_THAT(Ids(Value(store().ExperimentAnalyses(kServer, experiment, "of all", 1))),
              ElementsAre("of a"));
  EXPECT_EQ(CodeOf(store().ExperimentAnalyses(kServer, "e", "", 9)), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf(store().ExperimentAnalyses(kServer, other, "w", 9)),
            absl::StatusCode::kNotFound);
}

TEST_P(AnalysesTest, ListsOpenOnesOldestFirst) {
  TrainRuns({"a"});
  for (const char* id : {"queued", "running", "done", "failed", "cancelled", "yielded"}) {
    MakeOne(id);
  }
  for (const char* id : {"running", "done", "yielded"}) Begin(id);
  AnalysisProgress yielded = At(.5);
  yielded.yielded = true;
  Save("yielded", yielded);
  End("done", Done());
  Fail("failed");
  Cancel("cancelled");
  EXPECT_THAT(Ids(Value(store().OpenAnalyses())), ElementsAre("queued", "running", "yielded"));
}

TEST_P(AnalysesTest, KeepsTheDeviceOfItsState) {
  MakeOne();
  AnalysisProgress of_gpu = SavedIn("state of a GPU");
  of_gpu.state_on_gpu = true;
  Save("x", of_gpu);
  Save("x", At(.75));
  EXPECT_EQ(Get("x").state_on_gpu, true);
  Save("x", SavedIn("state of the cores"));
  EXPECT_EQ(Get("x").state_on_gpu, false);
}

TEST_P(AnalysesTest, LosesItsStateAndProgressIfItRestarts) {
  MakeOne();
  Begin("x");
  AnalysisProgress saved = SavedIn("state");
  saved.state_on_gpu = true;
  Save("x", saved);
  AnalysisProgress restarted = At(0, 5);
  restarted.restarted = restarted.yielded = true;
  Save("x", restarted);
  const AnalysisRecord record = Get("x");
  EXPECT_EQ(record.state, AnalysisState::kQueued);
  EXPECT_EQ(record.progress, 0);
  EXPECT_EQ(record.state_blob, "");
  EXPECT_EQ(record.state_on_gpu, std::nullopt);
  EXPECT_EQ(record.device_time, 15);
}

TEST_P(AnalysesTest, GoesThroughItsStates) {
  MakeOne();
  Advance(5);
  const Micros started = now();
  Begin("x");
  EXPECT_EQ(Get("x").state, AnalysisState::kRunning);
  EXPECT_EQ(Get("x").start_time, started);
  Advance(5);
  Begin("x");  // as after a lost answer
  Save("x", At(.25, 100));
  EXPECT_EQ(Get("x").state, AnalysisState::kRunning);
  EXPECT_EQ(Get("x").progress, .25);
  EXPECT_EQ(Get("x").device_time, 100);
  EXPECT_EQ(Get("x").state_blob, "");
  AnalysisProgress yielded = SavedIn("state");
  yielded.progress = 1 / 3.;
  yielded.yielded = true;
  Save("x", yielded);
  EXPECT_EQ(Get("x").state, AnalysisState::kQueued);
  EXPECT_EQ(Get("x").progress, 1 / 3.);
  EXPECT_EQ(Get("x").device_time, 110);
  EXPECT_EQ(Get("x").state_blob, Sha256Hex("state"));
  Begin("x");
  EXPECT_EQ(Get("x").state, AnalysisState::kRunning);
  EXPECT_EQ(Get("x").start_time, started);
  Save("x", At(.5, 1));
  EXPECT_EQ(Get("x").state_blob, Sha256Hex("state"));
  Save("x", SavedIn("next state"));
  EXPECT_EQ(Get("x").state_blob, Sha256Hex("next state"));
  Advance(5);
  AnalysisEnd end = Done(Publish("arrays"));
  end.device_time = 9;
  end.result = std::string("re\0sult", 7);
  end.artifact_bytes = on_file() ? 7'000 : 6;  // on file the size is the blob's
  End("x", end);
  const AnalysisRecord done = Get("x");
  EXPECT_EQ(done.state, AnalysisState::kDone);
  EXPECT_EQ(done.progress, 1);
  EXPECT_EQ(done.state_blob, "");
  EXPECT_EQ(done.result, end.result);
  EXPECT_EQ(done.artifact, Sha256Hex("arrays"));
  EXPECT_EQ(done.artifact_bytes, 6u);
  EXPECT_EQ(done.failure, "");
  EXPECT_EQ(done.device_time, 130);  // 100 + 10 + 1 + 10 + 9
  EXPECT_EQ(done.start_time, started);
  EXPECT_EQ(done.end_time, now());
}

TEST_P(AnalysesTest, EndsWithoutArrays) {
  MakeOne();
  Begin("x");
  End("x", Done());
  EXPECT_EQ(Get("x").state, AnalysisState::kDone);
  EXPECT_EQ(Get("x").artifact, "");
}

TEST_P(AnalysesTest, FailsWithAReason) {
  MakeOne();
  Begin("x");
  Save("x", SavedIn("state"));
  AnalysisEnd end = Failure(std::string(5000, 'w'));
  end.device_time = 7;
  End("x", end);
  const AnalysisRecord failed = Get("x");
  EXPECT_EQ(failed.state, AnalysisState::kFailed);
  EXPECT_EQ(failed.failure, std::string(4000, 'w'));
  EXPECT_EQ(failed.progress, .5);
  EXPECT_EQ(failed.device_time, 17);
  EXPECT_EQ(failed.state_blob, "");
  EXPECT_EQ(failed.result, "");
  EXPECT_EQ(failed.end_time, now());
}

// No worker could begin it.
TEST_P(AnalysesTest, FailsInTheQueue) {
  MakeOne();
  Fail("x");
  EXPECT_EQ(Get("x").state, AnalysisState::kFailed);
  EXPECT_EQ(Get("x").start_time, 0);
}

TEST_P(AnalysesTest, IsCancelledWhereverItIs) {
  for (const std::string id : {"queued", "running"}) {
    MakeOne(id);
    if (id == "running") Begin(id);
    Save(id, SavedIn("state"));
    const AnalysisRecord cancelled = Value(store().CancelAnalysis(id));
    EXPECT_EQ(Fields(cancelled), Fields(Get(id)));
    EXPECT_EQ(cancelled.state, AnalysisState::kCancelled);
    EXPECT_EQ(cancelled.state_blob, "");
    EXPECT_EQ(cancelled.device_time, 10);
    EXPECT_EQ(cancelled.end_time, now());
  }
}

TEST_P(AnalysesTest, ChangesNothingOnceItHasEnded) {
  for (const char* id : {"done", "failed", "cancelled"}) {
    MakeOne(id);
    Begin(id);
  }
  End("done", Done(Publish("arrays")));
  Fail("failed");
  Cancel("cancelled");
  Advance(5);
  for (const char* id : {"done", "failed", "cancelled"}) {
    const auto before = Fields(Get(id));
    const uint64_t change = store().change_number();
    Begin(id);
    Save(id, SavedIn("late state"));
    End(id, Done(Publish("other arrays")));
    Fail(id);
    EXPECT_EQ(Fields(Value(store().CancelAnalysis(id))), before);
    EXPECT_EQ(Fields(Get(id)), before);
    EXPECT_EQ(store().change_number(), change);
  }
}

TEST_P(AnalysesTest, ChangesNothingOfOneThatIsGone) {
  const std::string experiment = TrainRuns({"a"});
  MakeOne();
  Begin("x");
  Delete(experiment);
  const uint64_t change = store().change_number();
  Begin("x");
  Save("x", SavedIn("state"));
  End("x", Done(Publish("arrays")));
  Fail("x");
  EXPECT_EQ(CodeOf(store().CancelAnalysis("x")), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf(store().GetAnalysis("x")), absl::StatusCode::kNotFound);
  EXPECT_EQ(store().change_number(), change);
}

// Watchers wait for it.
TEST_P(AnalysesTest, TakesAChangeNumberWithEveryChange) {
  uint64_t last = 0;
  const auto expect_change = [&](const char* what) {
    EXPECT_GT(store().change_number(), last) << what;
    last = store().change_number();
  };
  const std::string experiment = TrainRuns({"a"});
  last = store().change_number();
  MakeOne();
  expect_change("made");
  Begin("x");
  expect_change("begun");
  Save("x", At(.5));
  expect_change("saved");
  Fail("x");
  expect_change("failed");
  MakeOne();
  expect_change("queued again");
  End("x", Done());
  expect_change("done");
  MakeOne("y");
  expect_change("made");
  Cancel("y");
  expect_change("cancelled");
  Delete(experiment);
  expect_change("gone");
}

TEST_P(AnalysesTest, TakesOnlySharesForProgress) {
  MakeOne();
  for (const auto& [said, taken] :
       std::vector<std::pair<double, double>>{{2, 1}, {-1, 0}, {NAN, 0}, {INFINITY, 1}}) {
    Save("x", At(said));
    EXPECT_EQ(Get("x").progress, taken) << said;
  }
}

TEST_P(AnalysesTest, SurvivesReopening) {
  MakeOne("done");
  Begin("done");
  End("done", Done(Publish("arrays")));
  MakeOne("running");
  Begin("running");
  Save("running", SavedIn("state"));
  const auto done = Fields(Get("done"));
  const auto running = Fields(Get("running"));
  Unpin();
  Reopen();
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_EQ(Fields(Get("done")), done);
  EXPECT_EQ(Fields(Get("running")), running);
  EXPECT_THAT(Ids(Value(store().OpenAnalyses())), ElementsAre("running"));
  if (!on_file()) return;
  EXPECT_TRUE(Exists("arrays"));
  EXPECT_TRUE(Exists("state"));
}

TEST_P(AnalysesTest, GoesWithAnyOfItsRuns) {
  const std::string first = TrainRuns({"a"});
  const std::string second = TrainRuns({"b"});
  Make(Ask("of a", {{"a", 50}}));
  Make(Ask("of b", {{"b", 50}}));
  Make(Ask("of both", {{"b", 50}, {"a", 50}}));
  Delete(first);
  EXPECT_THAT(Ids(Value(store().ListAnalyses(kServer, "", 9))), ElementsAre("of b"));
  EXPECT_THAT(Ids(Value(store().RunAnalyses(kServer, "b", "", 9))), ElementsAre("of b"));
  EXPECT_THAT(Ids(Value(store().ExperimentAnalyses(kServer, second, "", 9))), ElementsAre("of b"));
  EXPECT_THAT(Value(store().FindAnalyses(kServer, "of both", 9)), IsEmpty());
  // A later one inherits nothing from them.
  Make(Ask("later", {{"b", 100}}));
  EXPECT_THAT(Get("later").subjects, ElementsAre(AnalysisSubject{"b", 100}));
  EXPECT_FALSE(Make(Ask("of both", {{"b", 50}})).reused);
}

TEST_P(AnalysesTest, StaysWhileAnExperimentHasItsRun) {
  const std::string first = TrainRuns({"a"});
  MakeOne();
  const std::string second = Submit({"a"}).id;
  Delete(first);
  EXPECT_THAT(Get("x").subjects, ElementsAre(AnalysisSubject{"a", 100}));
  Delete(second);
  EXPECT_EQ(CodeOf(store().GetAnalysis("x")), absl::StatusCode::kNotFound);
}

// More than one request removes.
TEST_P(AnalysesTest, GoesWithItsRunHoweverManyThereAre) {
  const std::string experiment = TrainRuns({"a"});
  for (int i = 0; i < 210; ++i) {
    Make(Ask(absl::StrCat("x", i), {{"a", 50}, {"a", 100}}));
  }
  Delete(experiment);
  EXPECT_THAT(Value(store().FindAnalyses(kServer, "", 9)), IsEmpty());
  EXPECT_THAT(Value(store().FindRuns(kServer, "", 9)), IsEmpty());
}

// --- Its blobs, on file only.

class AnalysisBlobsTest : public AnalysesTest {};
INSTANTIATE_TEST_SUITE_P(, AnalysisBlobsTest, ::testing::Values(Where::kFile), WhereName);

TEST_P(AnalysisBlobsTest, KeepsTheNewestStateAlone) {
  MakeOne();
  Begin("x");
  Save("x", SavedIn("first state"));
  Save("x", SavedIn("second state"));
  Save("x", SavedIn("second state"));  // as when it has done nothing since
  UnpinAndSweep();
  ExpectGone("first state", /*trashed=*/false);
  EXPECT_TRUE(Exists("second state"));
  EXPECT_EQ(Get("x").state_blob, Sha256Hex("second state"));
}

TEST_P(AnalysisBlobsTest, RemovesTheStateOfOneThatRestarts) {
  MakeOne();
  Save("x", SavedIn("state"));
  AnalysisProgress restarted = At(0);
  restarted.restarted = true;
  Save("x", restarted);
  UnpinAndSweep();
  ExpectGone("state", /*trashed=*/false);
}

TEST_P(AnalysisBlobsTest, LetsTheStateGoAtItsEnd) {
  for (const std::string id : {"done", "failed", "cancelled"}) {
    MakeOne(id);
    Begin(id);
    Save(id, SavedIn("state of " + id));
  }
  End("done", Done(Publish("arrays")));
  Fail("failed");
  Cancel("cancelled");
  UnpinAndSweep();
  for (const std::string id : {"done", "failed", "cancelled"}) {
    ExpectGone("state of " + id, /*trashed=*/false);
  }
  EXPECT_TRUE(Exists("arrays"));
}

// The last saved state may be the same blob as its arrays.
TEST_P(AnalysisBlobsTest, KeepsArraysThatWereItsState) {
  MakeOne();
  Save("x", SavedIn("bytes"));
  End("x", Done(Publish("bytes")));
  UnpinAndSweep();
  EXPECT_TRUE(Exists("bytes"));
}

TEST_P(AnalysisBlobsTest, SharesArrays) {
  const std::string first = TrainRuns({"a"});
  TrainRuns({"b"});
  Make(Ask("of a", {{"a", 50}}));
  Make(Ask("of b", {{"b", 50}}));
  for (const char* id : {"of a", "of b"}) End(id, Done(Publish("arrays")));
  Unpin();
  Delete(first);
  EXPECT_TRUE(Exists("arrays"));
}

TEST_P(AnalysisBlobsTest, LetsThemGoWithItsRunAndWhenItIsDeleted) {
  for (const bool with_its_run : {true, false}) {
    const std::string arrays = with_its_run ? "arrays of a run" : "arrays";
    const std::string experiment = TrainRuns({"a"});
    MakeOne("done");
    End("done", Done(Publish(arrays)));
    MakeOne("running");
    Begin("running");
    Save("running", SavedIn("state"));
    UnpinAndSweep();
    EXPECT_TRUE(Exists(arrays));
    EXPECT_TRUE(Exists("state"));
    if (with_its_run) {
      Delete(experiment);
    } else {
      for (const char* id : {"done", "running"}) EXPECT_TRUE(store().DeleteAnalysis(id).ok());
      ASSERT_TRUE(store().Maintain().ok());
    }
    ExpectGone(arrays, /*trashed=*/true);
    ExpectGone("state", /*trashed=*/false);
  }
}

TEST_P(AnalysisBlobsTest, SweepsWhatCameTooLate) {
  MakeOne();
  Cancel("x");
  Save("x", SavedIn("state"));
  End("x", Done(Publish("arrays")));
  UnpinAndSweep();
  EXPECT_FALSE(Exists("state"));
  EXPECT_FALSE(Exists("arrays"));
}

TEST_P(AnalysisBlobsTest, RefusesBlobsThatAreNotPublished) {
  MakeOne();
  Begin("x");
  const auto before = Fields(Get("x"));
  AnalysisProgress progress = At(.5);
  progress.state_blob = Sha256Hex("never published");
  const absl::Status saved = store().SaveAnalysis("x", progress);
  EXPECT_EQ(CodeOf(saved), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(saved.message(), HasSubstr(progress.state_blob));
  EXPECT_EQ(CodeOf(store().EndAnalysis("x", Done("../lock"))),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Fields(Get("x")), before);
}

std::vector<std::string> Labelled(Store& store, const std::string& experiment) {
  std::vector<std::string> found;
  for (const LabelledAnalysis& one : Value(store.LabelledAnalyses(experiment))) {
    found.push_back(one.label + " " + one.subject.run + "@" + std::to_string(one.subject.step) +
                    " " + one.result);
  }
  return found;
}

TEST_P(AnalysesTest, FindsThoseThatAreDoneByTheLabelOfTheirSignature) {
  const std::string experiment = TrainRuns({"a", "b"});
  const auto ask = [&](const std::string& id, const std::string& run, uint32_t step,
                       const std::string& signature) {
    NewAnalysis analysis = Ask(id, {{run, step}});
    analysis.signature = signature;
    return analysis;
  };
  NewAnalysis labelled = ask("one", "b", 100, "spectrum");
  labelled.labels = {{experiment, "ranks"}};
  Make(labelled);
  // It has the same signature, and therefore the same label.
  Make(ask("two", "a", 100, "spectrum"));
  Make(ask("three", "a", 50, "spectrum"));
  Make(ask("other", "a", 100, "hessian"));
  Make(ask("open", "b", 50, "spectrum"));
  NewAnalysis pair = ask("pair", "a", 100, "spectrum");
  pair.subjects.push_back({"b", 100});
  Make(pair);
  NewAnalysis way =
      ask("way", "a", 50, "spectrum");  // of two steps: its numbers are the last one's
  way.subjects.push_back({"a", 100});
  Make(way);
  for (const char* id : {"one", "two", "three", "other", "pair"}) End(id, Done());
  AnalysisEnd of_both = Done();
  of_both.result = "w";
  End("way", of_both);
  EXPECT_THAT(Labelled(store(), experiment),
              ElementsAre("ranks a@50 r", "ranks a@100 r", "ranks a@100 w", "ranks b@100 r"));
  EXPECT_THAT(Value(store().LabelledAnalyses(experiment, "ranks")), SizeIs(4));
  EXPECT_THAT(Value(store().LabelledAnalyses(experiment, "spectrum")), IsEmpty());
  const std::string without = Submit({"a"}).id;
  EXPECT_THAT(Labelled(store(), without), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(store().LabelledAnalyses("gone").status()));
}

TEST_P(AnalysesTest, RefusesALabelThatIsAnothers) {
  const std::string experiment = TrainRuns({"a"});
  NewAnalysis first = Ask("first", {{"a", 100}});
  first.labels = {{experiment, "ranks"}};
  Make(first);
  NewAnalysis second = Ask("second", {{"a", 100}});
  second.signature = "another";
  second.labels = first.labels;
  const absl::Status refused = store().CreateAnalysis(second, kMostOpen).status();
  EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("ranks"));
  EXPECT_TRUE(absl::IsNotFound(store().GetAnalysis("second").status()));
  Make(first);  // the same again
  second.labels[0].label = "others";
  Make(second);
  second.labels[0].experiment = "gone";
  EXPECT_TRUE(absl::IsNotFound(store().CreateAnalysis(second, kMostOpen).status()));
}

TEST_P(AnalysesTest, ForgetsLabelsWithTheirExperiment) {
  const std::string first = TrainRuns({"a"});
  NewAnalysis analysis = Ask("x", {{"a", 100}});
  analysis.labels = {{first, "ranks"}};
  Make(analysis);
  End("x", Done());
  const std::string second = Submit({"a"}).id;
  Delete(first);
  analysis.labels = {{second, "ranks"}};
  EXPECT_TRUE(Make(analysis).reused);
  EXPECT_THAT(Labelled(store(), second), ElementsAre("ranks a@100 r"));
}

TEST_P(AnalysesTest, IsGoneOnceItIsDeletedAndMadeAgain) {
  MakeOne("done");
  End("done", Done());
  MakeOne("open");
  Begin("open");
  for (const std::string id : {"done", "open"}) {
    const uint64_t before = store().change_number();
    EXPECT_TRUE(store().DeleteAnalysis(id).ok());
    EXPECT_GT(store().change_number(), before);
    EXPECT_TRUE(absl::IsNotFound(store().GetAnalysis(id).status()));
    EXPECT_TRUE(absl::IsNotFound(store().DeleteAnalysis(id)));
  }
  MakeOne("done");
  EXPECT_EQ(Get("done").state, AnalysisState::kQueued);
}

TEST_P(AnalysisBlobsTest, MakesAgainWhatLostItsArrays) {
  MakeOne();
  End("x", Done(Publish("arrays")));
  Unpin();
  EXPECT_TRUE(Value(store().IsAnalysisThere("x")));
  EXPECT_TRUE(Make(Ask("x", {{"a", 100}})).reused);
  ASSERT_TRUE(std::filesystem::remove(folder() + "/blobs/" + Sha256Hex("arrays")));
  EXPECT_FALSE(Value(store().IsAnalysisThere("x")));
  EXPECT_FALSE(Value(store().IsAnalysisThere("y")));
  EXPECT_FALSE(Make(Ask("x", {{"a", 100}})).reused);
  const AnalysisRecord again = Get("x");
  EXPECT_EQ(again.state, AnalysisState::kQueued);
  EXPECT_EQ(again.artifact, "");
  EXPECT_EQ(again.artifact_bytes, 0u);
  EXPECT_EQ(again.result, "");
  End("x", Done(Publish("arrays")));
  EXPECT_TRUE(Make(Ask("x", {{"a", 100}})).reused);
}

}  // namespace
}  // namespace ablate::storage
