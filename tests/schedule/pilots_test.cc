// Tests how many pilots a cluster is asked for.
#include "server/schedule/pilots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/schedule/scheduler_fixture.h"

namespace ablate::schedule {
namespace {

namespace v1 = worker::v1;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class PilotsTest : public testing::Test {
 protected:
  v1::SyncPilotsResponse Sync(const std::vector<std::string>& running,
                              const std::vector<std::string>& pending = {}) {
    request_.clear_pilots();
    for (const std::string& name : running) request_.add_pilots()->set_worker(name);
    for (const std::string& name : pending) {
      v1::Pilot* pilot = request_.add_pilots();
      pilot->set_worker(name);
      pilot->set_pending(true);
      pilot->set_reason("Priority");
    }
    const auto orders = pilots_.Sync("ci", request_, work_, now_);
    EXPECT_TRUE(orders.ok()) << orders.status();
    return orders.value_or(v1::SyncPilotsResponse());
  }

  PilotsTest() {
    request_.set_cluster("slurm");
    request_.set_device_kind("cpu");
    request_.set_max(4);
  }

  v1::SyncPilotsRequest request_;
  PilotWork work_;
  absl::Duration now_ = absl::Hours(1);
  Pilots pilots_;
};

TEST_F(PilotsTest, AreAsManyAsTheQueueFills) {
  EXPECT_EQ(Sync({}).start(), 0u);
  work_.queued_lanes = 1;
  EXPECT_EQ(Sync({}).start(), 1u);
  EXPECT_EQ(Sync({}, {"slurm-a"}).start(), 0u) << "one waits for a machine already";
  work_.queued_lanes = 5;
  work_.lanes = 2;
  EXPECT_EQ(Sync({}, {"slurm-a"}).start(), 2u) << "3 pilots of 2 lanes";
  work_.busy = 1;
  const v1::SyncPilotsResponse all = Sync({"slurm-a"}, {"slurm-b"});
  EXPECT_EQ(all.start(), 2u) << "and the one that is busy";
  EXPECT_EQ(all.why(), "");
  work_.queued_lanes = 100;
  EXPECT_EQ(Sync({"slurm-a"}).why(), "the queue could use more than 4");
}

TEST_F(PilotsTest, StayAtTheirLeastNumber) {
  request_.set_min(2);
  EXPECT_EQ(Sync({}).start(), 2u);
  EXPECT_THAT(Sync({"slurm-a"}, {"slurm-b"}).end(), IsEmpty());
}

TEST_F(PilotsTest, AreWithdrawnOnlyWhileTheyWait) {
  EXPECT_THAT(Sync({"slurm-a", "slurm-b"}, {"slurm-c", "slurm-d"}).end(),
              ElementsAre("slurm-d", "slurm-c"));
  work_.queued_lanes = 3;
  EXPECT_THAT(Sync({"slurm-a", "slurm-b"}, {"slurm-c", "slurm-d"}).end(), ElementsAre("slurm-d"));
}

TEST_F(PilotsTest, WaitLongerAfterEachThreeThatEndWithoutARun) {
  work_.queued_lanes = 1;
  for (const char* name : {"slurm-a", "slurm-b", "slurm-c"}) {
    EXPECT_EQ(Sync({}).start(), 1u);
    EXPECT_EQ(Sync({}, {name}).start(), 0u);
  }
  const v1::SyncPilotsResponse stopped = Sync({});
  EXPECT_EQ(stopped.start(), 0u);
  EXPECT_EQ(stopped.why(), "3 pilots in a row ended before they had a run; the next start in 1m");
  EXPECT_THAT(pilots_.Failing(),
              ElementsAre(Pair("slurm@ci", "3 pilots in a row ended before they had a run")));
  now_ += absl::Seconds(61);
  work_.queued_lanes = 3;
  EXPECT_EQ(Sync({}).start(), 1u) << "one shows if it works again";
  Sync({}, {"slurm-d"});
  EXPECT_THAT(Sync({}).why(), HasSubstr("in 2m"));
  now_ += absl::Minutes(3);
  Sync({"slurm-e"});
  work_.worked = {"slurm-e"};
  EXPECT_EQ(Sync({}).start(), 3u) << "one has had a run";
  EXPECT_THAT(pilots_.Failing(), IsEmpty());
}

TEST_F(PilotsTest, ThatWereWithdrawnAreNoFailures) {
  work_.queued_lanes = 4;
  Sync({}, {"slurm-a", "slurm-b", "slurm-c", "slurm-d"});
  work_.queued_lanes = 0;
  Sync({}, {"slurm-a", "slurm-b", "slurm-c", "slurm-d"});
  work_.queued_lanes = 4;
  EXPECT_EQ(Sync({}).start(), 4u);
}

TEST_F(PilotsTest, AreTakenForThereWhileTheClusterDoesNotAnswer) {
  work_.queued_lanes = 4;
  Sync({"slurm-a", "slurm-b", "slurm-c"});
  request_.set_trouble("squeue failed");
  EXPECT_EQ(Sync({}).start(), 0u);
  EXPECT_THAT(pilots_.Failing(), ElementsAre(Pair("slurm@ci", "squeue failed")));
  request_.clear_trouble();
  EXPECT_EQ(Sync({"slurm-a", "slurm-b", "slurm-c"}).start(), 1u);
  EXPECT_THAT(pilots_.Failing(), IsEmpty());
}

TEST_F(PilotsTest, AreListedWhileTheyWait) {
  Sync({"slurm-a"}, {"slurm-b"});
  const std::vector<PendingPilot> pending = pilots_.Pending();
  ASSERT_EQ(pending.size(), 1u);
  EXPECT_EQ(pending[0].worker, "slurm-b@ci");
  EXPECT_EQ(pending[0].cluster, "slurm");
  EXPECT_EQ(pending[0].reason, "Priority");
  pilots_.Forget(now_ + Pilots::kForgotten);
  EXPECT_EQ(pilots_.Pending().size(), 1u);
  pilots_.Forget(now_ + Pilots::kForgotten + absl::Seconds(1));
  EXPECT_THAT(pilots_.Pending(), IsEmpty());
}

TEST_F(PilotsTest, HaveABoundOnTheirClusters) {
  for (size_t i = 0; i < Pilots::kMaxClusters; ++i) {
    request_.set_cluster("c" + std::to_string(i));
    Sync({});
  }
  Sync({});
  request_.set_cluster("more");
  EXPECT_TRUE(absl::IsResourceExhausted(pilots_.Sync("ci", request_, work_, now_).status()));
}

TEST_F(PilotsTest, NameTheWrongFieldOfAReport) {
  const auto message = [this](const std::function<void(v1::SyncPilotsRequest*)>& change) {
    v1::SyncPilotsRequest request = request_;
    change(&request);
    const absl::Status status = CheckPilots(request);
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  EXPECT_TRUE(CheckPilots(request_).ok());
  EXPECT_THAT(message([](auto* r) { r->set_cluster("a b"); }), HasSubstr("cluster is \"a b\""));
  EXPECT_THAT(message([](auto* r) { r->clear_cluster(); }), HasSubstr("cluster is \"\""));
  EXPECT_THAT(message([](auto* r) { r->set_max(0); }), HasSubstr("max is 0; expected 1 to 1000"));
  EXPECT_THAT(message([](auto* r) { r->set_max(1001); }), HasSubstr("max is 1001"));
  EXPECT_THAT(message([](auto* r) { r->set_min(5); }),
              HasSubstr("min is 5; expected at most max, 4"));
  EXPECT_THAT(message([](auto* r) { r->set_device_kind("tpu"); }),
              HasSubstr("expected cpu or cuda"));
  EXPECT_THAT(message([](auto* r) { r->set_lanes(5000); }), HasSubstr("lanes is 5000"));
  EXPECT_THAT(message([](auto* r) { r->add_pilots()->set_worker("x"); }),
              HasSubstr("begins with slurm-"));
  EXPECT_THAT(message([](auto* r) { r->add_pilots()->set_worker("slurm-a@bob"); }),
              HasSubstr("without @"));
  EXPECT_THAT(message([](auto* r) {
                r->add_pilots()->set_worker("slurm-a");
                r->add_pilots()->set_worker("slurm-a");
              }),
              HasSubstr("twice slurm-a"));
  EXPECT_THAT(message([](auto* r) {
                r->add_pilots()->set_worker("slurm-a");
                r->mutable_pilots(0)->set_reason("\x1b[2J");
              }),
              HasSubstr("pilots.reason"));
}

class SchedulerPilotsTest : public SchedulerTest {
 protected:
  v1::SyncPilotsResponse Sync(const std::vector<std::string>& pilots) {
    v1::SyncPilotsRequest request;
    request.set_cluster("slurm");
    request.set_device_kind("cpu");
    request.set_max(10);
    for (const std::string& name : pilots) request.add_pilots()->set_worker(name);
    const auto queued = disk_->CountQueuedLanes("cpu");
    EXPECT_TRUE(queued.ok());
    const auto orders = scheduler_->SyncPilots("ci", request, *queued, {});
    EXPECT_TRUE(orders.ok()) << orders.status();
    return orders.value_or(v1::SyncPilotsResponse());
  }
};

TEST_F(SchedulerPilotsTest, CountsTheRunsThatItsPilotsTrain) {
  Queue("a", 3);
  Queue("n", 4, 10, 0, "native");
  EXPECT_EQ(Sync({}).start(), 7u) << "nobody knows yet what pilots train";
  const Peer peer = Attach("slurm-a@ci", "a#1", 1);
  EXPECT_EQ(peer.grants().size(), 2u);
  EXPECT_EQ(Sync({"slurm-a"}).start(), 1u) << "a pilot trains torch alone, and holds two runs";
}

TEST_F(SchedulerPilotsTest, CountsAPilotThatHadARunAsGood) {
  Queue("a", 1);
  const Peer peer = Attach("slurm-a@ci", "a#1", 1);
  ASSERT_EQ(peer.grants().size(), 1u);
  Sync({"slurm-a"});
  SendStarted(peer, peer.grants()[0], 1);
  SendFinished(peer, peer.grants()[0], 2, 10);
  Queue("b", 2);
  scheduler_->Closed(peer.session);
  Sync({});
  Sync({"slurm-b", "slurm-c"});
  const v1::SyncPilotsResponse orders = Sync({});
  EXPECT_EQ(orders.why(), "") << "two of three ended without a run";
  EXPECT_GT(orders.start(), 0u);
}

TEST_F(SchedulerPilotsTest, GrantsRunsThatCanNotContinueOnlyWhereTheirTimeIsLeft) {
  worker::v1::FromWorker hello = Hello("slurm-a@ci", "a#1");
  hello.mutable_hello()->set_time_left_s(1000);
  whole_seconds_of_runs_ = 821;  // three minutes are left for saving
  Queue("a", 1);
  const Peer short_lived = Attach(hello);
  EXPECT_THAT(short_lived.grants(), IsEmpty());
  whole_seconds_of_runs_ = 0;
  Queue("b", 1);
  scheduler_->Dispatch();
  ASSERT_EQ(short_lived.grants().size(), 1u) << "it continues elsewhere";
  EXPECT_EQ(short_lived.grants()[0].run().run(), "b-0");
  whole_seconds_of_runs_ = 410;  // it comes second
  Queue("c", 1);
  scheduler_->Dispatch();
  ASSERT_EQ(short_lived.grants().size(), 2u);
  EXPECT_EQ(short_lived.grants()[1].run().run(), "c-0");
  const Peer unlimited = Attach("cpu-train", "w#1");
  ASSERT_EQ(unlimited.grants().size(), 1u);
  EXPECT_EQ(unlimited.grants()[0].run().run(), "a-0");
}

}  // namespace
}  // namespace ablate::schedule
