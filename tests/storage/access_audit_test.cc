// Tests the audit log.
#include "absl/strings/str_cat.h"
#include "tests/storage/access_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AccessAuditTest : public AccessTest {
 protected:
  // Adds a row of `user` at second `second`.
  void Add(const std::string& user, const std::string& method, int second) {
    const absl::Time time = After(absl::Seconds(second));
    ASSERT_TRUE(store().Record({0, time, user, "", method, absl::StrCat(second), "OK"}).ok());
  }
  // Returns the resources of matching rows.
  std::vector<std::string> Found(const AuditQuery& query) {
    std::vector<std::string> found;
    for (const Audit& row : Value(store().ListAudits(query, 1000)).rows) {
      found.push_back(row.resource);
    }
    return found;
  }
  void AddSome() {
    Add("ann", "v1/Delete", 1);
    Add("bob", "v1/Delete", 2);
    Add("ann", "v1/Create", 3);
    Add("", "v1/Create", 4);
  }
};

TEST_F(AccessAuditTest, KeepsEveryField) {
  ASSERT_TRUE(store()
                  .Record({77, After(absl::Seconds(3)), "ann", "01234567", "v1/Delete",
                           "experiments/x", "PERMISSION_DENIED"})
                  .ok());
  for (int opened = 0; opened < 2; ++opened, Reopen()) {
    const AuditPage page = Value(store().ListAudits({}, 10));
    ASSERT_THAT(page.rows, SizeIs(2));
    const Audit& row = page.rows[0];
    EXPECT_EQ(row.id, 2);
    EXPECT_EQ(row.time, After(absl::Seconds(3)));
    EXPECT_EQ(row.user, "ann");
    EXPECT_EQ(row.token, "01234567");
    EXPECT_EQ(row.method, "v1/Delete");
    EXPECT_EQ(row.resource, "experiments/x");
    EXPECT_EQ(row.outcome, "PERMISSION_DENIED");
    EXPECT_EQ(page.next, std::nullopt);
  }
  EXPECT_THAT(Log(), ElementsAre("ann 01234567 v1/Delete experiments/x PERMISSION_DENIED",
                                 "root  access/CreateUser users/root OK: role admin"));
}

TEST_F(AccessAuditTest, FindsByUserMethodAndTime) {
  AddSome();
  AuditQuery query;
  EXPECT_THAT(Found(query), ElementsAre("4", "3", "2", "1", "users/root"));
  query.user = "ann";
  EXPECT_THAT(Found(query), ElementsAre("3", "1"));
  query.method_prefix = "v1/C";
  EXPECT_THAT(Found(query), ElementsAre("3"));
  query.user = "an";
  EXPECT_THAT(Found(query), IsEmpty());
  query = {};
  query.method_prefix = "v1/";
  EXPECT_THAT(Found(query), SizeIs(4));
  query.method_prefix = "v1/Delete";
  EXPECT_THAT(Found(query), ElementsAre("2", "1"));
  query.method_prefix = "1/Delete";
  EXPECT_THAT(Found(query), IsEmpty());
  query = {};
  query.since = After(absl::Seconds(2));
  EXPECT_THAT(Found(query), ElementsAre("4", "3", "2"));
  query.until = After(absl::Seconds(4));
  EXPECT_THAT(Found(query), ElementsAre("3", "2"));
  query.since = query.until;
  EXPECT_THAT(Found(query), IsEmpty());
}

TEST_F(AccessAuditTest, PagesStayTheSameWhileRowsAreAdded) {
  AddSome();
  AuditQuery query;
  query.method_prefix = "v1/";
  const AuditPage first = Value(store().ListAudits(query, 2));
  ASSERT_THAT(first.rows, SizeIs(2));
  EXPECT_EQ(first.rows[1].resource, "3");
  ASSERT_TRUE(first.next.has_value());
  Add("ann", "v1/Delete", 5);
  query.before = *first.next;
  const AuditPage second = Value(store().ListAudits(query, 2));
  ASSERT_THAT(second.rows, SizeIs(2));
  EXPECT_EQ(second.rows[0].resource, "2");
  EXPECT_EQ(second.rows[1].resource, "1");
  EXPECT_EQ(second.next, std::nullopt) << "the first user's row is of another method";
}

TEST_F(AccessAuditTest, TakesALimitOutOfRangeAsTheNearest) {
  AddSome();
  for (const int64_t limit : {int64_t{0}, INT64_MIN}) {
    const AuditPage page = Value(store().ListAudits({}, limit));
    EXPECT_THAT(page.rows, SizeIs(1));
    EXPECT_TRUE(page.next.has_value());
  }
  EXPECT_THAT(Value(store().ListAudits({}, INT64_MAX)).rows, SizeIs(5));
}

TEST_F(AccessAuditTest, ForgetsTheOldest) {
  KeepAudits(3);
  Reopen();
  AddSome();
  EXPECT_THAT(Found({}), ElementsAre("4", "3", "2"));
  Create("ann");
  EXPECT_THAT(Found({}), ElementsAre("users/ann", "4", "3"));
  KeepAudits(1);
  Reopen();
  EXPECT_THAT(Found({}), SizeIs(3));
  Add("ann", "v1/Delete", 6);
  EXPECT_THAT(Found({}), ElementsAre("6"));
  EXPECT_EQ(Value(store().ListAudits({}, 9)).rows[0].id, 7) << "no id comes twice";
}

TEST_F(AccessAuditTest, CutsAndCleansTexts) {
  Audit audit;
  audit.time = kStart;
  audit.user = "\xff";
  audit.method = "a\nb\x1b[31m";
  audit.resource = std::string(10'000, 'r');
  audit.outcome = std::string("x\0y", 3);
  ASSERT_TRUE(store().Record(audit).ok());
  const Audit row = Value(store().ListAudits({}, 1)).rows[0];
  EXPECT_EQ(row.user, "\xef\xbf\xbd");
  EXPECT_EQ(row.method,
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd[31m");
  EXPECT_EQ(row.resource, std::string(500, 'r'));
  EXPECT_EQ(row.outcome, "x\xef\xbf\xbdy");
}

TEST_F(AccessAuditTest, RemembersTheNamesOfDeletedUsers) {
  Create("ann");
  Add("ann", "v1/Delete", 1);
  ASSERT_TRUE(store().DeleteUser("ann", kRoot, kStart).ok());
  AuditQuery query;
  query.user = "ann";
  EXPECT_THAT(Found(query), ElementsAre("1"));
  EXPECT_THAT(Log({}, 1), ElementsAre("root feedbeef access/DeleteUser users/ann OK: with 0 valid "
                                      "tokens"));
}

}  // namespace
}  // namespace ablate::storage
