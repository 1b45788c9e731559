// Implements the fixture of the access store's tests.
#include "tests/storage/access_fixture.h"

#include "absl/strings/str_cat.h"
#include "storage/sqlite/connection.h"

namespace ablate::storage {

void AccessTest::Tamper(const char* sql) {
  Close();
  const auto db = Value(Connection::OpenFile(File(), Connection::Access::kReadWrite));
  ASSERT_TRUE(db->UseLog().ok());
  db->Execute(sql);
  ASSERT_TRUE(db->error().ok()) << db->error();
}

std::vector<std::string> AccessTest::Log(const AuditQuery& query, int64_t limit) {
  std::vector<std::string> lines;
  for (const Audit& row : Value(store().ListAudits(query, limit)).rows) {
    lines.push_back(absl::StrCat(row.user, " ", row.token, " ", row.method, " ", row.resource, " ",
                                 row.outcome));
  }
  return lines;
}

}  // namespace ablate::storage
