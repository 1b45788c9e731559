// Tests how the time left is read.
#include "server/worker/pilot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace ablate::worker {
namespace {

using testing::HasSubstr;

std::optional<absl::Duration> Read(const std::string& text) {
  const auto time = ParseTimeLeft(text);
  EXPECT_TRUE(time.ok()) << text << ": " << time.status();
  return time.value_or(std::nullopt);
}

TEST(TimeLeftTest, IsReadAsSqueuePrintsIt) {
  EXPECT_EQ(Read("1-02:03:04"), absl::Hours(26) + absl::Minutes(3) + absl::Seconds(4));
  EXPECT_EQ(Read("3:59:30"), absl::Hours(4) - absl::Seconds(30));
  EXPECT_EQ(Read("0:05"), absl::Seconds(5));
  EXPECT_EQ(Read("365-00:00:00"), absl::Hours(24) * 365);
}

TEST(TimeLeftTest, IsUnknownWithoutALimit) {
  for (const char* text : {"", "UNLIMITED", "NOT_SET", "INVALID"}) {
    EXPECT_EQ(Read(text), std::nullopt) << text;
  }
}

TEST(TimeLeftTest, RefusesOtherTexts) {
  for (const char* text : {"soon", "1-2", "1:2:3:4", "-1:00", "1-02:03", "1:x", ":"}) {
    const auto time = ParseTimeLeft(text);
    EXPECT_TRUE(absl::IsInvalidArgument(time.status())) << text;
    EXPECT_THAT(std::string(time.status().message()), HasSubstr("expected one such as 1-12:00:00"));
  }
}

}  // namespace
}  // namespace ablate::worker
