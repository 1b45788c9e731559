// Stores who may reach a shared server: users with their roles and quotas, their tokens, and the
// audit log of changes. It is a file of its own, so that code that reads experiments can't reach
// it.
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

// Permissions of a user. Reader, member and admin each include those before; a worker's are
// separate. The numbers are stored.
enum class Role { kReader = 0, kMember = 1, kAdmin = 2, kWorker = 3 };

// Returns "reader", "member", "admin" or "worker".
absl::string_view RoleName(Role role);

// Limits of one user; a member that isn't set is no limit.
struct Quota {
  std::optional<int64_t> lanes;  // leased runs: in training, or granted in advance
  std::optional<int64_t> queued_runs;
  std::optional<int64_t> stored_bytes;
  bool operator==(const Quota& other) const = default;
};

// A user. Times here are whole microseconds; finer parts are cut off.
struct User {
  std::string name;
  Role role = Role::kReader;
  Quota quota;
  absl::Time created;
  bool programs = false;  // a member may submit programs; admins always may
};

// The public part of a token, without its secret.
struct Token {
  std::string id;  // 8 hex digits
  std::string user;
  std::string note;  // its purpose, in words
  absl::Time created;
  std::optional<absl::Time> expires;  // end of its validity; none: never
  std::optional<absl::Time> revoked;
  std::optional<absl::Time> last_used;
};

struct IssuedToken {
  std::string secret;  // "ablate_" and 43 characters; can't be read again later
  Token token;
};

// The user and token that a secret belongs to.
struct Caller {
  std::string user;
  Role role = Role::kReader;
  std::string token;  // token ID
};

// The user and token that make a change, for the audit log.
struct Actor {
  std::string user;
  std::string token;  // token ID; empty without a token
};

// A row of the audit log. Texts over 500 bytes are cut, and unprintable characters are replaced.
struct Audit {
  int64_t id = 0;  // ascending; set by Record
  absl::Time time;
  std::string user;
  std::string token;     // token ID; empty without a token
  std::string method;    // changes made here: "access/" and the method, "access/SetRole"
  std::string resource;  // "users/NAME", "tokens/ID"
  std::string outcome;   // "OK" and what was changed, or the reason of the refusal
};

struct AuditQuery {
  std::string user;           // the actor; empty: anybody
  std::string method_prefix;  // empty: all
  absl::Time since = absl::InfinitePast();
  absl::Time until = absl::InfiniteFuture();  // exclusive
  int64_t before = INT64_MAX;                 // only ids below this one
};

struct AuditPage {
  std::vector<Audit> rows;  // newest first
  // `before` of the query for older rows; none if there are no older ones.
  std::optional<int64_t> next;
};

struct AccessOptions {
  std::string path;  // path of the file; its folder exists
  // If there are more rows than this in the audit log, the oldest are removed.
  int64_t audit_rows = 100'000;
  // Called with the ids of valid tokens that a change invalidates or changes the meaning of: they
  // are revoked, or their user is deleted or gets another role. Called after the change is durable,
  // on the thread that made it, which holds no lock. Not called on expiry; see ExpiredBetween.
  std::function<void(const std::vector<std::string>& tokens)> on_end;
};

// Stores users, tokens and the audit log. Thread-safe. Users and tokens are kept in memory, too, so
// that only changes, Record, ListAudits and now and then NoteUse wait for the disk. Callers pass
// the current time.
//
// A change and its audit row are one transaction, durable when the call returns. Errors of any
// change: RESOURCE_EXHAUSTED if the disk is full; nothing is changed. DATA_LOSS if the disk failed;
// nothing is changed here, but the change may be there when the file is opened again.
class AccessStore {
 public:
  static constexpr size_t kMaxUsers = 1000;
  static constexpr size_t kMaxValidTokens = 100;  // of one user
  // Number of revoked and expired tokens that are kept; those that ended first are deleted.
  static constexpr size_t kMaxEndedTokens = 1000;
  static constexpr size_t kMaxNoteCharacters = 200;

  // Creates the file, readable by its owner only, or migrates it to the newest schema.
  // FAILED_PRECONDITION, leaving the file alone, if others can read or write it, or if it is open
  // elsewhere, newer than this program, or another program's. DATA_LOSS if it is damaged.
  static absl::StatusOr<std::unique_ptr<AccessStore>> Open(AccessOptions options);
  ~AccessStore();

  // Creates the first user, an admin. FAILED_PRECONDITION if there are users.
  absl::StatusOr<User> Initialize(const std::string& admin_name, absl::Time now);

