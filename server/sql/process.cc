#include "server/sql/process.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/spawn.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"

namespace ablate::sql {
namespace {

constexpr char kExpected[] =
    "one SELECT over the views that `ablate sql --schema` lists (docs/reference/sql.md)";

absl::Status LimitReached(absl::string_view problem) {
  return lookup::WithReason(absl::ResourceExhaustedError(absl::StrCat("statement: ", problem)),
                            "SQL_LIMIT");
}

// Returns the error that a process reported: a code and a message.
absl::Status ReportedError(absl::string_view frame) {
  const auto code = static_cast<absl::StatusCode>(frame.empty() ? 0 : frame[0]);
  const absl::string_view message = frame.substr(std::min<size_t>(frame.size(), 1));
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return lookup::InvalidField("statement", message, kExpected);
    case absl::StatusCode::kResourceExhausted:
      return LimitReached(message);
    case absl::StatusCode::kOk:
      return absl::InternalError("the process that answers the statement reported no error");
    default:
      return absl::Status(code, message);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqlProcess>> SqlProcess::Start(const std::string& program,
                                                              const ChildRequest& request) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return absl::UnavailableError(absl::StrCat("can't make a socket: ", std::strerror(errno)));
  }
  process::FileDescriptor own(ends[0]);
  const process::FileDescriptor childs(ends[1]);
  pid_t pid = 0;
  const int error =
      process::SpawnConnected(program, {kSqlChild}, process::OwnEnvironment(), childs.get(), &pid);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("can't start a process for the statement: ", std::strerror(error)));
  }
  std::unique_ptr<SqlProcess> started(new SqlProcess(pid, std::move(own), request.processor_time));
  // Fits into the socket's buffer. A process that has already ended is noticed by Read.
  const std::string bytes = EncodeRequest(request);
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t size =
        send(started->socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    sent += static_cast<size_t>(size);
  }
  shutdown(started->socket_.get(), SHUT_WR);
  return started;
}

SqlProcess::SqlProcess(pid_t pid, process::FileDescriptor socket, absl::Duration processor_time)
    : pid_(pid),
      socket_(std::move(socket)),
      processor_time_(processor_time),
      deadline_(MonotonicNow() + WholeTime(processor_time)) {}

SqlProcess::~SqlProcess() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

absl::StatusOr<AnswerPart> SqlProcess::Read(absl::Duration timeout) {
  auto part = TakePart();
  if (!part.ok()) return part.status();
  if (part->has_value()) return **std::move(part);
  if (MonotonicNow() >= deadline_) return Ended();
  pollfd event{socket_.get(), POLLIN, 0};
  if (poll(&event, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) <= 0) {
    return AnswerPart();
  }
  std::array<char, 64 << 10> bytes;
  const ssize_t size = recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return AnswerPart();
  if (size <= 0) return Ended();
  buffer_.append(bytes.data(), static_cast<size_t>(size));
  part = TakePart();
  if (!part.ok()) return part.status();
  return part->has_value() ? **std::move(part) : AnswerPart();
}

absl::StatusOr<std::optional<AnswerPart>> SqlProcess::TakePart() {
  FrameHeader header;
  if (buffer_.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, buffer_.data(), sizeof(header));
  if (header.bytes > kMostFrameBytes) {
    return absl::InternalError("the process that answers the statement sent a malformed answer");
  }
  if (buffer_.size() < sizeof(header) + header.bytes) return std::nullopt;
  const absl::string_view content(buffer_.data() + sizeof(header), header.bytes);
  AnswerPart part;
  switch (header.kind) {
    case FrameKind::kEnd:
      part.last = true;
      return part;
    case FrameKind::kError:
      return ReportedError(content);
    case FrameKind::kRows:
      break;
    default:
      return absl::InternalError("the process that answers the statement sent a malformed answer");
  }
  if (!part.rows.emplace().ParseFromArray(content.data(), static_cast<int>(content.size()))) {
    return absl::InternalError("the process that answers the statement sent malformed rows");
  }
  buffer_.erase(0, sizeof(header) + header.bytes);
  return part;
}

absl::Status SqlProcess::Ended() {
  const bool late = MonotonicNow() >= deadline_;
  if (late) kill(pid_, SIGKILL);
  int status = 0;
  waitpid(std::exchange(pid_, 0), &status, 0);
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGXCPU) {
    return LimitReached(absl::StrCat("it needs more than ", absl::FormatDuration(processor_time_),
                                     " of a processor"));
  }
  if (late || signal == SIGALRM) {
    return LimitReached(absl::StrCat("it takes longer than ",
                                     absl::FormatDuration(WholeTime(processor_time_)),
                                     ", the reading of its rows included"));
  }
  return absl::InternalError(
      signal == 0
          ? absl::StrCat("the process that answers the statement ended with code ",
                         WEXITSTATUS(status))
          : absl::StrCat("the process that answers the statement was ended by signal ", signal));
}

}  // namespace ablate::sql
