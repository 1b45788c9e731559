// The access file: opening, checks, transactions, and users.
#include "storage/access_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/access_rows.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/migrations.h"

namespace ablate::storage {
namespace {

// Times are microseconds since 1970, 0 for none; a quota's limit is -1 for none.
constexpr char kAccessTables[] = R"sql(
CREATE TABLE users (
  name TEXT PRIMARY KEY,
  role INTEGER NOT NULL,
  lanes INTEGER NOT NULL,
  queued_runs INTEGER NOT NULL,
  stored_bytes INTEGER NOT NULL,
  created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
  id TEXT PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,      -- SHA-256 of the secret, in hex
  user TEXT NOT NULL,             -- may be deleted; the token is then revoked
  note TEXT NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  revoked INTEGER NOT NULL DEFAULT 0,
  last_used INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
  id INTEGER PRIMARY KEY,
  time INTEGER NOT NULL,
  user TEXT NOT NULL,
  token TEXT NOT NULL,
  method TEXT NOT NULL,
  resource TEXT NOT NULL,
  outcome TEXT NOT NULL
) STRICT;
CREATE INDEX audit_user ON audit (user);
)sql";

// The right to submit programs.
constexpr char kProgramRights[] = R"sql(
ALTER TABLE users ADD COLUMN programs INTEGER NOT NULL DEFAULT 0;
)sql";

constexpr SchemaStep kAccessSteps[] = {{kAccessTables}, {kProgramRights}};
constexpr Schema kAccessSchema = {0x61626c75 /* "ablu" */, 1, kAccessSteps};

constexpr int kAccessLogPages = 1000;  // 4 MB

// In the order of Role.
constexpr std::array<absl::string_view, 4> kRoleNames = {"reader", "member", "admin", "worker"};

absl::Status CheckMode(const std::string& file, const struct stat& found) {
  if (!S_ISREG(found.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(file, " isn't a regular file"));
  }
  if (found.st_uid != geteuid()) {
    return absl::FailedPreconditionError(
        absl::StrCat(file, " belongs to user ", found.st_uid, "; expected a file of this user"));
  }
  if ((found.st_mode & 077) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      file, " is open to other users of this machine (mode ", found.st_mode >> 6 & 7,
      found.st_mode >> 3 & 7, found.st_mode & 7, "); expected mode 600. Run chmod 600 ", file));
}

// Creates an empty private file if there is none, because SQLite would let others read it. Examines
// an existing one without opening it: closing it would drop this process's locks on it.
absl::Status MakePrivateFile(const std::string& path) {
  const int made =
      open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (made >= 0) {
    close(made);
  } else if (errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", path));
  }
  for (const std::string& file : {path, absl::StrCat(path, "-wal")}) {
    struct stat found;
    if (lstat(file.c_str(), &found) != 0) {
      if (errno == ENOENT) continue;
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot look at ", file));
    }
    if (absl::Status status = CheckMode(file, found); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// SQLite takes a file shorter than its header for an empty database.
absl::Status CheckNotCutOff(const std::string& path) {
  constexpr off_t kHeader = 100;
  struct stat found;
  if (stat(path.c_str(), &found) != 0) {
    return absl::ErrnoToStatus(errno, "cannot look at it");
  }
  if (found.st_size == 0 || found.st_size >= kHeader) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("it is truncated (", found.st_size, " bytes). Restore it from a backup"));
}

absl::Status CheckUndamaged(Connection& db) {
  Statement check(db, "PRAGMA quick_check(1)");
  if (!check.Row()) return db.error();
  if (check.View(0) == "ok") return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("it is damaged (", check.View(0), "). Restore it from a backup"));
}

absl::StatusOr<std::unique_ptr<Connection>> OpenDatabase(const std::string& path) {
  RETURN_IF_ERROR(CheckNotCutOff(path));
  auto db = Connection::OpenFile(path, Connection::Access::kReadWrite);
  if (!db.ok()) return db.status();
  // Two processes with the file open would not see each other's revocations. The lock is taken
  // before anything is read, so that nobody waits for it later.
  (*db)->Execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA busy_timeout = 0");
  absl::Status status = CheckSchema(**db, kAccessSchema);
  if (status.ok()) status = (*db)->UseLog();
  if (status.ok()) status = CheckUndamaged(**db);
  if (status.ok()) status = Migrate(**db, kAccessSchema);
  if (absl::IsUnavailable(status)) {
    status =
        absl::FailedPreconditionError("it is in use by another server. Stop that server first");
  }
  if (!status.ok()) return status;
  return db;
}

absl::Status CheckName(absl::string_view name) {
  const auto in_names = [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-' || c == '_' || c == '.';
  };
  const bool ok = !name.empty() && name.size() <= 64 && absl::ascii_isalnum(name[0]) &&
                  std::all_of(name.begin(), name.end(), in_names);
  if (ok) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "name: '", absl::CHexEscape(name.substr(0, 200)),
      "' isn't a valid user name; expected 1 to 64 lower-case letters, digits, '-', '_' and '.', "
      "starting with a letter or digit"));
}

