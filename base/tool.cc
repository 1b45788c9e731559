#include "base/tool.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/clean.h"
#include "base/file.h"
#include "base/spawn.h"

namespace ablate::process {
namespace {

constexpr size_t kShownBytes = 500;  // of the output of a program that failed

// Returns a file in memory: unlike a pipe it takes any size, and a program can open it again as
// /dev/stdin.
FileDescriptor MemoryFile(absl::string_view content) {
  FileDescriptor file(memfd_create("tool", MFD_CLOEXEC));
  if (!file.open() || !WriteAll(file.get(), content)) return {};
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

}  // namespace

std::string ShellWord(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

absl::StatusOr<std::string> RunTool(const std::vector<std::string>& words, absl::string_view input,
                                    absl::Duration timeout) {
  const FileDescriptor in = MemoryFile(input), out = MemoryFile("");
  if (!in.open() || !out.open()) return absl::ErrnoToStatus(errno, "can't make a file in memory");
  // The shell finds the program on PATH, and says if there is none.
  std::vector<std::string> arguments = {"-c", "exec \"$@\"", "sh"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  pid_t pid = 0;
  const int error =
      SpawnDetached("/bin/sh", std::move(arguments), OwnEnvironment(), out.get(), &pid, in.get());
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("can't run ", words[0]));
  const std::optional<int> status = AwaitChild(pid, timeout);
  std::string output = ReadWholeFile(absl::StrCat("/proc/self/fd/", out.get()));
  if (status == 0) return output;
  const std::string shown =
      text::CleanText(absl::StripAsciiWhitespace(output).substr(0, kShownBytes));
  std::string why = absl::StrCat("took longer than ", absl::FormatDuration(timeout));
  if (status.has_value()) {
    why = WIFSIGNALED(*status) ? absl::StrCat("was ended by signal ", WTERMSIG(*status))
                               : absl::StrCat("failed with exit code ", WEXITSTATUS(*status));
  }
  return absl::UnavailableError(absl::StrCat(words[0], " ", why, shown.empty() ? "" : ": ", shown));
}

}  // namespace ablate::process
