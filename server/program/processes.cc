#include "server/program/processes.h"

#include <sys/statvfs.h>
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

uint64_t ResidentBytesOf(pid_t pid) {
  const std::string text = process::ReadWholeFile(absl::StrCat("/proc/", pid, "/statm"));
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  uint64_t pages = 0;
  if (words.size() < 2 || !absl::SimpleAtoi(words[1], &pages)) return 0;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Adds the bytes of a line such as "Pss:   120 kB".
void AddLine(absl::string_view line, Memory* memory) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  uint64_t kibibytes = 0;
  if (words.size() < 2 || !absl::SimpleAtoi(words[1], &kibibytes)) return;
  if (words[0] == "Pss:") memory->bytes += kibibytes << 10;
  if (words[0] == "Pss_Shmem:") memory->shared += kibibytes << 10;
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

bool IsShell(pid_t pid) {
  std::error_code ended;
  const std::string name =
      std::filesystem::read_symlink(absl::StrCat("/proc/", pid, "/exe"), ended).filename();
  constexpr std::array<absl::string_view, 7> kShells = {"sh",  "dash", "bash",   "zsh",
                                                        "ksh", "fish", "busybox"};
  return std::find(kShells.begin(), kShells.end(), name) != kShells.end();
}

uint64_t ResidentBytes(const std::vector<pid_t>& pids) {
  uint64_t bytes = 0;
  for (const pid_t pid : pids) bytes += ResidentBytesOf(pid);
  return bytes;
}

Memory ProportionalMemory(const std::vector<pid_t>& pids) {
  Memory memory;
  for (const pid_t pid : pids) {
    const uint64_t before = memory.bytes;
    const std::string text = process::ReadWholeFile(absl::StrCat("/proc/", pid, "/smaps_rollup"));
    for (absl::string_view line : absl::StrSplit(text, '\n')) AddLine(line, &memory);
    if (memory.bytes == before) memory.bytes += ResidentBytesOf(pid);
  }
  return memory;
}

uint64_t MemoryFolderBytes(pid_t pid) {
  uint64_t bytes = 0;
  for (const char* folder : {"/tmp", "/dev/shm"}) {
    struct statvfs info {};
    if (statvfs(absl::StrCat("/proc/", pid, "/root", folder).c_str(), &info) != 0) continue;
    bytes += (info.f_blocks - info.f_bfree) * info.f_frsize;
  }
  return bytes;
}

}  // namespace ablate::program
