#include "base/tool.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/spawn.h"

namespace ablate::process {
namespace {

constexpr size_t kShownBytes = 500;  // of the output of a program that failed
constexpr int kTimedOut = 124;       // exit code of timeout
// Longer than timeout takes: children that have left the program's group may keep its output open.
constexpr timeval kPatience = {40, 0};
// timeout ends the program's children, too.
constexpr char kLine[] = "exec timeout -k 5 30 \"$@\" 2>&1";

absl::Status NotStarted(const std::string& program, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("can't run ", program));
}

void Send(int connection, absl::string_view input) {
  while (!input.empty()) {
    const ssize_t sent = send(connection, input.data(), input.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) break;  // the program doesn't read it
    input.remove_prefix(static_cast<size_t>(sent));
  }
  shutdown(connection, SHUT_WR);
}

std::string Receive(int connection) {
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  std::string output;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t got = recv(connection, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return output;
    output.append(buffer.data(), static_cast<size_t>(got));
  }
}

}  // namespace

std::string ShellWord(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

absl::StatusOr<std::string> RunTool(const std::vector<std::string>& words,
                                    absl::string_view input) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return NotStarted(words[0], errno);
  }
  const FileDescriptor own(ends[0]);
  FileDescriptor programs(ends[1]);
  std::vector<std::string> arguments = {"-c", kLine, "sh"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  pid_t pid = 0;
  const int error =
      SpawnConnected("/bin/sh", std::move(arguments), OwnEnvironment(), programs.get(), &pid);
  if (error != 0) return NotStarted(words[0], error);
  programs = FileDescriptor();
  Send(own.get(), input);
  const std::string output = Receive(own.get());
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) return output;
  const bool timed_out = WIFEXITED(status) && WEXITSTATUS(status) == kTimedOut;
  const absl::string_view shown = absl::StripAsciiWhitespace(output).substr(0, kShownBytes);
  return absl::UnavailableError(absl::StrCat(words[0],
                                             timed_out ? " took longer than 30 s" : " failed", ": ",
                                             shown.empty() ? "it said nothing" : shown));
}

}  // namespace ablate::process