  // Creates a user. A name has 1 to 64 lower-case letters, digits, '-', '_' and '.', and begins
  // with a letter or digit; the name of a deleted user may be used again, for a new user.
  // INVALID_ARGUMENT for an invalid name or quota; ALREADY_EXISTS; RESOURCE_EXHAUSTED if there are
  // kMaxUsers.
  absl::StatusOr<User> CreateUser(const std::string& name, Role role, const Quota& quota,
                                  const Actor& actor, absl::Time now, bool programs = false);
  // Changes a user's role. NOT_FOUND if there is no such user, here and below. FAILED_PRECONDITION
  // if no admin would be left.
  absl::Status SetRole(const std::string& name, Role role, const Actor& actor, absl::Time now);
  absl::Status SetPrograms(const std::string& name, bool programs, const Actor& actor,
                           absl::Time now);
  absl::Status SetQuota(const std::string& name, const Quota& quota, const Actor& actor,
                        absl::Time now);
  // Deletes a user and revokes their tokens. FAILED_PRECONDITION if no admin would be left.
  absl::Status DeleteUser(const std::string& name, const Actor& actor, absl::Time now);
  absl::StatusOr<User> GetUser(const std::string& name) const;
  bool HasUsers() const;
  // Returns all users in order of their names.
  std::vector<User> ListUsers() const;

  // Issues a token of a user, valid for `lifetime` (1 second to 10 years) or until it is revoked.
  // INVALID_ARGUMENT for an invalid note or lifetime; RESOURCE_EXHAUSTED if the user has
  // kMaxValidTokens.
  absl::StatusOr<IssuedToken> IssueToken(const std::string& user, const std::string& note,
                                         std::optional<absl::Duration> lifetime, const Actor& actor,
                                         absl::Time now);
  // Revokes a token. NOT_FOUND. OK, without effect, if it was revoked before.
  absl::Status RevokeToken(const std::string& id, const Actor& actor, absl::Time now);
  // Returns the tokens of a user (a deleted one's too) or all tokens, ended ones included, oldest
  // first.
  std::vector<Token> ListTokens(const std::optional<std::string>& user = std::nullopt) const;

  // Returns the user and token of a secret. UNAUTHENTICATED if it is unknown, or if its token has
  // expired or was revoked (with the time). No error contains the secret. Never waits for the disk.
  absl::StatusOr<Caller> Identify(absl::string_view secret, absl::Time now) const;
  // Returns the token of a secret, also an ended one; nothing if it is unknown or deleted. Never
  // waits for the disk.
  std::optional<Token> FindToken(absl::string_view secret) const;
  // Notes that a token was used. Written to disk at most once a minute; disk errors are ignored.
  // Does nothing if there is no such token.
  void NoteUse(const std::string& id, absl::Time now);
  // Returns OK if Identify would still answer the same; otherwise its error, or ABORTED if the user
  // has another role now. For streams: a token can end between Identify and the moment when on_end
  // can see the stream.
  absl::Status CheckStill(const Caller& caller, absl::Time now) const;
  // Returns the ids of the tokens that expired after `after` and up to `until`, without revoked
  // ones.
  std::vector<std::string> ExpiredBetween(absl::Time after, absl::Time until) const;

  // Adds a row to the audit log, durably.
  absl::Status Record(const Audit& audit);
  // Returns at most `limit` rows, clamped to 1–1000.
  absl::StatusOr<AuditPage> ListAudits(const AuditQuery& query, int64_t limit) const;

 private:
  struct HeldToken {
    Token token;
    std::string hash;
    absl::Time use_written = absl::InfinitePast();  // last write, or attempt to write, the use
  };

  AccessStore(AccessOptions options, std::unique_ptr<Connection> db);

  // Runs `work` in a transaction, which is rolled back if it fails.
  absl::Status Commit(const std::function<void(Connection& db)>& work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(db_mutex_);
  // Like Commit, and adds a row to the audit log.
  absl::Status Change(const Audit& audit, const std::function<void(Connection& db)>& work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(db_mutex_);
  // Loads the users from the file into memory.
  absl::Status LoadUsers();
  absl::Status LoadTokens();

  absl::StatusOr<User> AddUser(const User& user, const Actor& actor)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(db_mutex_);
  absl::Status CheckAdminIsLeft(const User& without) const;
  std::vector<std::string> ValidTokens(const std::string& user, absl::Time now) const;
  // Returns the ended tokens beyond kMaxEndedTokens, which must be deleted.
  std::vector<std::string> TooManyEnded(absl::Time now) const;
  std::string UnusedTokenId() const;
  void Hold(HeldToken held) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteUse(const std::string& id, absl::Time now);
  absl::StatusOr<Caller> CallerOf(const Token& token, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellEnded(const std::vector<std::string>& tokens) const;

  const AccessOptions options_;

  // Held through a whole change; locked before mutex_. Users and tokens are changed only with both
  // held, except for last_used.
  mutable Mutex db_mutex_;
  const std::unique_ptr<Connection> db_ ABSL_PT_GUARDED_BY(db_mutex_);

  // Never held while waiting for the disk.
  mutable Mutex mutex_;
  std::map<std::string, User> users_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, HeldToken> tokens_ ABSL_GUARDED_BY(mutex_);           // by id
  std::unordered_map<std::string, std::string> ids_ ABSL_GUARDED_BY(mutex_);  // by hash
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_ACCESS_STORE_H_
