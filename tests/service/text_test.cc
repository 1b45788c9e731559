// Checks of short texts in requests.
#include "server/service/text.h"

#include <gtest/gtest.h>

namespace ablate::service {
namespace {

TEST(IsPrintableTest, CountsCharactersAndRefusesControls) {
  EXPECT_TRUE(IsPrintable("2024-05-01 größe", 64));
  EXPECT_TRUE(IsPrintable("界界", 2));
  EXPECT_FALSE(IsPrintable("界界界", 2));
  EXPECT_FALSE(IsPrintable("", 64));
  EXPECT_FALSE(IsPrintable("a\tb", 64));
  EXPECT_FALSE(IsPrintable(std::string("a\0b", 3), 64));
  EXPECT_FALSE(IsPrintable("\xff", 64));
}

TEST(IsSha256Test, WantsSixtyFourLowerCaseHexDigits) {
  EXPECT_TRUE(IsSha256(std::string(64, 'a')));
  EXPECT_FALSE(IsSha256(std::string(63, 'a')));
  EXPECT_FALSE(IsSha256(std::string(65, 'a')));
  EXPECT_FALSE(IsSha256(std::string(64, 'A')));
  EXPECT_FALSE(IsSha256(std::string(64, 'g')));
}

}  // namespace
}  // namespace ablate::service
