#include "server/program/process_tree.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"

namespace ablate::program {
namespace {

// Returns the numbers among the names in a folder of /proc.
std::vector<pid_t> NumbersIn(const std::string& path) {
  std::vector<pid_t> result;
  std::error_code ended;
  std::filesystem::directory_iterator entry(path, ended);
  for (; !ended && entry != std::filesystem::directory_iterator(); entry.increment(ended)) {
    pid_t number = 0;
    if (absl::SimpleAtoi(entry->path().filename().string(), &number)) result.push_back(number);
  }
  return result;
}

}  // namespace

std::vector<pid_t> Children(pid_t pid) {
  std::vector<pid_t> result;
  const std::string tasks = absl::StrCat("/proc/", pid, "/task");
  for (const pid_t task : NumbersIn(tasks)) {
    const std::string text = process::ReadWholeFile(absl::StrCat(tasks, "/", task, "/children"));
    for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipWhitespace())) {
      pid_t child = 0;
      if (absl::SimpleAtoi(word, &child)) result.push_back(child);
    }
  }
  return result;
}

std::vector<pid_t> Descendants(pid_t pid, size_t max) {
  std::vector<pid_t> result = Children(pid);
  for (size_t next = 0; next < result.size() && result.size() <= max; ++next) {
    const std::vector<pid_t> more = Children(result[next]);
    result.insert(result.end(), more.begin(), more.end());
  }
  return result;
}

std::vector<pid_t> ProcessesWithVariable(absl::string_view variable) {
  std::vector<pid_t> result;
  for (const pid_t pid : NumbersIn("/proc")) {
    const std::string environment = process::ReadWholeFile(absl::StrCat("/proc/", pid, "/environ"));
    const std::vector<absl::string_view> all = absl::StrSplit(environment, '\0');
    if (std::find(all.begin(), all.end(), variable) != all.end()) result.push_back(pid);
  }
  return result;
}

pid_t InnermostPid(pid_t pid) {
  const std::string status = process::ReadWholeFile(absl::StrCat("/proc/", pid, "/status"));
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar("\t "), absl::SkipEmpty());
    pid_t inner = 0;
    if (words.size() > 1 && words[0] == "NSpid:" && absl::SimpleAtoi(words.back(), &inner)) {
      return inner;
    }
  }
  return 0;
}

bool IsShell(pid_t pid) {
  std::array<char, 4096> path;
  const ssize_t size =
      readlink(absl::StrCat("/proc/", pid, "/exe").c_str(), path.data(), path.size());
  if (size <= 0) return false;
  const absl::string_view file(path.data(), static_cast<size_t>(size));
  const absl::string_view name = file.substr(file.rfind('/') + 1);
  constexpr std::array<absl::string_view, 7> kShells = {"sh",  "dash", "bash",   "zsh",
                                                        "ksh", "fish", "busybox"};
  return std::find(kShells.begin(), kShells.end(), name) != kShells.end();
}

}  // namespace ablate::program
