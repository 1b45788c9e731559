#include "server/net/authentication_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ablate::net {
namespace {

// Removes the port, which differs for each connection.
std::string HostOf(const std::string& address) { return address.substr(0, address.rfind(':')); }

std::string ToText(absl::Time time) {
  return absl::FormatTime("%H:%M:%S UTC", time, absl::UTCTimeZone());
}

}  // namespace

void AuthenticationLog::NoteRefusal(const Refusal& refusal, absl::Time now) {
  const std::string host = HostOf(refusal.address);
  const std::string reason(absl::StatusCodeToString(refusal.why.code()));
  MutexLock lock(&mutex_);
  const bool unauthenticated = refusal.user.empty();
  Kinds& kinds = unauthenticated ? unauthenticated_.kinds : users_.kinds;
  std::vector<std::string> key = {refusal.user, refusal.method, reason};
  if (unauthenticated) key = {host};
  // All further callers share one kind.
  if (kinds.size() >= kMaxKinds && kinds.count(key) == 0) key.clear();
  Kind& kind = kinds[key];
  if (kind.calls++ == 0) kind.first = now;
  kind.last.time = now;
  kind.last.user = refusal.user;
  kind.last.token = refusal.token;
  kind.last.method = refusal.method;
  kind.last.resource = host.empty() ? "from the network" : absl::StrCat("from ", host);
  kind.last.outcome = absl::StrCat(reason, ": ", refusal.why.message());
}

void AuthenticationLog::NoteUse(const std::string& token) {
  MutexLock lock(&mutex_);
  used_.insert(token);
}

void AuthenticationLog::TakeDue(absl::Time now, absl::Duration running, Log* log,
                                std::vector<storage::Audit>* rows) {
  std::vector<Kind*> due;
  for (auto it = log->kinds.begin(); it != log->kinds.end();) {
    Kind& kind = it->second;
    const bool rests = absl::AbsDuration(now - kind.written) < kBetweenRows;
    if (!rests && kind.calls > 0) due.push_back(&kind);
    it = !rests && kind.calls == 0 ? log->kinds.erase(it) : std::next(it);
  }
  std::sort(due.begin(), due.end(),
            [](const Kind* a, const Kind* b) { return a->first < b->first; });
  for (Kind* kind : due) {
    if (log->rows.Take(running) != absl::ZeroDuration()) return;
    if (kind->calls > 1) {
      absl::StrAppend(&kind->last.outcome, "; ", kind->calls, " such calls since ",
                      ToText(kind->first));
    }
    rows->push_back(std::move(kind->last));
    *kind = {};
    kind->written = now;
  }
}

absl::Status AuthenticationLog::Write(absl::Time now) {
  std::vector<storage::Audit> rows;
  std::set<std::string> used;
  {
    MutexLock lock(&mutex_);
    running_ += std::max(absl::ZeroDuration(), now - counted_);
    counted_ = now;
    TakeDue(now, running_, &users_, &rows);
    TakeDue(now, running_, &unauthenticated_, &rows);
    used.swap(used_);
  }
  for (const std::string& token : used) store_->NoteUse(token, now);
  absl::Status status;
  for (const storage::Audit& row : rows) status.Update(store_->Record(row));
  return status;
}

}  // namespace ablate::net
