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

}  // namespace
}  // namespace ablate::schedule
