// Which process is meant: a number alone is used anew after the process has ended. Pid files say
// it.
#ifndef ABLATE_PROCESS_IDENTITY_H_
#define ABLATE_PROCESS_IDENTITY_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ablate::process {

// A process that can't be confused with a later one of the same number: the kernel's start time and
// boot identity come along.
struct ProcessId {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // since boot
  std::string boot;          // of the kernel

  friend bool operator==(const ProcessId&, const ProcessId&) = default;
};

// The identity of the kernel since it was started.
std::string BootId();

// The identity of a live process (not a zombie); nothing if there is none.
std::optional<ProcessId> Identify(pid_t pid);

// "PID TICKS BOOT": how a pid file's first line names a process.
std::string ToLine(const ProcessId& process);
// What a file's first line names; nothing if it is no such line. The process may have ended.
std::optional<ProcessId> FromLine(absl::string_view text);

struct PidFile {
  ProcessId process;
  std::string command;  // a second line: what it was started with; empty if unknown
};
// Returns what a file says of a process that still is that very process; nothing if it names none,
// or if the file was written in another folder: a copy of a folder has no processes.
std::optional<PidFile> FindByPidFile(const std::string& file);
// Replaces the file. A third line names the folder that holds it.
absl::Status WritePidFile(const std::string& file, const PidFile& content);
// Removes the file if it names process `pid`: it may be a later one's by now.
void RemovePidFile(const std::string& file, pid_t pid);

}  // namespace ablate::process

#endif  // ABLATE_PROCESS_IDENTITY_H_
