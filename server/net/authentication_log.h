// Collects what the public port's authenticator has to write to disk: refused calls, for the audit
// log, and the tokens that were used.
#ifndef ABLATE_SERVER_NET_AUTHENTICATION_LOG_H_
#define ABLATE_SERVER_NET_AUTHENTICATION_LOG_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/net/frame_gate.h"
#include "storage/access_store.h"

namespace ablate::net {

// A call that was refused before its message was read.
struct Refusal {
  std::string user = {};  // whose token it had, valid or ended; empty if the token is unknown
  std::string token = {};
  std::string method = {};   // "Admin.ListUsers"; empty for an unknown method
  std::string address = {};  // "ADDRESS:PORT"
  absl::Status why = {};
};

// Groups refused calls into audit rows. Repeated refusals make one row per minute: of a user, for
// each method and reason; of unknown callers, for each address. A row has the number of calls. In
// total there are few rows, so that they can't push other entries out of the audit log: kRowBurst
// and then one per minute for users, and as many for unknown callers. Thread-safe.
class AuthenticationLog {
 public:
  static constexpr absl::Duration kBetweenRows = absl::Minutes(1);
  static constexpr int kRowBurst = 100;
  // Number of users and addresses that are distinguished within kBetweenRows.
  static constexpr size_t kMaxKinds = 1'000;

  // `store` must outlive this object.
  explicit AuthenticationLog(storage::AccessStore* store) : store_(store) {}

  // These use memory only.
  void NoteRefusal(const Refusal& refusal, absl::Time now);
  void NoteUse(const std::string& token);
  // Writes the rows that are due; waits for the disk. For one thread at a time, about every second.
  // Returns the error of the first row that could not be written; no such row is retried.
  absl::Status Write(absl::Time now);

 private:
  // Counts refusals of one kind since its last row.
  struct Kind {
    storage::Audit last;
    int64_t calls = 0;
    absl::Time first;
    absl::Time written = absl::InfinitePast();  // time of the last row
  };
  // Maps the parts that distinguish a row to its counts.
  using Kinds = std::map<std::vector<std::string>, Kind>;
  struct Log {
    Kinds kinds;
    Rate rows{1 / absl::ToDoubleSeconds(kBetweenRows), kRowBurst};
  };

  // Appends the rows that are due; those that have waited longest come first.
  static void TakeDue(absl::Time now, absl::Duration running, Log* log,
                      std::vector<storage::Audit>* rows);

  storage::AccessStore* const store_;
  Mutex mutex_;
  Log users_ ABSL_GUARDED_BY(mutex_);
  Log unauthenticated_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> used_ ABSL_GUARDED_BY(mutex_);  // used tokens
  // How long the log has run, by clocks that may be set back, and up to when that is counted.
  absl::Duration running_ ABSL_GUARDED_BY(mutex_);
  absl::Time counted_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
};

}  // namespace ablate::net

#endif  // ABLATE_SERVER_NET_AUTHENTICATION_LOG_H_
