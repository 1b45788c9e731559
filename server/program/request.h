// Declares the data that describes a run of a user's own program: its request, output and end.
#ifndef ABLATE_SERVER_PROGRAM_REQUEST_H_
#define ABLATE_SERVER_PROGRAM_REQUEST_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/program/environment.h"
#include "server/program/metric_lines.h"

namespace ablate::program {

// Bounds a run. InfiniteDuration and 0 mean no limit.
struct Limits {
  absl::Duration time = absl::InfiniteDuration();  // wall time since the start
  uint64_t memory_bytes = 0;  // all processes together; also bounds /dev/shm in the sandbox
  uint64_t disk_bytes = 0;    // the run's folder; also bounds each file, and /tmp in the sandbox
  uint32_t processes = 0;     // at the same time
};

// The program's paths in the sandbox.
inline constexpr char kWorkFolder[] = "/program";  // Request::folder, the only one on disk to write
inline constexpr char kDataFolder[] = "/ablate-data";  // Request::data
inline constexpr char kHelperFolder[] = "/ablate";     // Request::helpers
inline constexpr char kLinkFolder[] = "/ablate-bin";   // python and python3, unless virtual

// The numbers of the program's descriptors, which ABLATE_METRICS and ABLATE_REPLIES name.
inline constexpr int kMetricsDescriptor = 3;
inline constexpr int kRepliesDescriptor = 4;

struct Request {
  std::vector<std::string> command;  // the program, found by $PATH or relative to its folder
  // Override the defaults: PATH, HOME, LANG, PYTHONUNBUFFERED, PYTHONPATH. In the sandbox, paths in
  // them are the program's, such as kWorkFolder.
  std::map<std::string, std::string> variables;
  std::string folder;   // the working folder; absolute, exists
  std::string helpers;  // modules for the program, read-only and in PYTHONPATH; empty: none
  // Folder that the program reads at kDataFolder; absolute; empty: none. Without a sandbox it isn't
  // mounted. A warm start needs it directly in `data_root`, the same folder for all its runs.
  std::string data;
  std::string data_root;
  Environment environment;
  Limits limits;
  bool sandboxed = true;
  std::vector<std::string> devices;  // such as /dev/nvidia0
};

// Returns INVALID_ARGUMENT if a field is malformed; FAILED_PRECONDITION, naming a folder, if a
// folder is missing or can't be entered.
absl::Status CheckRequest(const Request& request);

// Returns the program's whole environment: defaults, the request's variables, and the descriptors.
std::map<std::string, std::string> ProgramVariables(const Request& request);

// Explains `error`, which ends with the text of exec's error for the program of a checked request:
// a command or an interpreter is missing, or a file isn't executable. Returns other errors
// unchanged.
std::string ExplainExec(const Request& request, absl::string_view error);

// Describes the end of a run.
struct Ended {
  std::optional<int> exit_code;  // nothing if a signal or a limit ended the program
  std::string signal;            // its name, such as SIGSEGV; empty if none
  std::string limit;             // time, memory, disk or processes; empty if none
  bool stopped = false;          // ended after Terminate or Kill
  bool lost = false;             // ended with its warm parent: another attempt may succeed
  std::string reason;            // one phrase, such as "exit code 3"; never empty
  std::string last_lines;        // of the log, at most kMaxLastLines bytes of UTF-8

  bool ok() const { return exit_code == 0; }
};

// Everything that arrived since the previous output.
struct Output {
  std::vector<Point> points;
  std::optional<uint32_t> checkpoint;  // the program waits for Run::Reply
  std::optional<Progress> progress;
  std::string log;  // UTF-8
  std::optional<Ended> ended;

  bool empty() const {
    return points.empty() && !checkpoint.has_value() && !progress.has_value() && log.empty() &&
           !ended.has_value();
  }
};

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_REQUEST_H_
