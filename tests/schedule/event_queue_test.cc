// Tests groups of events: one at a time, bounded, repeated if there was no room.
#include "server/schedule/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ablate::schedule {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kCredit = 100;

storage::LeaseEvent Event(const std::string& lease, uint64_t seq) {
  return {lease, seq, storage::StartedEvent{}};
}

absl::Status Add(EventQueue* queue, const std::string& lease, uint64_t seq, uint64_t bytes = 10) {
  return queue->Add(Event(lease, seq), bytes, {kCredit, 100 * kCredit}, nullptr);
}

std::vector<uint64_t> Numbers(const SharedGroup& group) {
  std::vector<uint64_t> numbers;
  if (group == nullptr) return numbers;
  for (const storage::LeaseEvent& event : group->events) numbers.push_back(event.seq);
  return numbers;
}

TEST(EventQueueTest, CollectsWhileAGroupIsWithTheStore) {
  EventQueue queue;
  EXPECT_EQ(queue.Take(absl::ZeroDuration()), nullptr);
  ASSERT_TRUE(Add(&queue, "l", 1).ok());
  const SharedGroup first = queue.Take(absl::ZeroDuration());
  EXPECT_THAT(Numbers(first), ElementsAre(1));
  ASSERT_TRUE(Add(&queue, "l", 2).ok());
  ASSERT_TRUE(Add(&queue, "l", 3).ok());
  EXPECT_EQ(queue.Take(absl::ZeroDuration()), nullptr);
  queue.Applied(*first);
  EXPECT_THAT(Numbers(queue.Take(absl::ZeroDuration())), ElementsAre(2, 3));
}

TEST(EventQueueTest, RefusesMoreThanALeasesCreditUntilItIsApplied) {
  EventQueue queue;
  ASSERT_TRUE(Add(&queue, "l", 1, 60).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Add(&queue, "l", 2, 60)));
  EXPECT_TRUE(Add(&queue, "other", 1, 60).ok());
  const SharedGroup group = queue.Take(absl::ZeroDuration());
  EXPECT_TRUE(absl::IsResourceExhausted(Add(&queue, "l", 2, 60)));
  queue.Applied(*group);
  EXPECT_TRUE(Add(&queue, "l", 2, 60).ok());
}

TEST(EventQueueTest, TakesOneEventThatIsLargerThanTheCredit) {
  EventQueue queue;
  EXPECT_TRUE(Add(&queue, "l", 1, 100'000).ok());
}

TEST(EventQueueTest, RefusesMoreThanAStreamMayHaveWhateverTheLeasesNames) {
  EventQueue queue;
  const EventQueue::Limits limits{kCredit, 250};
  for (uint64_t i = 1; i <= 2; ++i) {
    ASSERT_TRUE(queue.Add(Event(std::to_string(i), 1), 100, limits, nullptr).ok());
  }
  const SharedGroup group = queue.Take(absl::ZeroDuration());
  EXPECT_TRUE(absl::IsResourceExhausted(queue.Add(Event("3", 1), 100, limits, nullptr)));
  queue.Applied(*group);
  EXPECT_TRUE(queue.Add(Event("3", 1), 100, limits, nullptr).ok());
}

TEST(EventQueueTest, HandsTheSameGroupOutAgainAfterEverLongerPauses) {
  EventQueue queue;
  ASSERT_TRUE(Add(&queue, "l", 1).ok());
  absl::Duration now;
  SharedGroup group = queue.Take(now);
  for (const int pause : {1, 2, 4, 8, 15, 15}) {
    queue.NoRoom(group, now);
    ASSERT_TRUE(Add(&queue, "later", static_cast<uint64_t>(pause), 1).ok());
    now += absl::Seconds(pause) - absl::Milliseconds(1);
    EXPECT_EQ(queue.Take(now), nullptr) << pause;
    now += absl::Milliseconds(1);
    group = queue.Take(now);
    EXPECT_THAT(Numbers(group), ElementsAre(1)) << pause;
  }
  queue.Applied(*group);
  EXPECT_THAT(Numbers(queue.Take(now)), ElementsAre(1, 2, 4, 8, 15, 15));
}

TEST(EventQueueTest, HandsThePartsOfAGroupOutOneAfterAnotherBeforeAnythingLater) {
  EventQueue queue;
  ASSERT_TRUE(Add(&queue, "a", 1).ok());
  ASSERT_TRUE(Add(&queue, "b", 2).ok());
  const SharedGroup whole = queue.Take(absl::ZeroDuration());
  ASSERT_TRUE(Add(&queue, "a", 3).ok());
  std::vector<SharedGroup> parts;
  for (size_t i = 0; i < 2; ++i) {
    parts.push_back(std::make_shared<EventGroup>(EventGroup{{whole->events[i]}, {10}, {}}));
  }
  queue.Split(parts);
  const SharedGroup first = queue.Take(absl::ZeroDuration());
  EXPECT_THAT(Numbers(first), ElementsAre(1));
  EXPECT_EQ(queue.Take(absl::ZeroDuration()), nullptr);
  queue.NoRoom(first, absl::ZeroDuration());
  EXPECT_EQ(queue.Take(absl::ZeroDuration()), nullptr);
  EXPECT_THAT(Numbers(queue.Take(absl::Seconds(1))), ElementsAre(1));
  queue.Applied(*first);
  EXPECT_THAT(Numbers(queue.TakeAll()), ElementsAre(2, 3));
}

TEST(EventQueueTest, BoundsAGroup) {
  EventQueue queue;
  for (uint64_t i = 1; i <= 600; ++i) ASSERT_TRUE(Add(&queue, std::to_string(i), i).ok());
  EXPECT_EQ(queue.Take(absl::ZeroDuration())->events.size(), 512u);
}

TEST(EventQueueTest, GivesUpEverythingInOrderWhenTheStreamEnds) {
  EventQueue queue;
  ASSERT_TRUE(Add(&queue, "l", 1).ok());
  queue.NoRoom(queue.Take(absl::ZeroDuration()), absl::ZeroDuration());
  ASSERT_TRUE(Add(&queue, "l", 2).ok());
  EXPECT_THAT(Numbers(queue.TakeAll()), ElementsAre(1, 2));
  EXPECT_EQ(queue.TakeAll(), nullptr);
}

}  // namespace
}  // namespace ablate::schedule
