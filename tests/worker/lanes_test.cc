// Tests the assignment of runs to lanes.
#include "server/worker/lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "tests/worker/worker_fixture.h"

namespace ablate::worker {
namespace {

using testing::ElementsAre;

class LanesTest : public WorkerTest {};

TEST_F(LanesTest, TrainsAsManyRunsAtATimeAsThereAreLanes) {
  options.attach.hello.set_lanes(2);
  for (uint32_t seed : {1, 2, 3}) trainers_.LimitTo(seed, 5);
  Start();
  server_->Grant({RecallRun(1, 10), RecallRun(2, 10), RecallRun(3, 10)});
  trainers_.WaitUntilHeld(1);
  trainers_.WaitUntilHeld(2);
  EXPECT_EQ(trainers_.made(), 2u);
  trainers_.Unlimit(2);
  trainers_.WaitUntilHeld(3);
  trainers_.Unlimit(1);
  trainers_.Unlimit(3);
  WaitForRun(1);
  WaitForRun(3);
}

TEST_F(LanesTest, TakesRunsInTheOrderOfTheirGrant) {
  Start();
  server_->Grant({RecallRun(3, 10), RecallRun(1, 10)});
  server_->Grant({RecallRun(2, 10)});
  std::vector<std::string> started;
  for (const v1::Event& event : WaitForRun(2).events) {
    if (event.has_started()) started.push_back(event.lease());
  }
  EXPECT_THAT(started, ElementsAre(NameOf(3), NameOf(1), NameOf(2)));
}

v1::GrantedRun OnThreads(v1::GrantedRun run, uint32_t threads) {
  run.mutable_spec()->mutable_spec()->mutable_training()->set_threads(threads);
  return run;
}

TEST_F(LanesTest, GiveARunOfSeveralThreadsAsManyLanes) {
  options.attach.hello.set_lanes(3);
  for (uint32_t seed : {1, 2, 3, 4}) trainers_.LimitTo(seed, 5);
  Start();
  server_->Grant(
      {RecallRun(1, 10), RecallRun(2, 10), OnThreads(RecallRun(3, 10), 2), RecallRun(4, 10)});
  trainers_.WaitUntilHeld(1);
  trainers_.WaitUntilHeld(2);
  EXPECT_EQ(trainers_.made(), 2u) << "one lane is free, and run 4 doesn't overtake";
  trainers_.Unlimit(1);
  trainers_.WaitUntilHeld(3);
  EXPECT_EQ(trainers_.made(), 3u) << "all lanes are taken";
  trainers_.Unlimit(2);
  trainers_.WaitUntilHeld(4);
  trainers_.Unlimit(3);
  trainers_.Unlimit(4);
  WaitForRun(3);
  WaitForRun(4);
}

TEST_F(LanesTest, TrainARunOfMoreThreadsThanThereAreLanes) {
  options.attach.hello.set_lanes(2);
  Start();
  server_->Grant({OnThreads(RecallRun(1, 10), 8), RecallRun(2, 10)});
  WaitForRun(1);
  WaitForRun(2);
}

TEST_F(LanesTest, PreparesEveryLaneOnItsOwnThread) {
  Mutex mutex;
  std::set<std::thread::id> prepared;
  options.attach.hello.set_lanes(3);
  options.prepare_lane = [&] {
    MutexLock lock(&mutex);
    prepared.insert(std::this_thread::get_id());
    return absl::OkStatus();
  };
  Start();
  server_->WaitUntil([](const ServerState& state) { return state.attached; });
  MutexLock lock(&mutex);
  EXPECT_EQ(prepared.size(), 3u);
  EXPECT_EQ(prepared.count(std::this_thread::get_id()), 0u);
}

// A device that trains each run in no time and records how long it had been without progress.
class LaneProbe {
 public:
  LaneActions Actions() {
    LaneActions actions;
    actions.prepare = [this] { return prepared; };
    actions.lost = [this](const absl::Status&) { ++lost; };
    return actions;
  }
  Job Run() {
    Job job;
    job.work = [this](RunControl& control, Completion*) {
      MutexLock lock(&mutex_);
      idle_.push_back(control.progress().since_progress);
      changed_.SignalAll();
      return absl::OkStatus();
    };
    return job;
  }
  absl::Duration WaitForRun(size_t count) {
    MutexLock lock(&mutex_);
    while (idle_.size() < count) changed_.Wait(&mutex_);
    return idle_.back();
  }

