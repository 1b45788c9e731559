// Issues and revokes tokens, and finds them by the hash of their secret.
#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "storage/access_store.h"
#include "storage/sqlite/access_rows.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/ids.h"

namespace ablate::storage {
namespace {

constexpr absl::string_view kSecretPrefix = "ablate_";
constexpr size_t kSecretBytes = 32;
constexpr size_t kSecretSize = 7 + 43;  // the prefix, and the bytes in base64url
constexpr size_t kIdBytes = 4;

constexpr absl::Duration kLeastLifetime = absl::Seconds(1);
constexpr absl::Duration kMaxLifetime = absl::Hours(24 * 3650);
constexpr absl::Duration kBetweenUses = absl::Minutes(1);

std::string ToText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

// Returns the hash as it is stored; empty for a text that can't be a secret.
std::string HashOf(absl::string_view secret) {
  if (secret.size() != kSecretSize || !absl::StartsWith(secret, kSecretPrefix)) return "";
  return Sha256Hex(secret);
}

std::string TokenResource(absl::string_view id) { return absl::StrCat("tokens/", id); }

absl::Status CheckNote(absl::string_view note) {
  if (note.empty() || text::IsPrintable(note, AccessStore::kMaxNoteCharacters)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "note: '", absl::CHexEscape(note.substr(0, 200)), "' is invalid; expected at most ",
      AccessStore::kMaxNoteCharacters, " characters without control characters"));
}

absl::Status CheckLifetime(std::optional<absl::Duration> lifetime) {
  if (!lifetime.has_value() || (*lifetime >= kLeastLifetime && *lifetime <= kMaxLifetime)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("lifetime: ", absl::FormatDuration(*lifetime),
                                                 "; expected 1 second to 3,650 days, or none"));
}

// Returns when a token became invalid, if it has.
std::optional<absl::Time> EndOf(const Token& token, absl::Time now) {
  if (token.expires.has_value() && *token.expires <= now) {
    return token.revoked.has_value() ? std::min(*token.expires, *token.revoked) : *token.expires;
  }
  return token.revoked;
}

absl::Status NoToken() {
  return absl::UnauthenticatedError(
      "the token is unknown to this server. Log in with a join file of this server");
}

int64_t Stored(const std::optional<absl::Time>& time) {
  return time.has_value() ? absl::ToUnixMicros(*time) : 0;
}

std::optional<absl::Time> Loaded(int64_t micros) {
  if (micros == 0) return std::nullopt;
  return absl::FromUnixMicros(micros);
}

}  // namespace

absl::Status AccessStore::LoadTokens() {
  MutexLock db_lock(&db_mutex_);
  MutexLock lock(&mutex_);
  Statement rows(*db_,
                 "SELECT id, hash, user, note, created, expires, revoked, last_used FROM tokens");
  while (rows.Row()) {
    HeldToken held;
    held.hash = rows.Text(1);
    held.token = {rows.Text(0),        rows.Text(2),
                  rows.Text(3),        absl::FromUnixMicros(rows.Int(4)),
                  Loaded(rows.Int(5)), Loaded(rows.Int(6)),
                  Loaded(rows.Int(7))};
    if (!held.token.revoked && users_.count(held.token.user) == 0) {
      return absl::DataLossError(
          absl::StrCat("token '", held.token.id, "' is valid and has no user"));
    }
    Hold(std::move(held));
  }
  return db_->error();
}

void AccessStore::Hold(HeldToken held) {
  ids_[held.hash] = held.token.id;
  const std::string id = held.token.id;
  tokens_[id] = std::move(held);
}

void AccessStore::Forget(const std::string& id) {
  const auto found = tokens_.find(id);
  ids_.erase(found->second.hash);
  tokens_.erase(found);
}

absl::StatusOr<IssuedToken> AccessStore::IssueToken(const std::string& user,
                                                    const std::string& note,
                                                    std::optional<absl::Duration> lifetime,
                                                    const Actor& actor, absl::Time now) {
  absl::Status status = CheckNote(note);
  if (status.ok()) status = CheckLifetime(lifetime);
  if (!status.ok()) return status;
  MutexLock change(&db_mutex_);
  if (const auto owner = GetUser(user); !owner.ok()) return owner.status();
  if (ValidTokens(user, now).size() >= kMaxValidTokens) {
    return absl::ResourceExhaustedError(
        absl::StrCat("user '", user, "' has ", kMaxValidTokens,
                     " valid tokens, which is the limit. Revoke one first"));
  }
  HeldToken held;
  Token& token = held.token;
  token.id = UnusedTokenId();
  token.user = user;
  token.note = note;
  token.created = WholeMicros(now);
  if (lifetime.has_value()) token.expires = WholeMicros(now + *lifetime);
  IssuedToken issued{
      absl::StrCat(kSecretPrefix, absl::WebSafeBase64Escape(process::RandomBytes(kSecretBytes))),
      token};
  held.hash = Sha256Hex(issued.secret);
  const std::vector<std::string> forgotten = TooManyEnded(now);
  status = Change(MakeAudit(actor, now, "IssueToken", TokenResource(token.id),
                            absl::StrCat("for users/", user, ", valid until ",
                                         token.expires ? ToText(*token.expires) : "it is revoked")),
                  [&](Connection& db) {
                    for (const std::string& id : forgotten) {
                      Statement(db, "DELETE FROM tokens WHERE id = ?1", id).Run();
                    }
                    Statement(db,
                              "INSERT INTO tokens (id, hash, user, note, created, expires) VALUES "
                              "(?1, ?2, ?3, ?4, ?5, ?6)",
                              token.id, held.hash, user, note, Stored(token.created),
                              Stored(token.expires))
                        .Run();
                  });
  if (!status.ok()) return status;
  MutexLock lock(&mutex_);
  for (const std::string& id : forgotten) Forget(id);
  Hold(std::move(held));
  return issued;
}

