// Tests hashes with the standard's own examples, whole and in pieces.
#include "base/sha256.h"

#include <gtest/gtest.h>

namespace ablate {
namespace {

// FIPS 180-4, examples for SHA-256.
constexpr char kOfAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256Test, HashesAsTheStandardSays) {
  EXPECT_EQ(Sha256Hex("abc"), kOfAbc);
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256Test, TakesPieces) {
  Sha256 hash;
  hash.Add("a");
  hash.Add("");
  hash.Add("bc");
  EXPECT_EQ(hash.Hex(), kOfAbc);
}

TEST(IsSha256Test, WantsSixtyFourLowerCaseHexDigits) {
  EXPECT_TRUE(IsSha256(std::string(64, 'a')));
  EXPECT_FALSE(IsSha256(std::string(63, 'a')));
  EXPECT_FALSE(IsSha256(std::string(65, 'a')));
  EXPECT_FALSE(IsSha256(std::string(64, 'A')));
  EXPECT_FALSE(IsSha256(std::string(64, 'g')));
}

}  // namespace
}  // namespace ablate
