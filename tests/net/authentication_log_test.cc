// Tests which refusals are noted, and that there are few rows however many there are.
#include "server/net/authentication_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace ablate::net {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class AuthenticationLogTest : public testing::Test {
 protected:
  AuthenticationLogTest() {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    storage::AccessOptions options;
    options.path = absl::StrCat(folder_, "/access.db");
    auto store = storage::AccessStore::Open(options);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    log_ = std::make_unique<AuthenticationLog>(store_.get());
    EXPECT_TRUE(store_->Initialize("ada", now_).ok());
    Rows();
  }
  ~AuthenticationLogTest() override { std::filesystem::remove_all(folder_); }

  void Refuse(const std::string& user, const std::string& method,
              const std::string& address = "192.0.2.7:4711") {
    const absl::Status why = user.empty() ? absl::UnauthenticatedError("the token is unknown")
                                          : absl::PermissionDeniedError("needs the role admin");
    log_->NoteRefusal({user, user.empty() ? "" : "0123abcd", method, address, why}, now_);
  }
  // Returns the new rows after a write: "user method resource outcome", the oldest first.
  std::vector<std::string> Rows() {
    EXPECT_TRUE(log_->Write(now_).ok());
    std::vector<std::string> rows;
    const auto page = store_->ListAudits({}, 1000);
    EXPECT_TRUE(page.ok()) << page.status();
    for (const storage::Audit& row : page->rows) {
      if (row.id <= seen_) break;
      rows.insert(rows.begin(),
                  absl::StrCat(row.user, " ", row.method, " ", row.resource, " ", row.outcome));
    }
    if (!page->rows.empty()) seen_ = page->rows[0].id;
    return rows;
  }

  std::string folder_ = "/tmp/ablate-authentication-XXXXXX";
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  std::unique_ptr<storage::AccessStore> store_;
  std::unique_ptr<AuthenticationLog> log_;
  int64_t seen_ = 0;
};

TEST_F(AuthenticationLogTest, WritesTheFirstRefusalAtOnceAndCountsTheRestOfAMinute) {
  Refuse("mia", "Admin.ListAudit");
  EXPECT_THAT(Rows(), ElementsAre("mia Admin.ListAudit from 192.0.2.7 PERMISSION_DENIED: needs the "
                                  "role admin"));
  for (int i = 0; i < 500; ++i) Refuse("mia", "Admin.ListAudit");
  now_ += absl::Seconds(59);
  EXPECT_THAT(Rows(), IsEmpty());
  now_ += absl::Seconds(1);
  EXPECT_THAT(Rows(), ElementsAre("mia Admin.ListAudit from 192.0.2.7 PERMISSION_DENIED: needs the "
                                  "role admin; 500 such calls since 08:00:00 UTC"));
  now_ += absl::Hours(1);
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_F(AuthenticationLogTest, TellsUsersAndMethodsApart) {
  Refuse("mia", "Admin.ListAudit");
  Refuse("mia", "Admin.CreateUser");
  Refuse("bob", "Admin.CreateUser");
  EXPECT_EQ(Rows().size(), 3u);
}

TEST_F(AuthenticationLogTest, TellsUnauthenticatedPeersApartByTheirAddressAlone) {
  Refuse("", "Admin.WhoAmI", "192.0.2.7:1");
  Refuse("", "Runs.GetRun", "192.0.2.7:2");
  Refuse("", "Runs.GetRun", "[2001:db8::1]:3");
  Refuse("", "Runs.GetRun", "");
  EXPECT_THAT(Rows(),
              ElementsAre(" Runs.GetRun from the network UNAUTHENTICATED: the token is unknown",
                          " Runs.GetRun from 192.0.2.7 UNAUTHENTICATED: the token is unknown; 2 "
                          "such calls since 08:00:00 UTC",
                          " Runs.GetRun from [2001:db8::1] UNAUTHENTICATED: the token is unknown"));
}

TEST_F(AuthenticationLogTest, WritesFewRowsHoweverManyAddressesThereAre) {
  size_t rows = 0;
  for (int minute = 0; minute < 10; ++minute) {
    for (int i = 0; i < 3'000; ++i) Refuse("", "", absl::StrCat("10.0.", i, ".", minute, ":1"));
    rows += Rows().size();
    now_ += absl::Minutes(1);
  }
  EXPECT_LE(rows, AuthenticationLog::kRowBurst + 10u);
  EXPECT_GE(rows, AuthenticationLog::kRowBurst + 5u);
  Refuse("mia", "Admin.ListAudit");
  EXPECT_EQ(Rows().size(), 2u) << "unauthenticated peers leave users their rows";
}

TEST_F(AuthenticationLogTest, GoesOnWhenTheClockIsSetBack) {
  Refuse("mia", "Admin.ListAudit");
  EXPECT_EQ(Rows().size(), 1u);
  now_ -= absl::Hours(10);
  Refuse("mia", "Admin.ListAudit");
  EXPECT_EQ(Rows().size(), 1u);
}

TEST_F(AuthenticationLogTest, NotesWhichTokensWereUsed) {
  const auto token = store_->IssueToken("ada", "", std::nullopt, {"ada", ""}, now_);
  ASSERT_TRUE(token.ok()) << token.status();
  log_->NoteUse(token->token.id);
  log_->NoteUse("of nobody");
  EXPECT_FALSE(store_->ListTokens()[0].last_used.has_value());
  EXPECT_TRUE(log_->Write(now_).ok());
  EXPECT_EQ(store_->ListTokens()[0].last_used, now_);
}

}  // namespace
}  // namespace ablate::net
