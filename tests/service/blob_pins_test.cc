// Blobs held until the events that name them are durable.
#include "server/service/blob_pins.h"

#include <gtest/gtest.h>

#include <utility>

namespace ablate::service {
namespace {

class CountedPin : public storage::Blobs::Pin {
 public:
  CountedPin(std::string sha256, int* alive) : sha256_(std::move(sha256)), alive_(alive) {
    ++*alive_;
  }
  ~CountedPin() override { --*alive_; }
  const std::string& sha256() const override { return sha256_; }
  uint64_t size() const override { return 0; }

 private:
  const std::string sha256_;
  int* const alive_;
};

TEST(BlobPinsTest, LetsGoWhenTheEventThatNamesItIsAcknowledged) {
  int alive = 0;
  BlobPins pins;
  pins.Hold("lease", std::make_shared<CountedPin>("a", &alive));
  pins.Hold("lease", std::make_shared<CountedPin>("b", &alive));
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
  BlobPins pins;
  pins.Hold("one", std::make_shared<CountedPin>("a", &alive));
  pins.Hold("two", std::make_shared<CountedPin>("a", &alive));
  pins.Named("one", 1, "a");
  pins.Acknowledged("two", 1);
  EXPECT_EQ(alive, 2);
  pins.DropLease("two");
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(pins.Leases(), std::vector<std::string>{"one"});
}

}  // namespace
}  // namespace ablate::service