absl::Status AccessStore::RevokeToken(const std::string& id, const Actor& actor, absl::Time now) {
  bool was_valid = false;
  {
    MutexLock change(&db_mutex_);
    Token token;
    {
      MutexLock lock(&mutex_);
      const auto found = tokens_.find(id);
      if (found == tokens_.end()) return NotFound("token", id);
      token = found->second.token;
    }
    if (token.revoked.has_value()) return absl::OkStatus();
    was_valid = !EndOf(token, now).has_value();
    RETURN_IF_ERROR(Change(MakeAudit(actor, now, "RevokeToken", TokenResource(id),
                                     absl::StrCat("of users/", token.user)),
                           [&](Connection& db) {
                             Statement(db, "UPDATE tokens SET revoked = ?2 WHERE id = ?1", id,
                                       absl::ToUnixMicros(now))
                                 .Run();
                           }));
    MutexLock lock(&mutex_);
    tokens_[id].token.revoked = WholeMicros(now);
  }
  if (was_valid) TellEnded({id});
  return absl::OkStatus();
}

std::vector<Token> AccessStore::ListTokens(const std::optional<std::string>& user) const {
  std::vector<Token> tokens;
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, held] : tokens_) {
      if (!user.has_value() || held.token.user == *user) tokens.push_back(held.token);
    }
  }
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const Token& a, const Token& b) { return a.created < b.created; });
  return tokens;
}

// The comparison's time depends on how much of a stored hash matches. That doesn't help an
// attacker: hashes can't be chosen, and even a whole stored hash doesn't reveal the 256 random bits
// behind it.
absl::StatusOr<Caller> AccessStore::Identify(absl::string_view secret, absl::Time now) const {
  const std::string hash = HashOf(secret);
  MutexLock lock(&mutex_);
  const auto id = ids_.find(hash);
  if (id == ids_.end()) return NoToken();
  return CallerOf(tokens_.find(id->second)->second.token, now);
}

std::optional<Token> AccessStore::FindToken(absl::string_view secret) const {
  const std::string hash = HashOf(secret);
  MutexLock lock(&mutex_);
  const auto id = ids_.find(hash);
  if (id == ids_.end()) return std::nullopt;
  return tokens_.find(id->second)->second.token;
}

void AccessStore::NoteUse(const std::string& id, absl::Time now) {
  {
    MutexLock lock(&mutex_);
    const auto found = tokens_.find(id);
    if (found == tokens_.end()) return;
    HeldToken& held = found->second;
    held.token.last_used = WholeMicros(now);
    // Also if the clock was set back.
    if (absl::AbsDuration(now - held.use_written) < kBetweenUses) return;
    held.use_written = now;
  }
  WriteUse(id, now);
}

// A failure isn't reported: the write is tried again in a minute.
void AccessStore::WriteUse(const std::string& id, absl::Time now) {
  MutexLock lock(&db_mutex_);
  Commit([&](Connection& db) {
    Statement(db, "UPDATE tokens SET last_used = ?2 WHERE id = ?1", id, absl::ToUnixMicros(now))
        .Run();
  }).IgnoreError();
}

absl::Status AccessStore::CheckStill(const Caller& caller, absl::Time now) const {
  MutexLock lock(&mutex_);
  const auto found = tokens_.find(caller.token);
  if (found == tokens_.end()) return NoToken();
  ASSIGN_OR_RETURN(const auto same, CallerOf(found->second.token, now));
  if (same.role == caller.role) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("the role of user '", caller.user, "' changed to ",
                                         RoleName(same.role), " during the call. Call again"));
}

absl::StatusOr<Caller> AccessStore::CallerOf(const Token& token, absl::Time now) const {
  if (const auto end = EndOf(token, now); end.has_value()) {
    return absl::UnauthenticatedError(absl::StrCat(
        "the token ", end == token.revoked ? "was revoked on " : "expired on ", ToText(*end)));
  }
  // A token that isn't revoked has a user.
  return Caller{token.user, users_.find(token.user)->second.role, token.id};
}

std::vector<std::string> AccessStore::ExpiredBetween(absl::Time after, absl::Time until) const {
  MutexLock lock(&mutex_);
  std::vector<std::string> ids;
  for (const auto& [id, held] : tokens_) {
    const auto& expires = held.token.expires;
    if (held.token.revoked || !expires || *expires <= after || *expires > until) continue;
    ids.push_back(id);
  }
  return ids;
}

std::vector<std::string> AccessStore::ValidTokens(const std::string& user, absl::Time now) const {
  MutexLock lock(&mutex_);
  std::vector<std::string> ids;
  for (const auto& [id, held] : tokens_) {
    if (held.token.user == user && !EndOf(held.token, now)) ids.push_back(id);
  }
  return ids;
}

std::vector<std::string> AccessStore::TooManyEnded(absl::Time now) const {
  std::vector<std::pair<absl::Time, std::string>> ended;
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, held] : tokens_) {
      if (const auto end = EndOf(held.token, now)) ended.emplace_back(*end, id);
    }
  }
  std::sort(ended.begin(), ended.end());
  std::vector<std::string> ids;
  for (size_t i = 0; i + kMaxEndedTokens < ended.size(); ++i) ids.push_back(ended[i].second);
  return ids;
}

std::string AccessStore::UnusedTokenId() const {
  MutexLock lock(&mutex_);
  std::string id;
  do {
    id = absl::BytesToHexString(process::RandomBytes(kIdBytes));
  } while (tokens_.count(id) > 0);
  return id;
}

}  // namespace ablate::storage