struct Limit {
  absl::string_view name;
  std::optional<int64_t> Quota::*value;
};
constexpr Limit kLimits[] = {{"lanes", &Quota::lanes},
                             {"queued_runs", &Quota::queued_runs},
                             {"stored_bytes", &Quota::stored_bytes}};

absl::Status CheckQuota(const Quota& quota) {
  for (const Limit& limit : kLimits) {
    const auto& value = quota.*limit.value;
    if (!value.has_value() || *value >= 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("quota.", limit.name, ": ", *value, "; expected 0 or more"));
  }
  return absl::OkStatus();
}

// Formats a quota for the audit log.
std::string ToText(const Quota& quota) {
  std::string text;
  for (const Limit& limit : kLimits) {
    const auto& value = quota.*limit.value;
    absl::StrAppend(&text, text.empty() ? "" : ", ", limit.name, " ",
                    value.has_value() ? absl::StrCat(*value) : "without limit");
  }
  return text;
}

constexpr int64_t kNoLimit = -1;

std::optional<int64_t> StoredLimit(int64_t value) {
  if (value == kNoLimit) return std::nullopt;
  return value;
}

std::string UserResource(absl::string_view name) { return absl::StrCat("users/", name); }

}  // namespace

absl::string_view RoleName(Role role) { return kRoleNames[static_cast<size_t>(role)]; }

AccessStore::AccessStore(AccessOptions options, std::unique_ptr<Connection> db)
    : options_(std::move(options)), db_(std::move(db)) {}

AccessStore::~AccessStore() = default;

