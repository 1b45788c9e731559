#include "client/cluster/slurm.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/tool.h"

namespace ablate::client {
namespace {

// Slurm sends SIGTERM so long before the end of a job's time, for its worker to save and leave.
constexpr char kWarning[] = "B:TERM@120";

// As squeue names the states of jobs that will run or do.
bool IsPending(absl::string_view state) {
  return state == "PENDING" || state == "CONFIGURING" || state == "REQUEUED" ||
         state == "RESV_DEL_HOLD" || state == "REQUEUE_HOLD" || state == "SPECIAL_EXIT";
}
// Returns true for a name that the launcher of this cluster gives: CLUSTER-XXXXXXXX, 8 hex digits.
bool IsPilotName(absl::string_view name, absl::string_view cluster) {
  return absl::ConsumePrefix(&name, cluster) && absl::ConsumePrefix(&name, "-") &&
         name.size() == 8 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isxdigit(c) != 0;
         });
}

bool IsRunning(absl::string_view state) {
  return state == "RUNNING" || state == "SUSPENDED" || state == "STOPPED" || state == "RESIZING";
}

}  // namespace

std::vector<std::string> SbatchLine(const SlurmOptions& options, const std::string& worker) {
  std::vector<std::string> words = {"sbatch", "--parsable"};
  words.insert(words.end(), options.sbatch.begin(), options.sbatch.end());
  words.push_back(absl::StrCat("--job-name=", worker));
  return words;
}

std::string PilotScript(const SlurmOptions& options, const std::string& worker, bool stays) {
  const std::pair<absl::string_view, std::string> directives[] = {
      {"no-requeue", ""},
      {"signal", absl::StrCat("=", kWarning)},
      {"output", absl::StrCat("=", options.log_folder, "/", worker, ".log")}};
  std::string script = "#!/bin/bash\n";
  for (const auto& [name, value] : directives) {
    const bool skipped =
        std::find(options.skip.begin(), options.skip.end(), name) != options.skip.end();
    if (!skipped) absl::StrAppend(&script, "#SBATCH --", name, value, "\n");
  }
  for (const std::string& line : options.prologue) absl::StrAppend(&script, line, "\n");
  absl::StrAppend(&script, "exec ", process::ShellWord(options.worker), " --join ",
                  process::ShellWord(options.join), " --name ", worker, " --device ",
                  options.device);
  if (options.lanes > 0) {
    absl::StrAppend(&script, " --lanes ", options.lanes);
  } else if (options.device == "cpu") {  // a node may have more cores than the job
    absl::StrAppend(&script, " --lanes \"$SLURM_CPUS_ON_NODE\"");
  }
  if (!stays) absl::StrAppend(&script, " --exit-when-idle ", options.idle);
  absl::StrAppend(&script, " \\\n  --time-left \"$(squeue -h -j \"$SLURM_JOB_ID\" -o %L)\"");
  if (!options.worker_options.empty()) absl::StrAppend(&script, " ", options.worker_options);
  return absl::StrCat(script, "\n");
}

std::vector<LaunchedPilot> ReadSqueue(absl::string_view output, const std::string& cluster) {
  std::vector<LaunchedPilot> pilots;
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits('|', 3));
    if (parts.size() != 4 || !IsPilotName(parts[3], cluster)) continue;
    const bool pending = IsPending(parts[1]);
    if (!pending && !IsRunning(parts[1])) continue;
    const bool tells = pending && parts[2] != "None";
    pilots.push_back({parts[0], parts[3], pending, tells ? parts[2] : ""});
  }
  return pilots;
}

SlurmLauncher::SlurmLauncher(SlurmOptions options, Run run)
    : options_(std::move(options)), run_(std::move(run)) {}

absl::StatusOr<std::vector<LaunchedPilot>> SlurmLauncher::List() {
  ASSIGN_OR_RETURN(const std::string output,
                   run_({"squeue", "-h", "-u", absl::StrCat(getuid()), "-o", "%i|%T|%r|%j"}, ""));
  return ReadSqueue(output, options_.cluster);
}

absl::Status SlurmLauncher::Start(const std::string& worker, bool stays) {
  const std::string script = PilotScript(options_, worker, stays);
  const auto submitted = run_(SbatchLine(options_, worker), script);
  if (submitted.ok()) return absl::OkStatus();
  return absl::Status(submitted.status().code(),
                      absl::StrCat(submitted.status().message(), "\nThe script was:\n", script));
}

absl::Status SlurmLauncher::End(const LaunchedPilot& pilot) {
  return run_({"scancel", pilot.handle}, "").status();
}

}  // namespace ablate::client
