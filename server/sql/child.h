// The process that answers one SQL statement: `ablated` with kSqlChild as its only argument. It can
// be killed at any time, and a statement can do nothing but read the views and use up limits.
#ifndef ABLATE_SERVER_SQL_CHILD_H_
#define ABLATE_SERVER_SQL_CHILD_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/lookup/limits.h"
#include "storage/records.h"

namespace ablate::sql {

inline constexpr char kSqlChild[] = "sql-child";

// The question to the process, on its standard input to the end.
struct ChildRequest {
  std::string folder;  // of the store
  storage::Viewer viewer;
  absl::Duration processor_time;  // whole seconds
  std::string statement;          // without NUL
};
std::string EncodeRequest(const ChildRequest& request);

// Returns the time that a statement has until its last row is taken.
inline absl::Duration WholeTime(absl::Duration processor_time) {
  return processor_time * lookup::kMaxSqlWaiting;
}

// The answer, on its standard output: rows in frames of at most kMostFrameBytes, then kEnd or
// kError. Each is a FrameHeader and so many bytes.
enum class FrameKind : uint32_t {
  kRows = 1,   // a v1.SqlRows
  kEnd = 2,    // nothing
  kError = 3,  // a byte, an absl::StatusCode; then the message
};
struct FrameHeader {
  FrameKind kind = FrameKind::kEnd;
  uint32_t bytes = 0;
};
inline constexpr uint32_t kMostFrameBytes = 3 << 20;

// Reads the request, limits this process, answers, and returns the exit code of the process.
int RunSqlChild();

}  // namespace ablate::sql

#endif  // ABLATE_SERVER_SQL_CHILD_H_
