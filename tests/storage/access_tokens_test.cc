// Tests tokens: their form, validity, and notification of their end.
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "tests/storage/access_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class AccessTokensTest : public AccessTest {
 protected:
  AccessTokensTest() { Create("ann"); }
  // Returns all bytes of all files of the folder.
  std::string AllBytes() const {
    std::string all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder())) {
      std::ifstream file(entry.path(), std::ios::binary);
      all.append(std::istreambuf_iterator<char>(file), {});
    }
    return all;
  }
  Token Only(const std::string& user) {
    const auto tokens = store().ListTokens(user);
    EXPECT_THAT(tokens, SizeIs(1));
    return tokens.empty() ? Token() : tokens[0];
  }
};

TEST_F(AccessTokensTest, MakesSecretsOf256Bits) {
  std::set<std::string> secrets;
  std::set<std::string> ids;
  for (int i = 0; i < 50; ++i) {
    const IssuedToken issued = Issue("ann");
    ASSERT_EQ(issued.secret.substr(0, 7), "ablate_");
    std::string bytes;
    ASSERT_TRUE(absl::WebSafeBase64Unescape(issued.secret.substr(7), &bytes));
    EXPECT_EQ(bytes.size(), 32u);
    EXPECT_EQ(issued.secret.size(), 50u);
    EXPECT_EQ(issued.token.id.size(), 8u);
    EXPECT_THAT(issued.token.id, ::testing::MatchesRegex("[0-9a-f]*"));
    EXPECT_THAT(issued.secret, Not(HasSubstr(issued.token.id)));
    secrets.insert(issued.secret);
    ids.insert(issued.token.id);
  }
  EXPECT_THAT(secrets, SizeIs(50));
  EXPECT_THAT(ids, SizeIs(50));
}

TEST_F(AccessTokensTest, StoresNoSecret) {
  std::vector<std::string> secrets;
  for (int i = 0; i < 20; ++i) secrets.push_back(Issue("ann").secret);
  store().NoteUse(Value(store().Identify(secrets[0], kStart)).token, kStart);
  EXPECT_FALSE(store().Identify(secrets[0] + "x", kStart).ok());
  ASSERT_TRUE(store().RevokeToken(store().ListTokens("ann")[0].id, kRoot, kStart).ok());
  for (int opened = 0; opened < 2; ++opened, Reopen()) {
    const std::string all = AllBytes();
    for (const std::string& secret : secrets) {
      std::string bytes;
      ASSERT_TRUE(absl::WebSafeBase64Unescape(secret.substr(7), &bytes));
      EXPECT_THAT(all, Not(HasSubstr(bytes)));
      EXPECT_THAT(all, Not(HasSubstr(secret.substr(7, 16))));
      EXPECT_THAT(all, Not(HasSubstr(secret.substr(34))));
      EXPECT_THAT(all, Not(HasSubstr(absl::BytesToHexString(bytes).substr(0, 16))));
      EXPECT_THAT(all, HasSubstr(Sha256Hex(secret)));
    }
  }
}

TEST_F(AccessTokensTest, ReadsTokensAgain) {
  const IssuedToken forever = Issue("ann");
  const IssuedToken short_lived =
      Value(store().IssueToken("root", "", absl::Minutes(5), kRoot, After(absl::Seconds(1))));
  store().NoteUse(forever.token.id, After(absl::Seconds(7)));
  ASSERT_TRUE(store().RevokeToken(short_lived.token.id, kRoot, After(absl::Seconds(9))).ok());
  for (int opened = 0; opened < 2; ++opened, Reopen()) {
    const auto tokens = store().ListTokens();
    ASSERT_THAT(tokens, SizeIs(2));
    EXPECT_EQ(tokens[0].id, forever.token.id);
    EXPECT_EQ(tokens[0].user, "ann");
    EXPECT_EQ(tokens[0].note, "laptop");
    EXPECT_EQ(tokens[0].created, kStart);
    EXPECT_EQ(tokens[0].expires, std::nullopt);
    EXPECT_EQ(tokens[0].revoked, std::nullopt);
    EXPECT_EQ(tokens[0].last_used, After(absl::Seconds(7)));
    EXPECT_EQ(tokens[1].id, short_lived.token.id);
    EXPECT_EQ(tokens[1].note, "");
    EXPECT_EQ(tokens[1].expires, After(absl::Seconds(301)));
    EXPECT_EQ(tokens[1].revoked, After(absl::Seconds(9)));
    EXPECT_EQ(tokens[1].last_used, std::nullopt);
    EXPECT_THAT(store().ListTokens("root"), SizeIs(1));
    EXPECT_THAT(store().ListTokens("nobody"), IsEmpty());
    EXPECT_EQ(Value(store().Identify(forever.secret, After(absl::Seconds(7)))).user, "ann");
  }
}

