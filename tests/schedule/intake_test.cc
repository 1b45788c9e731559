// Groups of events: one at a time, bounded, again when there was no room.
#include "server/schedule/intake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ablate::schedule {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kCredit = 100;

storage::LeaseEvent Event(const std::string& lease, uint64_t seq) {
  return {lease, seq, "run", storage::StartedEvent{}};
}

absl::Status Add(Intake* intake, const std::string& lease, uint64_t seq, uint64_t bytes = 10) {
  return intake->Add(Event(lease, seq), bytes, {kCredit, 100 * kCredit}, nullptr);
}

std::vector<uint64_t> Numbers(const SharedGroup& group) {
  std::vector<uint64_t> numbers;
  if (group == nullptr) return numbers;
  for (const storage::LeaseEvent& event : group->events) numbers.push_back(event.seq);
  return numbers;
}

TEST(IntakeTest, CollectsWhileAGroupIsWithTheStore) {
  Intake intake;
  EXPECT_EQ(intake.Take(absl::ZeroDuration()), nullptr);
  ASSERT_TRUE(Add(&intake, "l", 1).ok());
  const SharedGroup first = intake.Take(absl::ZeroDuration());
  EXPECT_THAT(Numbers(first), ElementsAre(1));
  ASSERT_TRUE(Add(&intake, "l", 2).ok());
  ASSERT_TRUE(Add(&intake, "l", 3).ok());
  EXPECT_EQ(intake.Take(absl::ZeroDuration()), nullptr);
  intake.Applied(*first);
  EXPECT_THAT(Numbers(intake.Take(absl::ZeroDuration())), ElementsAre(2, 3));
}

TEST(IntakeTest, RefusesMoreThanALeasesCreditUntilItIsApplied) {
  Intake intake;
  ASSERT_TRUE(Add(&intake, "l", 1, 60).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Add(&intake, "l", 2, 60)));
  EXPECT_TRUE(Add(&intake, "other", 1, 60).ok());
  const SharedGroup group = intake.Take(absl::ZeroDuration());
  EXPECT_TRUE(absl::IsResourceExhausted(Add(&intake, "l", 2, 60)));
  intake.Applied(*group);
  EXPECT_TRUE(Add(&intake, "l", 2, 60).ok());
}

TEST(IntakeTest, TakesOneEventThatIsLargerThanTheCredit) {
  Intake intake;
  EXPECT_TRUE(Add(&intake, "l", 1, 100'000).ok());
}

TEST(IntakeTest, RefusesMoreThanAStreamMayHaveWhateverTheLeasesNames) {
  Intake intake;
  const Intake::Limits limits{kCredit, 250};
  for (uint64_t i = 1; i <= 2; ++i) {
    ASSERT_TRUE(intake.Add(Event(std::to_string(i), 1), 100, limits, nullptr).ok());
  }
  const SharedGroup group = intake.Take(absl::ZeroDuration());
  EXPECT_TRUE(absl::IsResourceExhausted(intake.Add(Event("3", 1), 100, limits, nullptr)));
  intake.Applied(*group);
  EXPECT_TRUE(intake.Add(Event("3", 1), 100, limits, nullptr).ok());
}

TEST(IntakeTest, HandsTheSameGroupOutAgainAfterEverLongerPauses) {
  Intake intake;
  ASSERT_TRUE(Add(&intake, "l", 1).ok());
  absl::Duration now;
  SharedGroup group = intake.Take(now);
  for (const int pause : {1, 2, 4, 8, 15, 15}) {
    intake.NoRoom(group, now);
    ASSERT_TRUE(Add(&intake, "later", static_cast<uint64_t>(pause), 1).ok());
    now += absl::Seconds(pause) - absl::Milliseconds(1);
    EXPECT_EQ(intake.Take(now), nullptr) << pause;
    now += absl::Milliseconds(1);
    group = intake.Take(now);
    EXPECT_THAT(Numbers(group), ElementsAre(1)) << pause;
  }
  intake.Applied(*group);
  EXPECT_THAT(Numbers(intake.Take(now)), ElementsAre(1, 2, 4, 8, 15, 15));
}

TEST(IntakeTest, HandsThePartsOfAGroupOutOneAfterAnotherBeforeAnythingLater) {
  Intake intake;
  ASSERT_TRUE(Add(&intake, "a", 1).ok());
  ASSERT_TRUE(Add(&intake, "b", 2).ok());
  const SharedGroup whole = intake.Take(absl::ZeroDuration());
  ASSERT_TRUE(Add(&intake, "a", 3).ok());
  std::vector<SharedGroup> parts;
  for (size_t i = 0; i < 2; ++i) {
    parts.push_back(std::make_shared<EventGroup>(EventGroup{{whole->events[i]}, {10}, {}}));
  }
  intake.Split(parts);
  const SharedGroup first = intake.Take(absl::ZeroDuration());
  EXPECT_THAT(Numbers(first), ElementsAre(1));
  EXPECT_EQ(intake.Take(absl::ZeroDuration()), nullptr);
  intake.NoRoom(first, absl::ZeroDuration());
  EXPECT_EQ(intake.Take(absl::ZeroDuration()), nullptr);
  EXPECT_THAT(Numbers(intake.Take(absl::Seconds(1))), ElementsAre(1));
  intake.Applied(*first);
  EXPECT_THAT(Numbers(intake.TakeAll()), ElementsAre(2, 3));
}

TEST(IntakeTest, BoundsAGroup) {
  Intake intake;
  for (uint64_t i = 1; i <= 600; ++i) ASSERT_TRUE(Add(&intake, std::to_string(i), i).ok());
  EXPECT_EQ(intake.Take(absl::ZeroDuration())->events.size(), 512u);
}

TEST(IntakeTest, GivesUpEverythingInOrderWhenTheStreamEnds) {
  Intake intake;
  ASSERT_TRUE(Add(&intake, "l", 1).ok());
  intake.NoRoom(intake.Take(absl::ZeroDuration()), absl::ZeroDuration());
  ASSERT_TRUE(Add(&intake, "l", 2).ok());
  EXPECT_THAT(Numbers(intake.TakeAll()), ElementsAre(1, 2));
  EXPECT_EQ(intake.TakeAll(), nullptr);
}

}  // namespace
}  // namespace ablate::schedule