absl::StatusOr<std::unique_ptr<AccessStore>> AccessStore::Open(AccessOptions options) {
  const std::string path = options.path;
  RETURN_IF_ERROR(MakePrivateFile(path));
  auto db = OpenDatabase(path);
  absl::Status status = db.status();
  if (status.ok()) {
    std::unique_ptr<AccessStore> store(new AccessStore(std::move(options), *std::move(db)));
    status = store->LoadUsers();
    if (status.ok()) status = store->LoadTokens();
    if (status.ok()) return store;
  }
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

absl::Status AccessStore::Commit(const std::function<void(Connection& db)>& work) {
  Statement(*db_, "BEGIN IMMEDIATE").Run();
  work(*db_);
  Statement(*db_, "COMMIT").Run();
  const absl::Status error = db_->error();
  if (!error.ok()) {
    db_->ClearError();
    if (db_->in_transaction()) Statement(*db_, "ROLLBACK").Run();
    db_->ClearError();
    return error;
  }
  // The log is durable already; if the disk refuses the copy, try again later.
  if (db_->log_pages() >= kAccessLogPages) db_->Checkpoint(/*truncate=*/false).IgnoreError();
  return absl::OkStatus();
}

absl::Status AccessStore::LoadUsers() {
  MutexLock db_lock(&db_mutex_);
  MutexLock lock(&mutex_);
  Statement rows(
      *db_, "SELECT name, role, lanes, queued_runs, stored_bytes, created, programs FROM users");
  while (rows.Row()) {
    User user;
    user.name = rows.Text(0);
    const int64_t role = rows.Int(1);
    if (role < 0 || role >= static_cast<int64_t>(kRoleNames.size())) {
      return absl::DataLossError(absl::StrCat("user '", user.name, "' has role number ", role));
    }
    user.role = static_cast<Role>(role);
    user.quota = {StoredLimit(rows.Int(2)), StoredLimit(rows.Int(3)), StoredLimit(rows.Int(4))};
    user.created = absl::FromUnixMicros(rows.Int(5));
    user.programs = rows.Int(6) != 0;
    users_[user.name] = user;
  }
  return db_->error();
}

absl::StatusOr<User> AccessStore::Initialize(const std::string& admin_name, absl::Time now) {
  RETURN_IF_ERROR(CheckName(admin_name));
  MutexLock change(&db_mutex_);
  const std::vector<User> users = ListUsers();
  if (!users.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the server has users already, such as '", users[0].name,
                     "'. Add others with `ablate admin user add`"));
  }
  return AddUser({admin_name, Role::kAdmin, {}, WholeMicros(now)}, {admin_name, ""});
}

absl::StatusOr<User> AccessStore::CreateUser(const std::string& name, Role role, const Quota& quota,
                                             const Actor& actor, absl::Time now, bool programs) {
  absl::Status status = CheckName(name);
  if (status.ok()) status = CheckQuota(quota);
  if (!status.ok()) return status;
  MutexLock change(&db_mutex_);
  if (GetUser(name).ok()) {
    return absl::AlreadyExistsError(
        absl::StrCat("name: user '", name, "' exists; expected a new name"));
  }
  if (ListUsers().size() >= kMaxUsers) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the server has ", kMaxUsers, " users, which is the limit. Remove one first"));
  }
  return AddUser({name, role, quota, WholeMicros(now), programs}, actor);
}

absl::StatusOr<User> AccessStore::AddUser(const User& user, const Actor& actor) {
  const Quota& quota = user.quota;
  RETURN_IF_ERROR(Change(
      MakeAudit(actor, user.created, "CreateUser", UserResource(user.name),
                absl::StrCat("role ", RoleName(user.role), user.programs ? ", programs" : "",
                             quota == Quota() ? "" : absl::StrCat(", ", ToText(quota)))),
      [&](Connection& db) {
        Statement(db, "INSERT INTO users VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)", user.name,
                  static_cast<int>(user.role), quota.lanes.value_or(kNoLimit),
                  quota.queued_runs.value_or(kNoLimit), quota.stored_bytes.value_or(kNoLimit),
                  absl::ToUnixMicros(user.created), user.programs)
            .Run();
      }));
  MutexLock lock(&mutex_);
  users_[user.name] = user;
  return user;
}

absl::Status AccessStore::CheckAdminIsLeft(const User& without) const {
  if (without.role != Role::kAdmin) return absl::OkStatus();
  for (const User& user : ListUsers()) {
    if (user.role == Role::kAdmin && user.name != without.name) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "user '", without.name, "' is the last admin. Make another user an admin first"));
}

absl::Status AccessStore::SetRole(const std::string& name, Role role, const Actor& actor,
                                  absl::Time now) {
  std::vector<std::string> tokens;
  {
    MutexLock change(&db_mutex_);
    ASSIGN_OR_RETURN(const auto user, GetUser(name));
    if (user.role == role) return absl::OkStatus();
    RETURN_IF_ERROR(CheckAdminIsLeft(user));
    tokens = ValidTokens(name, now);
    RETURN_IF_ERROR(Change(
        MakeAudit(actor, now, "SetRole", UserResource(name),
                  absl::StrCat("role ", RoleName(role), ", was ", RoleName(user.role))),
        [&](Connection& db) {
          Statement(db, "UPDATE users SET role = ?2 WHERE name = ?1", name, static_cast<int>(role))
              .Run();
        }));
    MutexLock lock(&mutex_);
    users_[name].role = role;
  }
  TellEnded(tokens);
  return absl::OkStatus();
}

