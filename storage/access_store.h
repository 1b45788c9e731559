// Who may reach a shared server: users with their roles and quotas, their tokens, and the log of
// who changed what. A file of its own, so that nothing that reads experiments can reach it.
#ifndef ABLATE_STORAGE_ACCESS_STORE_H_
#define ABLATE_STORAGE_ACCESS_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/mutex.h"

namespace ablate::storage {

class Connection;

// What a user may do. A worker's is apart from the other three, of which each includes those before
// it. The numbers are stored.
enum class Role { kReader = 0, kMember = 1, kAdmin = 2, kWorker = 3 };

// "reader", "member", "admin", "worker".
absl::string_view RoleName(Role role);

// The most that a user may have at one time; nothing set: no limit of the user's own.
struct Quota {
  std::optional<int64_t> lanes;  // that train at one time
  std::optional<int64_t> queued_runs;
  std::optional<int64_t> stored_bytes;
  bool operator==(const Quota& other) const = default;
};

// Times here are whole microseconds: what is finer is cut off.
struct User {
  std::string name;
  Role role = Role::kReader;
  Quota quota;
  absl::Time created;
};

// What may be known of a token by everybody: not its secret.
struct Token {
  std::string id;  // 8 hex digits
  std::string user;
  std::string note;  // what it is for, in words
  absl::Time created;
  std::optional<absl::Time> expires;  // invalid from then on; none: never
  std::optional<absl::Time> revoked;
  std::optional<absl::Time> last_used;
};

struct IssuedToken {
  std::string secret;  // "ablate_" and 43 characters; nobody can learn it later
  Token token;
};

// Whom a secret stands for.
struct Caller {
  std::string user;
  Role role = Role::kReader;
  std::string token;  // its id
};

// Who changes something, for the audit log.
struct Actor {
  std::string user;
  std::string token;  // its id; empty without one
};

// A row of the audit log. Texts over 500 bytes are cut, and what can't be printed is replaced.
struct Audit {
  int64_t id = 0;  // ascending; Record sets it
  absl::Time time;
  std::string user;
  std::string token;     // its id; empty without one
  std::string method;    // of changes that are made here: "access/" and the name, "access/SetRole"
  std::string resource;  // "users/NAME", "tokens/ID"
  std::string outcome;   // "OK", with what was changed behind it, or why it was refused
};

struct AuditQuery {
  std::string user;           // who did it; empty: anybody
  std::string method_prefix;  // empty: all
  absl::Time since = absl::InfinitePast();
  absl::Time until = absl::InfiniteFuture();  // without it
  int64_t before = INT64_MAX;                 // ids below this one
};

struct AuditPage {
  std::vector<Audit> rows;  // newest first
  // What is older begins with `before` set to this; none: nothing is older.
  std::optional<int64_t> next;
};

struct AccessOptions {
  std::string path;  // of the file; its folder exists
  // The oldest rows of the audit log go when there are more.
  int64_t audit_rows = 100'000;
  // Called when tokens that were valid stop to be so, or stop to mean the same, by a change: they
  // are revoked, their user is deleted or has another role. With their ids, after the change is
  // durable, on the thread that made it, which holds no lock. Expiry calls nobody: ExpiredBetween.
  std::function<void(const std::vector<std::string>& tokens)> on_end;
};

// Thread-safe. Users and tokens are in memory, too, so that only changes, Record, ListAudits and
// now and then NoteUse wait for the disk. Whoever calls says what time it is.
//
// A change and its row of the audit log are one transaction, durable when the call returns. Any
// change: RESOURCE_EXHAUSTED if the disk is full: nothing is changed. DATA_LOSS if the disk failed:
// nothing is changed here, but who opens the file again may find that it is.
class AccessStore {
 public:
  static constexpr size_t kMaxUsers = 1000;
  static constexpr size_t kMaxValidTokens = 100;  // of a user
  // Revoked and expired ones that are remembered; the ones that ended first are forgotten.
  static constexpr size_t kMaxEndedTokens = 1000;
  static constexpr size_t kMaxNoteCharacters = 200;

  // Creates the file, for its owner alone, or brings it to the newest schema. FAILED_PRECONDITION
  // if others than this user can read or write it, it is open elsewhere, newer than this program,
  // or another program's: it is left as it is. DATA_LOSS if it is damaged.
  static absl::StatusOr<std::unique_ptr<AccessStore>> Open(AccessOptions options);
  ~AccessStore();

  // Creates the first user, an admin. FAILED_PRECONDITION if there is one.
  absl::StatusOr<User> Initialize(const std::string& admin_name, absl::Time now);

