// The audit log.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clean.h"
#include "storage/access_store.h"
#include "storage/sqlite/access_rows.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/ids.h"

namespace ablate::storage {
namespace {

constexpr size_t kMaxText = 500;  // bytes
constexpr int64_t kMaxPage = 1000;

// Callers choose the names of methods and resources, which appear in messages and on terminals.
std::string Clean(absl::string_view text) { return text::CleanText(text.substr(0, kMaxText)); }

void Append(Connection& db, const Audit& audit, int64_t rows) {
  Statement(db,
            "INSERT INTO audit (time, user, token, method, resource, outcome) VALUES (?1, ?2, ?3, "
            "?4, ?5, ?6)",
            absl::ToUnixMicros(audit.time), Clean(audit.user), Clean(audit.token),
            Clean(audit.method), Clean(audit.resource), Clean(audit.outcome))
      .Run();
  // Only the oldest are removed, so that the ids have no gaps.
  Statement(db, "DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - ?1", rows).Run();
}

}  // namespace

Audit MakeAudit(const Actor& actor, absl::Time time, absl::string_view change,
                absl::string_view resource, absl::string_view details) {
  Audit audit;
  audit.time = time;
  audit.user = actor.user;
  audit.token = actor.token;
  audit.method = absl::StrCat("access/", change);
  audit.resource = std::string(resource);
  audit.outcome = absl::StrCat("OK", details.empty() ? "" : ": ", details);
  return audit;
}

absl::Status AccessStore::Change(const Audit& audit,
                                 const std::function<void(Connection& db)>& work) {
  return Commit([&](Connection& db) {
    work(db);
    Append(db, audit, options_.audit_rows);
  });
}

absl::Status AccessStore::Record(const Audit& audit) {
  MutexLock lock(&db_mutex_);
  return Change(audit, [](Connection&) {});
}

absl::StatusOr<AuditPage> AccessStore::ListAudits(const AuditQuery& query, int64_t limit) const {
  const int64_t size = std::clamp<int64_t>(limit, 1, kMaxPage);
  AuditPage page;
  MutexLock lock(&db_mutex_);
  {
    Statement rows(*db_,
                   "SELECT id, time, user, token, method, resource, outcome FROM audit WHERE id < "
                   "?1 AND (?2 = '' OR user = ?2) AND method >= ?3 AND method < ?4 AND time >= ?5 "
                   "AND time < ?6 ORDER BY id DESC LIMIT ?7",
                   query.before, query.user, query.method_prefix, PrefixEnd(query.method_prefix),
                   absl::ToUnixMicros(query.since), absl::ToUnixMicros(query.until), size + 1);
    while (rows.Row()) {
      page.rows.push_back({rows.Int(0), absl::FromUnixMicros(rows.Int(1)), rows.Text(2),
                           rows.Text(3), rows.Text(4), rows.Text(5), rows.Text(6)});
    }
  }
  const absl::Status error = db_->error();
  db_->ClearError();
  if (!error.ok()) return error;
  if (static_cast<int64_t>(page.rows.size()) > size) {
    page.rows.pop_back();
    page.next = page.rows.back().id;
  }
  return page;
}

}  // namespace ablate::storage