absl::Status AccessStore::SetPrograms(const std::string& name, bool programs, const Actor& actor,
                                      absl::Time now) {
  MutexLock change(&db_mutex_);
  ASSIGN_OR_RETURN(const auto user, GetUser(name));
  if (user.programs == programs) return absl::OkStatus();
  RETURN_IF_ERROR(Change(
      MakeAudit(actor, now, "SetPrograms", UserResource(name),
                programs ? "may submit programs" : "may no longer submit programs"),
      [&](Connection& db) {
        Statement(db, "UPDATE users SET programs = ?2 WHERE name = ?1", name, programs).Run();
      }));
  MutexLock lock(&mutex_);
  users_[name].programs = programs;
  return absl::OkStatus();
}

absl::Status AccessStore::SetQuota(const std::string& name, const Quota& quota, const Actor& actor,
                                   absl::Time now) {
  RETURN_IF_ERROR(CheckQuota(quota));
  MutexLock change(&db_mutex_);
  ASSIGN_OR_RETURN(const auto user, GetUser(name));
  if (user.quota == quota) return absl::OkStatus();
  RETURN_IF_ERROR(Change(
      MakeAudit(actor, now, "SetQuota", UserResource(name), ToText(quota)), [&](Connection& db) {
        Statement(
            db, "UPDATE users SET lanes = ?2, queued_runs = ?3, stored_bytes = ?4 WHERE name = ?1",
            name, quota.lanes.value_or(kNoLimit), quota.queued_runs.value_or(kNoLimit),
            quota.stored_bytes.value_or(kNoLimit))
            .Run();
      }));
  MutexLock lock(&mutex_);
  users_[name].quota = quota;
  return absl::OkStatus();
}

absl::Status AccessStore::DeleteUser(const std::string& name, const Actor& actor, absl::Time now) {
  std::vector<std::string> tokens;
  {
    MutexLock change(&db_mutex_);
    ASSIGN_OR_RETURN(const auto user, GetUser(name));
    RETURN_IF_ERROR(CheckAdminIsLeft(user));
    tokens = ValidTokens(name, now);
    const absl::Status status =
        Change(MakeAudit(actor, now, "DeleteUser", UserResource(name),
                         absl::StrCat("with ", tokens.size(), " valid tokens")),
               [&](Connection& db) {
                 // Expired ones, too, so that a later user of the name has none of them.
                 Statement(db, "UPDATE tokens SET revoked = ?2 WHERE user = ?1 AND revoked = 0",
                           name, absl::ToUnixMicros(now))
                     .Run();
                 Statement(db, "DELETE FROM users WHERE name = ?1", name).Run();
               });
    if (!status.ok()) return status;
    MutexLock lock(&mutex_);
    users_.erase(name);
    for (auto& [id, held] : tokens_) {
      if (held.token.user == name && !held.token.revoked) held.token.revoked = WholeMicros(now);
    }
  }
  TellEnded(tokens);
  return absl::OkStatus();
}

absl::StatusOr<User> AccessStore::GetUser(const std::string& name) const {
  MutexLock lock(&mutex_);
  const auto found = users_.find(name);
  if (found == users_.end()) return NotFound("user", name);
  return found->second;
}

bool AccessStore::HasUsers() const {
  MutexLock lock(&mutex_);
  return !users_.empty();
}

std::vector<User> AccessStore::ListUsers() const {
  MutexLock lock(&mutex_);
  std::vector<User> users;
  for (const auto& [name, user] : users_) users.push_back(user);
  return users;
}

void AccessStore::TellEnded(const std::vector<std::string>& tokens) const {
  if (options_.on_end && !tokens.empty()) options_.on_end(tokens);
}

}  // namespace ablate::storage
