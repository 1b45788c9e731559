#include "base/process_id.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"

namespace ablate::process {
namespace {

// Returns device and inode of the folder that holds `file`: a copied folder differs, a moved one
// doesn't. Empty if there is no such folder.
std::string FolderOf(const std::string& file) {
  struct stat info {};
  const std::string folder = std::filesystem::path(file).parent_path().string();
  if (stat(folder.c_str(), &info) != 0) return "";
  return absl::StrCat(info.st_dev, " ", info.st_ino);
}

}  // namespace

std::string BootId() {
  return std::string(absl::StripAsciiWhitespace(ReadWholeFile("/proc/sys/kernel/random/boot_id")));
}

std::optional<ProcessId> Identify(pid_t pid) {
  const std::string stat = ReadWholeFile(absl::StrCat("/proc/", pid, "/stat"));
  // The second field is the program's name in parentheses and may hold anything.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return std::nullopt;
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(name_end + 2), ' ');
  constexpr size_t kState = 0, kStartTime = 19;  // fields 3 and 22 of proc(5)
  ProcessId process{pid, 0, BootId()};
  if (fields.size() <= kStartTime || fields[kState] == "Z" || fields[kState] == "X") {
    return std::nullopt;
  }
  if (!absl::SimpleAtoi(fields[kStartTime], &process.start_ticks)) return std::nullopt;
  return process;
}

std::string ToLine(const ProcessId& process) {
  return absl::StrCat(process.pid, " ", process.start_ticks, " ", process.boot);
}

std::optional<ProcessId> FromLine(absl::string_view text) {
  const absl::string_view line = text.substr(0, text.find('\n'));
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  ProcessId process;
  if (words.size() != 3 || words[2].empty() || !absl::SimpleAtoi(words[0], &process.pid) ||
      process.pid <= 0 || !absl::SimpleAtoi(words[1], &process.start_ticks)) {
    return std::nullopt;
  }
  process.boot = std::string(words[2]);
  return process;
}

std::optional<PidFile> FindByPidFile(const std::string& file) {
  const std::string text = ReadWholeFile(file);
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  const auto written = FromLine(lines[0]);
  if (!written || Identify(written->pid) != written) return std::nullopt;
  if (lines.size() < 3 || lines[2] != FolderOf(file)) return std::nullopt;
  return PidFile{*written, std::string(lines[1])};
}

absl::Status WritePidFile(const std::string& file, const PidFile& content) {
  return ReplaceFile(file, absl::StrCat(ToLine(content.process), "\n", content.command, "\n",
                                        FolderOf(file), "\n"));
}

void RemovePidFile(const std::string& file, pid_t pid) {
  const auto written = FromLine(ReadWholeFile(file));
  if (written && written->pid == pid) unlink(file.c_str());
}

}  // namespace ablate::process
