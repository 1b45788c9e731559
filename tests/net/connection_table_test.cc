// Tests whose a connection is, by the calls that were accepted on it.
#include "server/net/connection_table.h"

#include <gtest/gtest.h>

#include <string>

#include "server/net/public_limits.h"

namespace ablate::net {
namespace {

class ConnectionTableTest : public testing::Test {
 protected:
  std::string Add() { return table_.Add("192.0.2.7:4711"); }

  int changes_ = 0;
  ConnectionTable table_{[this] { ++changes_; }};
};

TEST_F(ConnectionTableTest, SaysWhoseAConnectionIs) {
  const std::string id = Add();
  EXPECT_EQ(table_.UserOf(id), std::nullopt);
  EXPECT_TRUE(table_.LetIn(id, "ada").ok());
  EXPECT_EQ(table_.UserOf(id), "ada");
  EXPECT_TRUE(table_.LetIn(id, "ada").ok());
  EXPECT_EQ(changes_, 1);
  table_.Remove(id);
  EXPECT_EQ(table_.UserOf(id), std::nullopt);
}

TEST_F(ConnectionTableTest, CallsAConnectionOfTwoUsersNobodys) {
  const std::string id = Add();
  for (const char* user : {"ada", "bob", "ada", "cyd"}) EXPECT_TRUE(table_.LetIn(id, user).ok());
  EXPECT_EQ(table_.UserOf(id), "");
  EXPECT_EQ(changes_, 2);
}

TEST_F(ConnectionTableTest, LetsInSoManyConnectionsOfAUser) {
  for (size_t i = 0; i < kMaxConnectionsOfUser; ++i) ASSERT_TRUE(table_.LetIn(Add(), "ada").ok());
  const std::string id = Add();
  const absl::Status refused = table_.LetIn(id, "ada");
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(refused.message(),
            "too many connections at once: ada has 2,048; expected at most 2,048 per user and 4,096 "
            "in all. Retry later");
  EXPECT_EQ(table_.UserOf(id), std::nullopt);
  EXPECT_TRUE(table_.LetIn(id, "bob").ok());
}

TEST_F(ConnectionTableTest, CountsRefusedCallsOfUnauthenticatedPeers) {
  const std::string id = Add();
  EXPECT_EQ(table_.CountRefused(id), 1);
  EXPECT_EQ(table_.CountRefused(id), 2);
  EXPECT_TRUE(table_.LetIn(id, "ada").ok());
  EXPECT_EQ(table_.CountRefused(id), 0);
  EXPECT_EQ(table_.CountRefused("none"), 0);
}

TEST_F(ConnectionTableTest, KnowsWhereConnectionsComeFrom) {
  EXPECT_EQ(table_.AddressOf(Add()), "192.0.2.7:4711");
  EXPECT_EQ(table_.AddressOf("none"), std::nullopt);
}

}  // namespace
}  // namespace ablate::net