  absl::Status prepared;
  std::atomic<int> lost = 0;

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<absl::Duration> idle_ ABSL_GUARDED_BY(mutex_);
};

TEST(IdleLaneTest, DoesNotCountIdleTimeAsARunsLackOfProgress) {
  LaneProbe probe;
  Lanes lanes(1, probe.Actions());
  lanes.WaitUntilReady();
  // The lane waits between two runs, until this loop sees the run end.
  for (size_t runs = 1; runs <= 50; ++runs) {
    const absl::Duration granted = MonotonicNow();
    lanes.Start(probe.Run());
    const absl::Duration idle = probe.WaitForRun(runs);
    EXPECT_LE(idle, MonotonicNow() - granted);
  }
}

TEST(LostLaneTest, IsKnownOnceTheLanesCountAsReady) {
  LaneProbe probe;
  probe.prepared = absl::InternalError("no such instruction");
  Lanes lanes(20, probe.Actions());
  lanes.WaitUntilReady();
  EXPECT_EQ(probe.lost, 20);
}

// Jobs that run until they are told to end.
class HeldJobs {
 public:
  Job Make(const std::string& id, int lanes = 1) {
    Job job;
    job.id = id;
    job.lanes = lanes;
    job.work = [this, id](RunControl& control, Completion*) {
      MutexLock lock(&mutex_);
      running_.insert(id);
      changed_.SignalAll();
      while (running_.contains(id) && !control.abandoned()) {
        changed_.WaitFor(&mutex_, std::chrono::milliseconds(5));
      }
      return absl::OkStatus();
    };
    return job;
  }
  void End(const std::string& id) {
    MutexLock lock(&mutex_);
    running_.erase(id);
    changed_.SignalAll();
  }
  // Waits until as many jobs run. Returns their IDs, in order.
  std::string WaitForRunning(size_t count) {
    MutexLock lock(&mutex_);
    while (running_.size() != count) changed_.Wait(&mutex_);
    return absl::StrJoin(running_, " ");
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::set<std::string> running_ ABSL_GUARDED_BY(mutex_);
};

class LaneLimitTest : public testing::Test {
 protected:
  LaneLimitTest() {
    actions_.prepare = [this] {
      ++prepared_;
      return absl::OkStatus();
    };
    actions_.lost = [](const absl::Status&) {};
  }
  void WaitUntilOnLanes(const Lanes& lanes, size_t count) {
    while (lanes.OnLanes().size() != count) absl::SleepFor(absl::Milliseconds(1));
  }

  HeldJobs jobs_;
  LaneActions actions_;
  std::atomic<int> prepared_ = 0;
};

TEST_F(LaneLimitTest, PreparesLanesOnceTheyAreNeeded) {
  Lanes lanes(4, actions_, 1);
  lanes.WaitUntilReady();
  EXPECT_EQ(prepared_, 1);
  for (const char* id : {"a", "b", "c", "d", "e"}) lanes.Start(jobs_.Make(id));
  EXPECT_EQ(jobs_.WaitForRunning(1), "a");
  lanes.SetLimit(2);
  EXPECT_EQ(jobs_.WaitForRunning(2), "a b");
  EXPECT_EQ(prepared_, 2);
  lanes.SetLimit(9);
  EXPECT_EQ(lanes.limit(), 4) << "the most";
  EXPECT_EQ(jobs_.WaitForRunning(4), "a b c d");
  EXPECT_EQ(prepared_, 4);
}

TEST_F(LaneLimitTest, LetsJobsFinishAboveALoweredLimit) {
  Lanes lanes(4, actions_, 3);
  for (const char* id : {"a", "b", "c", "d"}) lanes.Start(jobs_.Make(id));
  EXPECT_EQ(jobs_.WaitForRunning(3), "a b c");
  lanes.SetLimit(1);
  jobs_.End("a");
  jobs_.End("b");
  WaitUntilOnLanes(lanes, 1);
  EXPECT_EQ(jobs_.WaitForRunning(1), "c");
  jobs_.End("c");
  EXPECT_EQ(jobs_.WaitForRunning(1), "d");
  lanes.SetLimit(4);
  lanes.Start(jobs_.Make("e"));
  EXPECT_EQ(jobs_.WaitForRunning(2), "d e");
  lanes.WaitUntilReady();
  EXPECT_EQ(prepared_, 4);
}

TEST_F(LaneLimitTest, FreesTheLanesThatAJobTookUnderAnotherLimit) {
  Lanes lanes(4, actions_, 2);
  lanes.Start(jobs_.Make("wide", 4));
  EXPECT_EQ(jobs_.WaitForRunning(1), "wide");
  lanes.SetLimit(4);
  for (const char* id : {"a", "b", "c"}) lanes.Start(jobs_.Make(id));
  EXPECT_EQ(jobs_.WaitForRunning(3), "a b wide");
  jobs_.End("wide");
  EXPECT_EQ(jobs_.WaitForRunning(3), "a b c");
  lanes.Start(jobs_.Make("d"));
  lanes.Start(jobs_.Make("e"));
  EXPECT_EQ(jobs_.WaitForRunning(4), "a b c d");
}

TEST_F(LanesTest, EndingTheWorkerEndsWhatItTrains) {
  options.drain_timeout = absl::ZeroDuration();
  trainers_.LimitTo(1, 3);
  Start();
  server_->Grant({RecallRun(1, 10), RecallRun(2, 10)});
  trainers_.WaitUntilHeld(1);
  server_->Change([](ServerState& state) { state.hold_acks = true; });
  worker().Drain();
  EXPECT_TRUE(WaitForEnd().ok());
  trainers_.WaitUntilGone(1);
}

}  // namespace
}  // namespace ablate::worker
