// Identifies processes beyond their pid, which the kernel uses again after a process has ended; and
// reads and writes pid files.
#ifndef ABLATE_BASE_PROCESS_ID_H_
#define ABLATE_BASE_PROCESS_ID_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ablate::process {

// Identifies a process for good: the pid with the kernel's start time and boot ID.
struct ProcessId {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // clock ticks since boot
  std::string boot;          // kernel's boot ID

  friend bool operator==(const ProcessId&, const ProcessId&) = default;
};

// Returns the kernel's boot ID.
std::string BootId();

// Identifies a live process (not a zombie); nothing if there is none.
std::optional<ProcessId> Identify(pid_t pid);

// Returns "PID TICKS BOOT", the first line of a pid file.
std::string ToLine(const ProcessId& process);
// Parses a pid file's first line; nothing if it is malformed. The process may have ended.
std::optional<ProcessId> FromLine(absl::string_view text);

struct PidFile {
  ProcessId process;
  std::string command;  // second line: the command that started it; empty if unknown
};
// Returns the content of a pid file if its process is still the same one. Returns nothing if the
// process has ended or the file was written in another folder: a copied folder has no processes.
std::optional<PidFile> FindByPidFile(const std::string& file);
// Replaces the file. Its third line names the folder that holds it.
absl::Status WritePidFile(const std::string& file, const PidFile& content);
// Removes the file if it names process `pid`; by now it may name a later one.
void RemovePidFile(const std::string& file, pid_t pid);

}  // namespace ablate::process

#endif  // ABLATE_BASE_PROCESS_ID_H_
