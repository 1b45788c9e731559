// Tests which releases work together.
#include "server/rpc/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ablate::rpc {
namespace {

using testing::HasSubstr;

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

TEST(ReleasesTest, WorkTogetherIfOneMinorReleaseApart) {
  for (const char* caller : {"1.3.0", "1.4.0", "1.4.7", "1.5.2"}) {
    EXPECT_TRUE(CheckReleases("1.4.1", caller).ok()) << caller;
  }
}

TEST(ReleasesTest, AreBothNamedIfFurtherApart) {
  const absl::Status old = CheckReleases("1.4.1", "1.2.9");
  EXPECT_TRUE(absl::IsFailedPrecondition(old));
  EXPECT_THAT(MessageOf(old), HasSubstr("the server is of release 1.4.1, this program of release "
                                        "1.2.9;"));
  EXPECT_THAT(MessageOf(old), HasSubstr("Install a newer program"));
  for (const char* caller : {"1.6.0", "2.4.1"}) {
    EXPECT_THAT(MessageOf(CheckReleases("1.4.1", caller)), HasSubstr("Upgrade the server"))
        << caller;
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckReleases("1.4.1", "0.4.1")));
}

TEST(ReleasesTest, MustHaveThreeNumbers) {
  for (const char* caller : {"", "1", "1.4", "1.x.0", "a.4.0", "1.4.0.0", "-"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckReleases("1.4.1", caller))) << caller;
  }
}

}  // namespace
}  // namespace ablate::rpc