  // INVALID_ARGUMENT if the name or the quota can't be one; ALREADY_EXISTS; RESOURCE_EXHAUSTED if
  // there are kMaxUsers. A name is 1 to 64 lower-case letters, digits, '-', '_' and '.', and begins
  // with a letter or digit. One that was deleted may be used again, by whom it then means.
  absl::StatusOr<User> CreateUser(const std::string& name, Role role, const Quota& quota,
                                  const Actor& actor, absl::Time now);
  // NOT_FOUND without that user, here and below. FAILED_PRECONDITION if no admin would be left.
  absl::Status SetRole(const std::string& name, Role role, const Actor& actor, absl::Time now);
  absl::Status SetQuota(const std::string& name, const Quota& quota, const Actor& actor,
                        absl::Time now);
  // Revokes the user's tokens. FAILED_PRECONDITION if no admin would be left.
  absl::Status DeleteUser(const std::string& name, const Actor& actor, absl::Time now);
  absl::StatusOr<User> GetUser(const std::string& name) const;
  bool HasUsers() const;
  // By name.
  std::vector<User> ListUsers() const;

  // A token of a user, valid for `lifetime` (1 second to 10 years), or until it is revoked.
  // INVALID_ARGUMENT if the note or the lifetime can't be one; RESOURCE_EXHAUSTED if the user has
  // kMaxValidTokens.
  absl::StatusOr<IssuedToken> IssueToken(const std::string& user, const std::string& note,
                                         std::optional<absl::Duration> lifetime, const Actor& actor,
                                         absl::Time now);
  // NOT_FOUND. OK, and nothing more, if it was revoked before.
  absl::Status RevokeToken(const std::string& id, const Actor& actor, absl::Time now);
  // The user's, also of one who was deleted, or all; ended ones, too; oldest first.
  std::vector<Token> ListTokens(const std::optional<std::string>& user = std::nullopt) const;

  // UNAUTHENTICATED if the secret is of no token, or of one that expired or was revoked, with when.
  // No error has the secret. Never waits for the disk.
  absl::StatusOr<Caller> Identify(absl::string_view secret, absl::Time now) const;
  // The token of a secret, also one that has ended; none if no token has it, or it is forgotten.
  // Never waits for the disk.
  std::optional<Token> FindToken(absl::string_view secret) const;
  // Notes that a token was used: on the disk once a minute, and a disk that refuses it is no
  // matter. Nothing if there is no such token.
  void NoteUse(const std::string& id, absl::Time now);
  // OK while Identify would answer the same; otherwise its error, or ABORTED if the user has
  // another role now. For streams: a token can end between Identify and the moment from which
  // on_end finds the stream.
  absl::Status CheckStill(const Caller& caller, absl::Time now) const;
  // Ids of those that expired after `after` and up to `until`, unless they were revoked.
  std::vector<std::string> ExpiredBetween(absl::Time after, absl::Time until) const;

  // Adds a row to the audit log, durably.
  absl::Status Record(const Audit& audit);
  // At most `limit` rows, which is taken as one of 1 to 1000.
  absl::StatusOr<AuditPage> ListAudits(const AuditQuery& query, int64_t limit) const;

 private:
  struct HeldToken {
    Token token;
    std::string hash;
    absl::Time use_written = absl::InfinitePast();  // or tried to be
  };

  AccessStore(AccessOptions options, std::unique_ptr<Connection> db);

  // Runs `work` in a transaction; what it did is undone if it fails.
  absl::Status Commit(const std::function<void(Connection& db)>& work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(db_mutex_);
  // The same, with a row of the audit log.
  absl::Status Change(const Audit& audit, const std::function<void(Connection& db)>& work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(db_mutex_);
  // Into memory, as the file has them.
  absl::Status LoadUsers();
  absl::Status LoadTokens();

  absl::StatusOr<User> AddUser(const User& user, const Actor& actor)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(db_mutex_);
  absl::Status CheckAdminIsLeft(const User& without) const;
  std::vector<std::string> ValidTokens(const std::string& user, absl::Time now) const;
  // Those that have to be forgotten so that no more than kMaxEndedTokens are remembered.
  std::vector<std::string> TooManyEnded(absl::Time now) const;
  std::string UnusedTokenId() const;
  void Hold(HeldToken held) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteUse(const std::string& id, absl::Time now);
  absl::StatusOr<Caller> CallerOf(const Token& token, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellEnded(const std::vector<std::string>& tokens) const;

  const AccessOptions options_;

  // Held through a whole change, and before mutex_. Users and tokens are changed only by those who
  // hold both, but for last_used.
  mutable Mutex db_mutex_;
  const std::unique_ptr<Connection> db_ ABSL_PT_GUARDED_BY(db_mutex_);

  // Never held while something waits for the disk.
  mutable Mutex mutex_;
  std::map<std::string, User> users_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, HeldToken> tokens_ ABSL_GUARDED_BY(mutex_);           // by id
  std::unordered_map<std::string, std::string> ids_ ABSL_GUARDED_BY(mutex_);  // by hash
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_ACCESS_STORE_H_
