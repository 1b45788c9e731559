// What the door of the public port has for the disk: whom it refused, for the audit log, and which
// tokens were used.
#ifndef ABLATE_SERVER_RPC_DOOR_LOG_H_
#define ABLATE_SERVER_RPC_DOOR_LOG_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/rpc/frame_gate.h"
#include "storage/access_store.h"

namespace ablate::rpc {

// A call that was refused before its message was read.
struct Refusal {
  std::string user = {};  // whose token it brought, good or ended; empty if nobody has such a one
  std::string token = {};
  std::string method = {};   // "Admin.ListUsers"; empty if there is no such method
  std::string address = {};  // "ADDRESS:PORT"
  absl::Status why = {};
};

// Whoever is refused again and again makes one row a minute: of a user for each method and reason,
// of others for each address. A row says for how many calls it stands. And however many are
// refused, there are few rows, so that they push nothing out of the audit log: kRowBurst and then
// one a minute for users, and as many for strangers. Thread-safe.
class DoorLog {
 public:
  static constexpr absl::Duration kBetweenRows = absl::Minutes(1);
  static constexpr int kRowBurst = 100;
  // Users and addresses that are told apart within kBetweenRows.
  static constexpr size_t kMaxKinds = 1'000;

  // `store` outlives it.
  explicit DoorLog(storage::AccessStore* store) : store_(store) {}

  // Look into memory alone.
  void NoteRefusal(const Refusal& refusal, absl::Time now);
  void NoteUse(const std::string& token);
  // Writes what is due; waits for the disk. One thread at a time, every second or so. The error of
  // the first row that could not be written: none of them is tried again.
  absl::Status Write(absl::Time now);

 private:
  // Refusals of one kind, since its last row.
  struct Kind {
    storage::Audit last;
    int64_t calls = 0;
    absl::Time first;
    absl::Time written = absl::InfinitePast();  // the last row
  };
  // By what makes a row of its own.
  using Kinds = std::map<std::vector<std::string>, Kind>;
  struct Log {
    Kinds kinds;
    Rate rows{1 / absl::ToDoubleSeconds(kBetweenRows), kRowBurst};
  };

  // Appends the rows that are due, those that wait for longest first.
  static void TakeDue(absl::Time now, absl::Duration running, Log* log,
                      std::vector<storage::Audit>* rows);

  storage::AccessStore* const store_;
  Mutex mutex_;
  Log users_ ABSL_GUARDED_BY(mutex_);
  Log strangers_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> used_ ABSL_GUARDED_BY(mutex_);  // tokens
  // How long it has run by clocks that may be set back, and until when that is counted.
  absl::Duration running_ ABSL_GUARDED_BY(mutex_);
  absl::Time counted_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
};

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_DOOR_LOG_H_
