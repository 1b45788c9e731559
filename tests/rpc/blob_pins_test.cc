// Tests that blobs are pinned until the events that name them are durable.
#include "server/rpc/blob_pins.h"

#include <gtest/gtest.h>

#include <utility>

namespace ablate::service {
namespace {

std::shared_ptr<storage::Blobs::Pin> CountedPin(const std::string& sha256, int* alive) {
  ++*alive;
  return std::make_shared<storage::Blobs::Pin>(sha256, 3, [alive] { --*alive; });
}

TEST(BlobPinsTest, LetsGoWhenTheEventThatNamesItIsAcknowledged) {
  int alive = 0;
  rpc::BlobPins pins;
  pins.Hold("lease", CountedPin("a", &alive));
  pins.Hold("lease", CountedPin("b", &alive));
  pins.Acknowledged("lease", 7);
  EXPECT_EQ(alive, 2);  // nothing named them yet
  pins.Named("lease", 8, "a");
  pins.Named("lease", 9, "b");
  pins.Acknowledged("lease", 8);
  EXPECT_EQ(alive, 1);
  pins.Acknowledged("lease", 9);
  EXPECT_EQ(alive, 0);
  EXPECT_TRUE(pins.Leases().empty());
}

TEST(BlobPinsTest, KeepsLeasesApart) {
  int alive = 0;
  rpc::BlobPins pins;
  pins.Hold("one", CountedPin("a", &alive));
  pins.Hold("two", CountedPin("a", &alive));
  pins.Named("one", 1, "a");
  pins.Acknowledged("two", 1);
  EXPECT_EQ(alive, 2);
  pins.DropLease("two");
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(pins.Leases(), std::vector<std::string>{"one"});
}

TEST(BlobPinsTest, HoldsWhatWasWrittenUnderALeaseUntilItIsDurable) {
  int alive = 0;
  rpc::BlobPins pins;
  EXPECT_FALSE(pins.Holds("one", "a"));
  pins.Hold("one", CountedPin("a", &alive));
  EXPECT_TRUE(pins.Holds("one", "a"));
  EXPECT_FALSE(pins.Holds("two", "a"));
  EXPECT_FALSE(pins.Holds("one", "b"));
  pins.Named("one", 1, "a");
  EXPECT_TRUE(pins.Holds("one", "a"));
  pins.Acknowledged("one", 1);
  EXPECT_FALSE(pins.Holds("one", "a"));
}

// Otherwise it would unpin a blob that no durable event names.
TEST(BlobPinsTest, AnEventThatWasAcknowledgedNamesNothingNew) {
  int alive = 0;
  rpc::BlobPins pins;
  pins.Hold("lease", CountedPin("a", &alive));
  pins.Hold("lease", CountedPin("b", &alive));
  pins.Named("lease", 1, "a");
  pins.Acknowledged("lease", 1);
  pins.Named("lease", 1, "b");
  pins.Acknowledged("lease", 1);
  EXPECT_TRUE(pins.Holds("lease", "b"));
  EXPECT_EQ(alive, 1);
}

TEST(BlobPinsTest, BoundsWhatALeaseHasThatNoDurableEventNames) {
  int alive = 0;
  rpc::BlobPins pins;
  EXPECT_TRUE(pins.Begin("lease", 6, 10).ok());
  const absl::Status more = pins.Begin("lease", 5, 10);
  EXPECT_TRUE(absl::IsResourceExhausted(more));
  EXPECT_EQ(more.message(),
            "lease lease: 6 written bytes without a durable event; expected at most 10");
  EXPECT_TRUE(pins.Begin("other", 5, 10).ok()) << "another lease's";
  pins.Hold("lease", CountedPin("a", &alive));  // of three bytes
  pins.End("lease", 6);
  EXPECT_FALSE(pins.Begin("lease", 8, 10).ok());
  pins.Named("lease", 1, "a");
  pins.Acknowledged("lease", 1);
  EXPECT_TRUE(pins.Begin("lease", 10, 10).ok());
  pins.End("lease", 10);
  pins.End("nobody", 1);
}

}  // namespace
}  // namespace ablate::service
