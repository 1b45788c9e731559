// How slow the other end of a stream may be.
#include "server/service/pace.h"

#include <gtest/gtest.h>

namespace ablate::service {
namespace {

using absl::Milliseconds;
using absl::Seconds;

// A minute's patience and 100 bytes a second.
Pace Slow() { return Pace({absl::Minutes(1), 100}); }

TEST(PaceTest, EndsAWaitThatIsLongerThanThePatience) {
  Pace pace = Slow();
  pace.Wait(Seconds(5));
  EXPECT_FALSE(pace.TooSlow(Seconds(65)));
  EXPECT_TRUE(pace.TooSlow(Seconds(65) + Milliseconds(1)));
}

TEST(PaceTest, CountsNothingWhileThereIsNothingToWaitFor) {
  Pace pace = Slow();
  EXPECT_FALSE(pace.TooSlow(absl::Hours(9)));
  pace.Wait(absl::Hours(9));
  pace.Went(10, absl::Hours(9));
  EXPECT_FALSE(pace.TooSlow(absl::Hours(99)));
}

TEST(PaceTest, EndsATrickle) {
  Pace pace = Slow();
  absl::Duration now;
  int messages = 0;
  for (; !pace.TooSlow(now) && messages < 1'000; ++messages) {
    pace.Wait(now);
    now += Seconds(2);  // each within the patience
    if (pace.TooSlow(now)) break;
    pace.Went(1, now);
  }
  EXPECT_EQ(messages, 30);  // 2 s less a hundredth of one each, of 60 s
}

TEST(PaceTest, GoesOnForEverAtTheLeastRate) {
  Pace pace = Slow();
  absl::Duration now;
  for (int i = 0; i < 1'000; ++i) {
    pace.Wait(now);
    now += Seconds(50);
    ASSERT_FALSE(pace.TooSlow(now)) << i;
    pace.Went(5'000, now);
  }
}

TEST(PaceTest, LetsNobodySaveUpForALongPause) {
  Pace pace = Slow();
  pace.Wait(Seconds(0));
  pace.Went(1 << 30, Seconds(1));
  pace.Wait(Seconds(1));
  EXPECT_TRUE(pace.TooSlow(Seconds(62)));
}

TEST(PaceTest, SaysWhatIsAskedFor) {
  EXPECT_EQ(Pace(LeastPace{}).Terms(), "at least 6.4 KiB a second, after a wait of at most 1m");
}

}  // namespace
}  // namespace ablate::service
