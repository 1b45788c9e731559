// Tests requests to a run.
#include "server/worker/run_control.h"

#include <gtest/gtest.h>

#include <thread>

namespace ablate::worker {
namespace {

// Pauses repeatedly, because a pause may end early.
void Pass(RunControl& control, absl::Duration time) {
  const absl::Duration until = MonotonicNow() + time;
  while (MonotonicNow() < until) control.Pause(absl::Milliseconds(1));
}

TEST(RunControlTest, HaltStopsWithoutForgetting) {
  RunControl control;
  EXPECT_FALSE(control.stop());
  control.Halt();
  EXPECT_TRUE(control.stop());
  EXPECT_TRUE(control.halted());
  EXPECT_FALSE(control.abandoned());
}

TEST(RunControlTest, AbandonStopsAndCancelsTheCallInProgress) {
  RunControl control;
  int cancelled = 0;
  control.BeginCall([&] { ++cancelled; });
  control.Abandon();
  EXPECT_TRUE(control.stop());
  EXPECT_TRUE(control.abandoned());
  EXPECT_EQ(cancelled, 1);
}

TEST(RunControlTest, ACallOfAnAbandonedRunIsCancelledAtOnce) {
  RunControl control;
  control.Abandon();
  int cancelled = 0;
  control.BeginCall([&] { ++cancelled; });
  EXPECT_EQ(cancelled, 1);
}

TEST(RunControlTest, ACallThatEndedIsNotCancelled) {
  RunControl control;
  int cancelled = 0;
  control.BeginCall([&] { ++cancelled; });
  control.EndCall();
  control.Abandon();
  EXPECT_EQ(cancelled, 0);
}

TEST(RunControlTest, AbandonEndsAPause) {
  RunControl control;
  std::thread pausing([&] {
    while (!control.abandoned()) control.Pause(absl::Hours(1));
  });
  control.Abandon();
  pausing.join();
}

TEST(RunControlTest, AbandonsItsFollowerButDoesNotHaltIt) {
  RunControl control, follower, late;
  int cancelled = 0;
  follower.BeginCall([&] { ++cancelled; });
  control.SetFollower(&follower);
  EXPECT_FALSE(follower.abandoned());
  control.Halt();
  EXPECT_FALSE(follower.stop());
  control.Abandon();
  EXPECT_TRUE(follower.abandoned());
  EXPECT_EQ(cancelled, 1);
  control.SetFollower(&late);
  EXPECT_TRUE(late.abandoned());
}

TEST(RunControlTest, CountsTheTimeSinceTheLastProgressAlsoOfTheSameStep) {
  RunControl control;
  control.Progressed(5);
  const absl::Duration begin = MonotonicNow();
  Pass(control, absl::Milliseconds(3));
  const RunControl::Progress stalled = control.progress();
  EXPECT_EQ(stalled.step, 5u);
  EXPECT_GE(stalled.since_progress, absl::Milliseconds(3));
  control.Progressed(5);  // a part of an evaluation
  EXPECT_EQ(control.progress().step, 5u);
  EXPECT_LT(control.progress().since_progress, MonotonicNow() - begin);
}

TEST(RunControlTest, WaitingForTheServerIsCountedApart) {
  RunControl control;
  {
    const ServerWait waiting(control);
    Pass(control, absl::Milliseconds(3));
    EXPECT_EQ(control.progress().since_progress, absl::ZeroDuration());
    EXPECT_GE(control.waited(), absl::Milliseconds(3));
  }
  const absl::Duration waited = control.waited();
  Pass(control, absl::Milliseconds(1));
  EXPECT_EQ(control.waited(), waited);
}

}  // namespace
}  // namespace ablate::worker
