// Starts the process that answers a SQL statement, reads its answer, and ends it.
#ifndef ABLATE_SERVER_SQL_PROCESS_H_
#define ABLATE_SERVER_SQL_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "ablate/v1/metric.pb.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "server/sql/child.h"

namespace ablate::sql {

// A part of an answer.
struct AnswerPart {
  bool last = false;
  std::optional<v1::SqlRows> rows;  // nothing: none came yet, or it is the last part
};

// A running statement. Not thread-safe.
class SqlProcess {
 public:
  // Starts `program` with kSqlChild as its argument. UNAVAILABLE if it can't be started.
  static absl::StatusOr<std::unique_ptr<SqlProcess>> Start(const std::string& program,
                                                           const ChildRequest& request);
  // Kills the process unless it has ended.
  ~SqlProcess();
  SqlProcess(const SqlProcess&) = delete;
  SqlProcess& operator=(const SqlProcess&) = delete;

  // Waits at most `timeout` for the next part. INVALID_ARGUMENT about field statement if the
  // statement is wrong; RESOURCE_EXHAUSTED with the reason SQL_LIMIT if it reached a limit;
  // INTERNAL if the process ended by itself.
  absl::StatusOr<AnswerPart> Read(absl::Duration timeout);

  pid_t pid() const { return pid_; }

 private:
  SqlProcess(pid_t pid, process::FileDescriptor socket, absl::Duration processor_time);

  // Takes the first frame from `buffer_`; nothing if it isn't complete.
  absl::StatusOr<std::optional<AnswerPart>> TakePart();
  // Returns the error for a process that has ended, or is killed now, before its answer did.
  absl::Status Ended();

  pid_t pid_;  // 0: it has ended
  const process::FileDescriptor socket_;
  const absl::Duration processor_time_;
  const absl::Duration deadline_;
  std::string buffer_;
};

}  // namespace ablate::sql

#endif  // ABLATE_SERVER_SQL_PROCESS_H_
