// Tests which runs are granted to which workers.
#include <gmock/gmock.h>

#include <set>

#include "tests/schedule/scheduler_fixture.h"

namespace ablate::schedule {
namespace {

namespace wire = worker::v1;
using storage::RunState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SchedulerDispatchTest : public SchedulerTest {
 protected:
  // Returns the names of the runs granted to a worker, in order.
  static std::vector<std::string> RunsOf(const Peer& peer) {
    std::vector<std::string> runs;
    for (const wire::Grant& grant : peer.grants()) runs.push_back(grant.run().run());
    return runs;
  }
};

TEST_F(SchedulerDispatchTest, GrantsEachLaneOneRunAndOneAhead) {
  Queue("a", 6);
  const Peer peer = Attach("w", "w#1", 2);
  ASSERT_THAT(peer.grants(), SizeIs(4));
  std::set<std::string> leases;
  for (const wire::Grant& grant : peer.grants()) {
    EXPECT_TRUE(grant.has_run());
    EXPECT_GT(grant.credit_bytes(), 0u);
    leases.insert(grant.lease());
  }
  EXPECT_THAT(leases, SizeIs(4));
  EXPECT_EQ(peer.grants()[0].run().run(), "a-0");
  EXPECT_THAT(scheduler_->Workers().at(0).runs, SizeIs(4));
}

TEST_F(SchedulerDispatchTest, MakesAllLeasesOfADispatchInOneTransaction) {
  Queue("a", 8);
  const Peer peer = Attach("w", "w#1", 4);
  EXPECT_THAT(peer.grants(), SizeIs(8));
  EXPECT_EQ(store_.grants(), 1);
}

TEST_F(SchedulerDispatchTest, LooksOnceAtAQueueThatFillsItsWorkers) {
  Queue("a", 8);
  EXPECT_THAT(Attach("w", "w#1", 2).grants(), SizeIs(4));
  EXPECT_EQ(store_.looks(), 1);
}

TEST_F(SchedulerDispatchTest, LetsUsersTakeTurns) {
  owner_ = "ann";
  Queue("a", 6);
  owner_ = "bob";
  Queue("b", 2);
  EXPECT_THAT(RunsOf(Attach("w", "w#1", 2)), ElementsAre("a-0", "b-0", "a-1", "b-1"));
}

TEST_F(SchedulerDispatchTest, GrantsAUserNoMoreThanTheirQuotaOfLanes) {
  SchedulerOptions options;
  options.max_lanes = [](const std::string& user) -> std::optional<int64_t> {
    return user == "ann" ? std::optional<int64_t>(1) : std::nullopt;
  };
  Restart(options);
  owner_ = "ann";
  Queue("a", 3);
  const Peer peer = Attach("w", "w#1", 2);
  ASSERT_THAT(RunsOf(peer), ElementsAre("a-0"));
  owner_ = "bob";
  Queue("b", 2);
  scheduler_->Dispatch();
  EXPECT_THAT(RunsOf(peer), ElementsAre("a-0", "b-0", "b-1"));
  SendStarted(peer, peer.grants()[0], 1);
  SendFinished(peer, peer.grants()[0], 2, 10);
  EXPECT_THAT(RunsOf(peer), ElementsAre("a-0", "b-0", "b-1", "a-1")) << "one after the other";
}

TEST_F(SchedulerDispatchTest, GrantsNewlyQueuedRunsWhenTold) {
  const Peer peer = Attach();
  Queue("a", 1);
  EXPECT_THAT(peer.grants(), IsEmpty());
  scheduler_->Dispatch();
  EXPECT_THAT(peer.grants(), SizeIs(1));
}

TEST_F(SchedulerDispatchTest, SpreadsRunsByRunsPerLane) {
  const Peer small = Attach("small", "s#1", 1);
  const Peer large = Attach("large", "l#1", 3);
  Queue("a", 4);
  scheduler_->Dispatch();
  EXPECT_THAT(small.grants(), SizeIs(1));
  EXPECT_THAT(large.grants(), SizeIs(3));
}

TEST_F(SchedulerDispatchTest, GrantsARunOfSeveralLanesToAWorkerThatHasThem) {
  const Peer small = Attach("small", "s#1", 1);
  const Peer large = Attach("large", "l#1", 4);
  lanes_of_runs_ = 3;
  Queue("wide", 9);
  scheduler_->Dispatch();
  EXPECT_THAT(small.grants(), IsEmpty());
  EXPECT_THAT(large.grants(), SizeIs(3)) << "as many as begin within twice its lanes";
  lanes_of_runs_ = 1;
  Queue("narrow", 1);
  scheduler_->Dispatch();
  EXPECT_THAT(small.grants(), SizeIs(1)) << "it doesn't wait for the wide ones";
}

TEST_F(SchedulerDispatchTest, GrantsARunOfMoreLanesThanAnyWorkerHasToTheLargest) {
  const Peer small = Attach("small", "s#1", 1);
  const Peer large = Attach("large", "l#1", 2);
  lanes_of_runs_ = 8;
  Queue("wide", 1);
  scheduler_->Dispatch();
  EXPECT_THAT(small.grants(), IsEmpty());
  EXPECT_THAT(large.grants(), SizeIs(1));
}

TEST_F(SchedulerDispatchTest, GrantsOnlyRunsOfTheWorkersDeviceKind) {
  Queue("a", 1);
  wire::FromWorker hello = Hello("gpu", "g#1");
  hello.mutable_hello()->set_device_kind("cuda");
  EXPECT_THAT(Attach(hello).grants(), IsEmpty());
}

wire::FromWorker Heartbeat(uint32_t lanes) {
  wire::FromWorker message;
  message.mutable_heartbeat()->set_lanes(lanes);
  return message;
}

TEST_F(SchedulerDispatchTest, GrantsByTheLanesOfTheLastHeartbeat) {
  device_of_runs_ = "cuda";
  Queue("a", 100);
  wire::FromWorker hello = Hello("gpu", "g#1", 16);
  hello.mutable_hello()->set_device_kind("cuda");
  Peer gpu = Attach(hello);
  const auto lanes = [this] { return scheduler_->Workers().at(0).lanes; };
  EXPECT_THAT(gpu.grants(), SizeIs(2)) << "until it says how many lanes it has";
  EXPECT_EQ(lanes(), 1u);
  Send(gpu, Heartbeat(2));
  EXPECT_THAT(gpu.grants(), SizeIs(4));
  EXPECT_EQ(lanes(), 2u);
  Send(gpu, Heartbeat(1));
  EXPECT_EQ(lanes(), 1u);
  for (int run = 0; run < 2; ++run) SendFinished(gpu, gpu.grants().at(run), 1, 10);
  EXPECT_THAT(gpu.grants(), SizeIs(4)) << "one lane has a run, and the next one";
  Send(gpu, Heartbeat(100));
  EXPECT_EQ(lanes(), 16u) << "the most";
  gpu = Attach(hello);
  EXPECT_EQ(lanes(), 16u) << "the same process";
  Send(gpu, Heartbeat(0));
  EXPECT_EQ(lanes(), 16u) << "an older worker";
}

TEST_F(SchedulerDispatchTest, GrantsNothingToWorkersThatComputeOtherNumbers) {
  SchedulerOptions options;
  options.numerics_version = engine::kNumericsVersion + 1;
  Restart(options);
  Queue("a", 1);
  EXPECT_THAT(Attach("old", "o#1").grants(), IsEmpty());
  wire::FromWorker hello = Hello("new", "n#1");
  hello.mutable_hello()->set_numerics_version(engine::kNumericsVersion + 1);
  EXPECT_THAT(Attach(hello).grants(), SizeIs(1));
}

TEST_F(SchedulerDispatchTest, GrantsOnlyToWorkersThatComputeWhatFingerprintsPromise) {
  Queue("a", 1);
  wire::FromWorker hello = Hello("old", "o#1");
  hello.mutable_hello()->set_numerics_version(engine::kNumericsVersion + 1);
  EXPECT_THAT(Attach(hello).grants(), IsEmpty());
  hello = Hello("other", "p#1");
  hello.mutable_hello()->mutable_trainers(0)->set_name("another");
  EXPECT_THAT(Attach(hello).grants(), IsEmpty());
  EXPECT_THAT(Attach("new", "n#1").grants(), SizeIs(1));
}

TEST_F(SchedulerDispatchTest, GrantsNothingToWorkersThatKnowLessThanSpecsSay) {
  Queue("a", 1);
  wire::FromWorker hello = Hello("old", "o#1");
  hello.mutable_hello()->set_config_version(engine::kConfigVersion - 1);
  EXPECT_THAT(Attach(hello).grants(), IsEmpty());
  hello = Hello("later", "l#1");
  hello.mutable_hello()->set_config_version(engine::kConfigVersion + 1);
  EXPECT_THAT(Attach(hello).grants(), SizeIs(1));
}

// Returns a worker that has both trainers.
wire::FromWorker Trains(wire::FromWorker hello, const std::string& native_environment) {
  hello.mutable_hello()->mutable_trainers(0)->set_environment("torch 1");
  wire::TrainerInfo* native = hello.mutable_hello()->add_trainers();
  native->set_name("native");
  native->set_environment(native_environment);
  return hello;
}

TEST_F(SchedulerDispatchTest, GrantsARunOnlyToAWorkerThatHasItsTrainer) {
  Queue("n", 2, 10, 0, "native");
  Queue("t", 2);
  const Peer old = Attach("old", "o#1");  // has torch alone
  ASSERT_THAT(old.grants(), SizeIs(2)) << "runs of torch do not wait for those before them";
  EXPECT_EQ(old.grants()[0].run().run(), "t-0");
  EXPECT_EQ(Run("n-0").state, RunState::kQueued);
  const Peer both = Attach(Trains(Hello("both", "b#1"), "native, fused"));
  ASSERT_THAT(both.grants(), SizeIs(2));
  EXPECT_EQ(both.grants()[0].run().run(), "n-0");
  EXPECT_EQ(Run("n-0").trainer, "native");
  EXPECT_EQ(Run("n-0").environment, "native, fused");
  EXPECT_EQ(Run("t-0").trainer, "torch");
  EXPECT_EQ(Run("t-0").environment, "");
}

TEST_F(SchedulerDispatchTest, GrantsAProgramOnlyToAWorkerThatHasItsEnvironment) {
  Queue("jax", 1, 0, 0, "program:jax");
  Queue("default", 1, 0, 0, "program");
  const auto with = [](wire::FromWorker hello, const std::vector<std::string>& trainers) {
    for (const std::string& name : trainers) {
      wire::TrainerInfo* info = hello.mutable_hello()->add_trainers();
      info->set_name(name);
      info->set_environment("python of " + name);
    }
    return hello;
  };
  wire::FromWorker refusing = Hello("none", "n#1", 2);
  refusing.mutable_hello()->set_no_programs("bwrap isn't installed");
  EXPECT_THAT(Attach(refusing).grants(), IsEmpty());
  EXPECT_EQ(scheduler_->Workers().at(0).no_programs, "bwrap isn't installed");
  const Peer plain = Attach(with(Hello("plain", "p#1", 2), {"program"}));
  ASSERT_THAT(plain.grants(), SizeIs(1));
  EXPECT_EQ(plain.grants()[0].run().run(), "default-0");
  EXPECT_EQ(Run("default-0").environment, "python of program");
  EXPECT_EQ(Run("jax-0").state, RunState::kQueued);
  const Peer both = Attach(with(Hello("both", "b#1", 2), {"program", "program:jax"}));
  ASSERT_THAT(both.grants(), SizeIs(1));
  EXPECT_EQ(both.grants()[0].run().run(), "jax-0");
  EXPECT_EQ(Run("jax-0").environment, "python of program:jax");
}

// Otherwise a stream of short runs would go before it forever.
TEST_F(SchedulerDispatchTest, GrantsNothingPastARunThatWaitsForThoseWhoTrainIt) {
  Queue("t", 3);
  Queue("n", 1, 10, 0, "native");
  const Peer both = Attach(Trains(Hello("both", "b#1"), ""));
  ASSERT_THAT(both.grants(), SizeIs(2));
  SendStarted(both, both.grants()[0], 1);
  SendFinished(both, both.grants()[0], 2, 10);
  ASSERT_THAT(both.grants(), SizeIs(3));
  EXPECT_EQ(both.grants()[2].run().run(), "t-2");
}

TEST_F(SchedulerDispatchTest, GoesOnInTheEnvironmentOfTheRunsTrainer) {
  Queue("n", 1, 10, 0, "native");
  const Peer first = Attach(Trains(Hello("w", "w#1"), "native, fused"));
  const wire::Grant grant = first.grants().at(0);
  SendStarted(first, grant, 1);
  SendPoints(first, grant, 2, 1);
  SendResumeState(first, grant, 3, std::string(64, 'a'));
  wire::FromWorker upgraded = Trains(Hello("w", "w#2"), "native, fused");
  upgraded.mutable_hello()->mutable_trainers(0)->set_environment("torch 2");
  EXPECT_EQ(Attach(upgraded).grants().at(0).run().resume_blob(), std::string(64, 'a'));
  const Peer other = Attach(Trains(Hello("w", "w#3"), "native, baseline"));
  EXPECT_EQ(other.grants().at(0).run().resume_blob(), "");
  EXPECT_THAT(HistoryOf("n-0"), testing::Contains("rewound"));
}

TEST_F(SchedulerDispatchTest, BeginsARunAnewOnAWorkerOfAnotherEnvironment) {
  const auto in = [](const std::string& environment, const std::string& incarnation) {
    wire::FromWorker hello = Hello("w", incarnation);
    hello.mutable_hello()->mutable_trainers(0)->set_environment(environment);
    return hello;
  };
  Queue("a", 1);
  const Peer first = Attach(in("torch 1", "w#1"));
  const wire::Grant grant = first.grants().at(0);
  SendStarted(first, grant, 1);
  SendPoints(first, grant, 2, 1);
  SendResumeState(first, grant, 3, std::string(64, 'a'));
  EXPECT_EQ(Run("a-0").environment, "torch 1");
  const Peer same = Attach(in("torch 1", "w#2"));
  EXPECT_EQ(same.grants().at(0).run().resume_blob(), std::string(64, 'a'));
  const Peer other = Attach(in("torch 2", "w#3"));
  EXPECT_EQ(other.grants().at(0).run().resume_blob(), "");
  EXPECT_THAT(HistoryOf("a-0"), testing::Contains("rewound"));
  EXPECT_EQ(Run("a-0").state, storage::RunState::kLeased);
}

TEST_F(SchedulerDispatchTest, GrantsTheRunAgainToAWorkerThatRefusedItsState) {
  Queue("a", 1);
  const Peer first = Attach("w", "w#1");  // doesn't report its environment
  SendStarted(first, first.grants().at(0), 1);
  SendPoints(first, first.grants().at(0), 2, 1);
  SendResumeState(first, first.grants().at(0), 3, std::string(64, 'a'));
  const Peer second = Attach("w", "w#2");
  const wire::Grant grant = second.grants().at(0);
  ASSERT_EQ(grant.run().resume_blob(), std::string(64, 'a'));
  SendStarted(second, grant, 1);
  wire::FromWorker refusal = EventOf(grant, 2);
  refusal.mutable_event()->mutable_released()->set_state_refused("of another environment");
  Send(second, refusal);
  ASSERT_THAT(second.grants(), SizeIs(2));
  EXPECT_EQ(second.grants()[1].run().resume_blob(), "");
  EXPECT_EQ(Run("a-0").failures, 0u);
}

TEST_F(SchedulerDispatchTest, LeavesNoLaneIdleWhileRunsForOtherNumbersEnd) {
  Queue("old", 100, 10, engine::kNumericsVersion - 1);
  Queue("new", 1);
  EXPECT_THAT(Attach().grants(), SizeIs(1));
  EXPECT_EQ(Run("old-99").state, storage::RunState::kFailed);
  EXPECT_EQ(Run("new-0").state, storage::RunState::kLeased);
}

TEST_F(SchedulerDispatchTest, GrantsShortRunsByTheHalf) {
  Queue("a", 60);
  const Peer peer = Attach();
  SendStarted(peer, peer.grants()[0], 1);
  for (uint32_t step = 1; step <= 10; ++step) SendPoints(peer, peer.grants()[0], step + 1, step);
  SendFinished(peer, peer.grants()[0], 12, 10);
  clock_.Advance(absl::Seconds(11));
  SendHeartbeat(peer);
  scheduler_->Dispatch();
  ASSERT_EQ(scheduler_->Workers().at(0).runs.size(), 32u);
  const int before = store_.grants();
  for (size_t run = 1; run <= 16; ++run) SendFinished(peer, peer.grants()[run], 1, 10);
  EXPECT_EQ(scheduler_->Workers().at(0).runs.size(), 16u);
  EXPECT_EQ(store_.grants(), before);
  SendFinished(peer, peer.grants()[17], 1, 10);
  EXPECT_EQ(scheduler_->Workers().at(0).runs.size(), 32u);
  EXPECT_EQ(store_.grants(), before + 1) << "all at one time";
}

TEST_F(SchedulerDispatchTest, GrantsWhatIsToBeResumedFromItsState) {
  Queue("a", 1);
  const Peer first = Attach("w", "w#1");
  const wire::Grant grant = first.grants().at(0);
  SendStarted(first, grant, 1);
  SendPoints(first, grant, 2, 1);
  SendResumeState(first, grant, 3, std::string(64, 'a'));
  SendPoints(first, grant, 4, 2);
  ASSERT_EQ(first.acked(grant.lease()), 4u);
  const Peer second = Attach("w", "w#2");
  ASSERT_THAT(second.grants(), SizeIs(1));
  EXPECT_EQ(second.grants()[0].run().resume_step(), 1u);
  EXPECT_EQ(second.grants()[0].run().resume_blob(), std::string(64, 'a'));
  EXPECT_EQ(Run("a-0").step, 1u);
}

TEST_F(SchedulerDispatchTest, GrantsAgainWhenTheDiskHasRoom) {
  Queue("a", 1);
  store_.SetFull(true);
  const Peer peer = Attach();
  EXPECT_THAT(peer.grants(), IsEmpty());
  store_.SetFull(false);
  PassWithHeartbeats(absl::Seconds(1), {peer});
  EXPECT_THAT(peer.grants(), SizeIs(1));
}

TEST_F(SchedulerDispatchTest, HandsOutOnceTheLeaseIsCommitted) {
  const Peer peer = Attach();
  Queue("a", 1);
  store_.HoldBack();
  scheduler_->Dispatch();
  EXPECT_THAT(peer.grants(), IsEmpty());
  store_.CommitHeldBack();
  EXPECT_EQ(Run("a-0").state, RunState::kLeased);
  EXPECT_THAT(peer.grants(), IsEmpty()) << "its answer is on the way";
  store_.Release();
  EXPECT_THAT(RunsOf(peer), ElementsAre("a-0"));
}

TEST_F(SchedulerDispatchTest, HearsItsWorkersWhileTheDiskStalls) {
  const Peer training = TrainingWorker();
  const Peer idle = Attach("idle", "i#1");
  store_.HoldBack();
  Queue("b", 1);
  scheduler_->Dispatch();
  PassWithHeartbeats(absl::Minutes(5), {training, idle});
  EXPECT_TRUE(training.open());
  EXPECT_TRUE(idle.open());
  EXPECT_FALSE(idle.drained()) << "it is not to blame that it has nothing to do";
  store_.Release();
  EXPECT_THAT(RunsOf(idle), ElementsAre("b-0"));
}

TEST_F(SchedulerDispatchTest, MakesOneGrantAtATime) {
  const Peer peer = Attach("w", "w#1", 2);
  const int before = store_.grants();
  store_.HoldBack();
  Queue("a", 3);
  scheduler_->Dispatch();
  Queue("b", 2);
  scheduler_->Dispatch();
  PassWithHeartbeats(absl::Seconds(3), {peer});
  EXPECT_EQ(store_.grants(), before + 1);
  store_.Release();
  EXPECT_THAT(RunsOf(peer), ElementsAre("a-0", "a-1", "a-2", "b-0"));
}

TEST_F(SchedulerDispatchTest, TakesALeaseBackWhoseWorkerLeftBeforeItWasHandedOut) {
  const Peer peer = Attach();
  Queue("a", 1);
  store_.HoldBack();
  scheduler_->Dispatch();
  scheduler_->Closed(peer.session);
  store_.Release();
  EXPECT_THAT(peer.grants(), IsEmpty());
  EXPECT_THAT(HistoryOf("a-0"), ElementsAre("queued", "granted", "released"));
  EXPECT_EQ(Run("a-0").losses, 0u);
  EXPECT_THAT(RunsOf(Attach("other", "o#1")), ElementsAre("a-0"));
}

TEST_F(SchedulerDispatchTest, TakesALeaseBackThatWasMadeForAnEarlierProcess) {
  Attach("w", "w#1");
  Queue("a", 1);
  store_.HoldBack();
  scheduler_->Dispatch();
  const Peer next = Attach("w", "w#2");
  store_.Release();
  EXPECT_THAT(HistoryOf("a-0"), ElementsAre("queued", "granted", "released", "granted"));
  ASSERT_THAT(RunsOf(next), ElementsAre("a-0"));
  EXPECT_EQ(next.grants()[0].lease(), "l2");
}

TEST_F(SchedulerDispatchTest, HandsOutNothingThatWasCancelledMeanwhile) {
  const Peer peer = Attach();
  const std::string experiment = Queue("a", 2);
  store_.HoldBack();
  scheduler_->Dispatch();
  store_.CommitHeldBack();
  const auto cancelled = disk_->CancelExperiment(experiment);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  ASSERT_THAT(cancelled->withdrawals, SizeIs(2));
  scheduler_->Withdraw(cancelled->withdrawals);
  store_.Release();
  EXPECT_THAT(peer.grants(), IsEmpty());
  EXPECT_THAT(scheduler_->Workers().at(0).runs, IsEmpty());
}

TEST_F(SchedulerDispatchTest, HandsOutNothingOfAnExperimentWithTooManyFailures) {
  max_failed_ = 1;
  const Peer first = Attach("v", "v#1");
  Queue("a", 3);
  scheduler_->Dispatch();
  ASSERT_THAT(RunsOf(first), ElementsAre("a-0", "a-1"));
  store_.HoldBack();
  const Peer second = Attach("w", "w#1");
  SendFailed(first, first.grants()[0], 1);
  store_.CommitHeldBack();
  EXPECT_EQ(Run("a-2").state, storage::RunState::kCancelled);
  store_.Release();
  EXPECT_THAT(second.grants(), IsEmpty());
  EXPECT_THAT(first.cancels(), ElementsAre("l2"));
}

TEST_F(SchedulerDispatchTest, FailsARunWhoseSpecCannotBeRead) {
  storage::NewExperiment experiment;
  experiment.name = "broken";
  experiment.request_id = "broken";
  storage::NewRun run;
  run.fingerprint = run.trajectory = "broken-0";
  run.steps = 1;
  run.device_kind = "cpu";
  run.trainer = "torch";
  run.spec = "\xff\xff";
  experiment.cells.push_back({"broken-0", {}, 0, "broken-0"});
  experiment.runs.push_back(run);
  ASSERT_TRUE(disk_->CreateExperiment(experiment).ok());
  const Peer peer = Attach();
  PassWithHeartbeats(absl::Seconds(5), {peer});
  EXPECT_THAT(peer.grants(), IsEmpty());
  EXPECT_EQ(Run("broken-0").state, RunState::kFailed);
  EXPECT_EQ(Run("broken-0").failure, "its stored spec can't be read");
}

TEST_F(SchedulerDispatchTest, TellsWhichWorkersThereAre) {
  Queue("a", 1);
  const Peer peer = Attach("w", "w#1", 2);
  const WorkerInfo info = scheduler_->Workers().at(0);
  EXPECT_EQ(info.name, "w");
  EXPECT_EQ(info.device, "cpu in a test");
  EXPECT_EQ(info.device_kind, "cpu");
  EXPECT_EQ(info.build, "test");
  EXPECT_EQ(info.lanes, 2u);
  EXPECT_TRUE(info.attached);
  EXPECT_GT(info.attach_time, 0);
  scheduler_->Closed(peer.session);
  EXPECT_FALSE(scheduler_->Workers().at(0).attached);
}

TEST_F(SchedulerDispatchTest, MeasuresTheRunsThatLanesTrain) {
  lanes_of_runs_ = 2;
  Queue("a", 2, 1000);
  const Peer peer = Attach("w", "w#1", 3);
  ASSERT_FALSE(peer.grants().empty());
  const worker::v1::Grant grant = peer.grants()[0];
  EXPECT_THAT(scheduler_->Workers().at(0).training, IsEmpty()) << "granted, not begun";
  SendStarted(peer, grant, 1);
  SendPoints(peer, grant, 2, 100);
  WorkerInfo info = scheduler_->Workers().at(0);
  ASSERT_THAT(info.training, SizeIs(1));
  EXPECT_EQ(info.training[0].run, grant.run().run());
  EXPECT_EQ(info.training[0].steps_per_second, 0) << "too little is known";
  EXPECT_EQ(info.busy_lanes, 2u);
  Pass(absl::Seconds(2));
  SendPoints(peer, grant, 3, 300);
  info = scheduler_->Workers().at(0);
  EXPECT_EQ(info.training[0].steps_per_second, 100);
  EXPECT_THAT(info.training[0].losses, ElementsAre(1.f / 100, 1.f / 300));
  SendFinished(peer, grant, 4, 1000);
  EXPECT_THAT(scheduler_->Workers().at(0).training, IsEmpty());
  EXPECT_EQ(scheduler_->Workers().at(0).busy_lanes, 0u);
}

TEST(TrainingMeterTest, KeepsLongCurvesShort) {
  TrainingMeter meter;
  storage::PointsEvent event;
  for (uint32_t step = 1; step <= 5000; ++step) {
    event.step = step;
    event.columns = {{"train/loss", {step}, {static_cast<double>(step)}}, {"other", {step}, {-1}}};
    meter.Add(absl::Seconds(step), event);
    ASSERT_LE(meter.losses().size(), 80u);
    ASSERT_EQ(meter.losses().front(), 1);
    ASSERT_EQ(meter.losses().back(), step);
  }
  ASSERT_GT(meter.losses().size(), 40u);
  const float stride = meter.losses()[1] - meter.losses()[0];
  for (size_t i = 2; i + 1 < meter.losses().size(); ++i) {
    ASSERT_EQ(meter.losses()[i] - meter.losses()[i - 1], stride) << i;
  }
  EXPECT_EQ(meter.steps_per_second(absl::Seconds(5000)), 1);
}

TEST(TrainingMeterTest, MeasuresTheLastSecondsAndAgainAfterARewind) {
  TrainingMeter meter;
  storage::PointsEvent event;
  const auto add = [&](absl::Duration now, uint32_t step) {
    event.step = step;
    meter.Add(now, event);
  };
  add(absl::Seconds(1), 0);
  add(absl::Seconds(2), 500);
  EXPECT_EQ(meter.steps_per_second(absl::Seconds(2)), 500);
  for (uint32_t i = 1; i <= 20; ++i) add(absl::Seconds(2 + i), 500 + i);
  EXPECT_EQ(meter.steps_per_second(absl::Seconds(22)), 1);
  EXPECT_EQ(meter.steps_per_second(absl::Seconds(33)), 0) << "it hangs";
  add(absl::Seconds(34), 100);
  EXPECT_EQ(meter.steps_per_second(absl::Seconds(34)), 0);
}

TEST_F(SchedulerDispatchTest, NamesTheRunsThatTrainBeforeThoseThatWait) {
  Queue("a", 4);
  const Peer peer = Attach("w", "w#1", 2);
  ASSERT_THAT(peer.grants(), SizeIs(4));
  EXPECT_THAT(scheduler_->Workers().at(0).runs, ElementsAre("a-0", "a-1", "a-2", "a-3"));
  SendStarted(peer, peer.grants()[2], 1);
  EXPECT_THAT(scheduler_->Workers().at(0).runs, ElementsAre("a-2", "a-0", "a-1", "a-3"));
}

}  // namespace
}  // namespace ablate::schedule
