// What is kept of a worker: its last words, and for how long it is remembered.
#include <gmock/gmock.h>

#include <string>

#include "tests/schedule/scheduler_fixture.h"

namespace ablate::schedule {
namespace {

class SchedulerWorkersTest : public SchedulerTest {};

// Clients could not parse them otherwise.
TEST_F(SchedulerWorkersTest, KeepsLastWordsAsWellFormedText) {
  Queue("a", 1);
  const Peer peer = Attach();
  SendStarted(peer, peer.grants().at(0), 1);
  scheduler_->Exited({"w", true, "exit code 1: caf\xc3\xa9 \xff, cut \xe2\x82"});
  const auto events = disk_->RunEvents("a-0");
  ASSERT_TRUE(events.ok());
  EXPECT_EQ(events->back().message, "exit code 1: caf\xc3\xa9 \\xff, cut \\xe2\\x82");
}

TEST_F(SchedulerWorkersTest, ForgetsAWorkerThatStaysAway) {
  Queue("a", 1);
  const Peer gone = Attach("gone", "gone#1");
  const Peer here = Attach("here", "here#1");
  scheduler_->Closed(gone.session);
  PassWithHeartbeats(absl::Minutes(59), {here});
  ASSERT_EQ(scheduler_->Workers().size(), 2u);
  EXPECT_FALSE(scheduler_->Workers()[0].attached);
  PassWithHeartbeats(absl::Minutes(2), {here});
  ASSERT_EQ(scheduler_->Workers().size(), 1u);
  EXPECT_EQ(scheduler_->Workers()[0].name, "here");
}

}  // namespace
}  // namespace ablate::schedule
