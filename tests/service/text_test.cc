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

}  // namespace
}  // namespace ablate::service
