#include "server/program/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"

namespace ablate::program {
namespace {

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

constexpr int kMaxDepth = 64;  // each level has an open descriptor

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

// Adds the files of an open folder, which it closes.
void Measure(int descriptor, int depth, size_t* files_left, FolderSize* size) {
  const std::unique_ptr<DIR, CloseFolder> folder(fdopendir(descriptor));
  if (folder == nullptr) {
    close(descriptor);
    return;
  }
  while (const dirent* entry = readdir(folder.get())) {
    const absl::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (*files_left == 0) {
      size->complete = false;
      return;
    }
    --*files_left;
    struct stat info {};
    if (fstatat(descriptor, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    size->bytes += static_cast<uint64_t>(info.st_blocks) * 512;
    if (!S_ISDIR(info.st_mode)) continue;
    if (depth >= kMaxDepth) {
      size->complete = false;
      continue;
    }
    const int inner = openat(descriptor, entry->d_name,
                             O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (inner >= 0) Measure(inner, depth + 1, files_left, size);
  }
}

}  // namespace

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

FolderSize MeasureFolder(const std::string& folder, size_t max_files) {
  FolderSize result;
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) Measure(descriptor, 1, &max_files, &result);
  return result;
}

}  // namespace ablate::program