TEST_F(AccessTokensTest, SaysWhomASecretStandsFor) {
  const IssuedToken issued = Issue("ann");
  const Caller caller = Value(store().Identify(issued.secret, kStart));
  EXPECT_EQ(caller.user, "ann");
  EXPECT_EQ(caller.role, Role::kMember);
  EXPECT_EQ(caller.token, issued.token.id);
  EXPECT_TRUE(store().CheckStill(caller, kStart).ok());
}

TEST_F(AccessTokensTest, IdentifiesWithoutTheDisk) {
  const IssuedToken issued = Issue("ann");
  const auto caller = store().Identify(issued.secret, kStart);
  ASSERT_TRUE(caller.ok()) << caller.status();
  EXPECT_EQ(caller->user, "ann");
  EXPECT_EQ(Only("ann").last_used, std::nullopt);
  store().NoteUse(issued.token.id, kStart);
  EXPECT_EQ(Only("ann").last_used, kStart);
  store().NoteUse("of nobody", kStart);
}

TEST_F(AccessTokensTest, FindsTheTokenOfASecretAlsoWhenItHasEnded) {
  const IssuedToken issued = Issue("ann");
  ASSERT_TRUE(store().RevokeToken(issued.token.id, kRoot, kStart).ok());
  const std::optional<Token> found = store().FindToken(issued.secret);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->user, "ann");
  EXPECT_TRUE(absl::IsUnauthenticated(store().Identify(issued.secret, kStart).status()));
  EXPECT_FALSE(store().FindToken("ablate_" + std::string(43, 'A')).has_value());
  EXPECT_FALSE(store().FindToken("").has_value());
}

TEST_F(AccessTokensTest, RefusesWhatIsNoToken) {
  const std::string secret = Issue("ann").secret;
  std::string last_changed = secret;
  last_changed.back() = secret.back() == 'A' ? 'E' : 'A';
  for (const std::string& wrong :
       {std::string(), std::string("ablate_"), secret.substr(0, 49), secret + "A", " " + secret,
        last_changed, absl::AsciiStrToUpper(secret), "ABLATE_" + secret.substr(7),
        Sha256Hex(secret), secret.substr(7), std::string(50, '\0'), std::string(1 << 20, 'a')}) {
    EXPECT_EQ(store().Identify(wrong, kStart).status(),
              absl::UnauthenticatedError(
                  "the token is unknown to this server. Log in with a join file of this server"))
        << wrong.substr(0, 60);
  }
}

TEST_F(AccessTokensTest, ExpiresOnTime) {
  const IssuedToken issued = Issue("ann", absl::Hours(24));
  const absl::Time end = After(absl::Hours(24));
  const Caller caller = Value(store().Identify(issued.secret, end - absl::Microseconds(1)));
  EXPECT_TRUE(store().CheckStill(caller, end - absl::Microseconds(1)).ok());
  const absl::Status expired =
      absl::UnauthenticatedError("the token expired on 2026-01-03 03:04:05 UTC");
  EXPECT_EQ(store().Identify(issued.secret, end).status(), expired);
  EXPECT_EQ(store().CheckStill(caller, end), expired);
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(AccessTokensTest, TellsWhatExpiredBetween) {
  const IssuedToken first = Issue("ann", absl::Seconds(10));
  const IssuedToken second = Issue("ann", absl::Seconds(20));
  const IssuedToken revoked = Issue("ann", absl::Seconds(20));
  Issue("ann");
  ASSERT_TRUE(store().RevokeToken(revoked.token.id, kRoot, kStart).ok());
  const auto between = [&](int after, int until) {
    return store().ExpiredBetween(After(absl::Seconds(after)), After(absl::Seconds(until)));
  };
  EXPECT_THAT(between(0, 9), IsEmpty());
  EXPECT_THAT(between(9, 10), ElementsAre(first.token.id));
  EXPECT_THAT(between(10, 20), ElementsAre(second.token.id));
  EXPECT_THAT(between(20, 1000), IsEmpty());
  EXPECT_THAT(store().ExpiredBetween(absl::InfinitePast(), absl::InfiniteFuture()), SizeIs(2));
}

TEST_F(AccessTokensTest, RevokesAtOnce) {
  const IssuedToken issued = Issue("ann", absl::Hours(24));
  const IssuedToken other = Issue("ann");
  const Caller caller = Value(store().Identify(issued.secret, kStart));
  ASSERT_TRUE(store().RevokeToken(issued.token.id, kRoot, After(absl::Minutes(1))).ok());
  EXPECT_THAT(ended_, ElementsAre(ElementsAre(issued.token.id)));
  const absl::Status revoked =
      absl::UnauthenticatedError("the token was revoked on 2026-01-02 03:05:05 UTC");
  EXPECT_EQ(store().Identify(issued.secret, After(absl::Minutes(2))).status(), revoked);
  EXPECT_EQ(store().CheckStill(caller, After(absl::Minutes(2))), revoked);
  EXPECT_EQ(store().Identify(issued.secret, After(absl::Hours(48))).status(), revoked);
  EXPECT_TRUE(store().Identify(other.secret, kStart).ok());
  ASSERT_TRUE(store().RevokeToken(issued.token.id, kRoot, After(absl::Hours(1))).ok());
  EXPECT_THAT(ended_, SizeIs(1)) << "it was revoked before";
  Reopen();
  EXPECT_EQ(store().Identify(issued.secret, After(absl::Minutes(2))).status(), revoked);
  EXPECT_EQ(store().RevokeToken("none", kRoot, kStart),
            absl::NotFoundError("there is no token 'none'"));
}

TEST_F(AccessTokensTest, SaysThatARevokedOneExpiredIfThatWasFirst) {
  const IssuedToken issued = Issue("ann", absl::Minutes(1));
  ASSERT_TRUE(store().RevokeToken(issued.token.id, kRoot, After(absl::Minutes(2))).ok());
  EXPECT_EQ(store().Identify(issued.secret, After(absl::Minutes(3))).status(),
            absl::UnauthenticatedError("the token expired on 2026-01-02 03:05:05 UTC"));
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(AccessTokensTest, RefusesNotesAndLifetimes) {
  const auto issue = [&](const std::string& note, std::optional<absl::Duration> lifetime) {
    return store().IssueToken("ann", note, lifetime, kRoot, kStart).status();
  };
  EXPECT_TRUE(issue(std::string(200, 'n'), absl::Seconds(1)).ok());
  EXPECT_TRUE(issue("Änne’s laptop", absl::Hours(24 * 3650)).ok());
  EXPECT_EQ(
      issue("a\nb", {}),
      absl::InvalidArgumentError(
          "note: 'a\\nb' is invalid; expected at most 200 characters without control characters"));
  EXPECT_EQ(CodeOf(issue(std::string(201, 'n'), {})), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(issue("\xff", {})), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(issue("", absl::ZeroDuration()),
            absl::InvalidArgumentError("lifetime: 0; expected 1 second to 3,650 days, or none"));
  for (const absl::Duration wrong :
       {absl::Seconds(-1), absl::Milliseconds(999), absl::Hours(24 * 3650) + absl::Nanoseconds(1),
        absl::InfiniteDuration(), -absl::InfiniteDuration()}) {
    EXPECT_EQ(CodeOf(issue("", wrong)), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

TEST_F(AccessTokensTest, WritesOnceAMinuteThatATokenIsUsed) {
  const IssuedToken issued = Issue("ann");
  const int before = disk_.syncs;
  for (int i = 0; i < 60; ++i) {
    store().NoteUse(issued.token.id, After(absl::Seconds(i)));
    EXPECT_EQ(Only("ann").last_used, After(absl::Seconds(i)));
  }
  EXPECT_EQ(disk_.syncs, before + 1);
  Reopen();
  EXPECT_EQ(Only("ann").last_used, kStart);
  store().NoteUse(issued.token.id, After(absl::Seconds(61)));
  Reopen();
  EXPECT_EQ(Only("ann").last_used, After(absl::Seconds(61)));
}

TEST_F(AccessTokensTest, LetsCallersInWhenTheDiskIsFull) {
  const IssuedToken issued = Issue("ann");
  disk_.room = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(store().Identify(issued.secret, After(absl::Hours(i))).ok());
    store().NoteUse(issued.token.id, After(absl::Hours(i)));
  }
  disk_.room = INT64_MAX;
  store().NoteUse(issued.token.id, After(absl::Hours(3)));
  Reopen();
  EXPECT_EQ(Only("ann").last_used, After(absl::Hours(3)));
}

TEST_F(AccessTokensTest, HasALimitOfValidTokensAUser) {
  Tamper(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) INSERT INTO "
      "tokens SELECT 't' || i, 'h' || i, 'ann', '', 1, 1900000000000000, 0, 0 FROM n");
  Reopen();
  EXPECT_EQ(store().IssueToken("ann", "", {}, kRoot, kStart).status(),
            absl::ResourceExhaustedError(
                "user 'ann' has 100 valid tokens, which is the limit. Revoke one first"));
  Issue("root");
  ASSERT_TRUE(store().RevokeToken("t5", kRoot, kStart).ok());
  Issue("ann");
  EXPECT_FALSE(store().IssueToken("ann", "", {}, kRoot, kStart).ok());
  Issue("ann", absl::Hours(1), absl::FromUnixSeconds(1900000000));  // the others have expired
}

TEST_F(AccessTokensTest, ForgetsWhatEndedLongAgo) {
  const IssuedToken first = Issue("ann", absl::Hours(1));
  const IssuedToken second = Issue("ann", absl::Hours(2));
  const IssuedToken revoked = Issue("ann");
  ASSERT_TRUE(store().RevokeToken(revoked.token.id, kRoot, kStart).ok());
  // Other tokens, which ended between the two that expire.
  Tamper(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999) INSERT INTO "
      "tokens SELECT 't' || i, 'h' || i, 'gone', '', 1, 0, (SELECT 5400000000 + min(created) FROM "
      "tokens), 0 FROM n");
  Reopen();
  const absl::Time now = After(absl::Hours(3));
  const IssuedToken last = Issue("ann", std::nullopt, now);
  const absl::Status forgotten = absl::UnauthenticatedError(
      "the token is unknown to this server. Log in with a join file of this server");
  for (int opened = 0; opened < 2; ++opened, Reopen()) {
    EXPECT_EQ(store().Identify(first.secret, now).status(), forgotten);
    EXPECT_EQ(store().CheckStill({"ann", Role::kMember, first.token.id}, now), forgotten);
    EXPECT_EQ(store().Identify(revoked.secret, now).status(), forgotten);
    EXPECT_THAT(store().Identify(second.secret, now).status().message(), HasSubstr("expired"));
    EXPECT_TRUE(store().Identify(last.secret, now).ok());
    EXPECT_THAT(store().ListTokens(), SizeIs(AccessStore::kMaxEndedTokens + 1));
  }
}

TEST_F(AccessTokensTest, SaysInTheLogWhatHappenedToTokens) {
  const IssuedToken issued = Issue("ann", absl::Hours(1));
  const IssuedToken forever = Issue("ann");
  ASSERT_TRUE(store().RevokeToken(issued.token.id, {"ann", issued.token.id}, kStart).ok());
  const std::string id = issued.token.id;
  AuditQuery query;
  query.method_prefix = "access/";
  EXPECT_THAT(
      Log(query, 3),
      ElementsAre(absl::StrCat("ann ", id, " access/RevokeToken tokens/", id, " OK: of users/ann"),
                  absl::StrCat("root feedbeef access/IssueToken tokens/", forever.token.id,
                               " OK: for users/ann, valid until it is revoked"),
                  absl::StrCat("root feedbeef access/IssueToken tokens/", id,
                               " OK: for users/ann, valid until 2026-01-02 04:04:05 UTC")));
  EXPECT_THAT(Log(), Each(Not(HasSubstr("ablate_"))));
}

}  // namespace
}  // namespace ablate::storage
