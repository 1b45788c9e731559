// `ablate cluster slurm`: keeps as many pilots in a Slurm cluster as the queue wants.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/tool.h"
#include "client/cluster/launcher.h"
#include "client/cluster/slurm.h"
#include "client/command_table.h"
#include "proto/join/join_file.h"

namespace ablate::client {
namespace {

struct ClusterOptions {
  std::string join, name = "slurm", device, worker, worker_options, logs, idle = "5m",
                    every = "60s";
  std::optional<uint32_t> min, max, lanes;
  std::vector<std::string> prologue, skip, sbatch;
  bool once = false, dry_run = false;
};

// Returns the program beside this one; its name alone if there is none.
std::string WorkerProgram() {
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const auto beside = self.parent_path() / "ablate-worker";
  return std::filesystem::exists(beside, ignored) ? beside.string() : "ablate-worker";
}

// Returns true for --gres=gpu…, --gpus…=N and -G.
bool AsksForGpu(const std::vector<std::string>& sbatch) {
  return std::any_of(sbatch.begin(), sbatch.end(), [](absl::string_view word) {
    return absl::StartsWith(word, "--gres=gpu") || absl::StartsWith(word, "-G") ||
           (absl::StartsWith(word, "--gpus") && !absl::EndsWith(word, "=0"));
  });
}

absl::Status CheckTime(absl::string_view option, const std::string& text) {
  absl::Duration time;
  if (absl::ParseDuration(text, &time) && time >= absl::Seconds(1)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": \"", text, "\" isn't a time of at least a second, such as 5m"));
}

absl::Status CheckName(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
  if (plain && name.size() <= 40) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--name: \"", name, "\"; expected at most 40 letters, digits, _ and -"));
}

// The options, checked.
struct Cluster {
  PoolOptions pool;
  SlurmOptions slurm;
  absl::Duration every;
};

absl::StatusOr<Cluster> ReadOptions(const ClusterOptions& options) {
  RETURN_IF_ERROR(CheckName(options.name));
  RETURN_IF_ERROR(CheckTime("--idle", options.idle));
  RETURN_IF_ERROR(CheckTime("--every", options.every));
  const uint32_t min = options.min.value_or(0), max = options.max.value_or(0);
  if (!options.max.has_value()) return absl::InvalidArgumentError("--max is required");
  if (max < 1 || max > 1000) {
    return absl::InvalidArgumentError(absl::StrCat("--max: must be 1–1000, is ", max));
  }
  if (options.lanes == 0u) return absl::InvalidArgumentError("--lanes: must be at least 1, is 0");
  if (min > max) {
    return absl::InvalidArgumentError(
        absl::StrCat("--min: must be at most --max, ", max, ", is ", min));
  }
  for (const std::string& word : options.sbatch) {
    if (absl::StartsWith(word, "--array") || word == "-a") {
      return absl::InvalidArgumentError(
          absl::StrCat("SBATCH: ", word, ": each pilot is a job of its own; use --max"));
    }
    if (absl::StartsWith(word, "--wrap")) {
      return absl::InvalidArgumentError(
          absl::StrCat("SBATCH: ", word, ": a pilot has a script of its own; use --prologue"));
    }
  }
  Cluster cluster;
  absl::ParseDuration(options.every, &cluster.every);
  SlurmOptions& slurm = cluster.slurm;
  slurm.cluster = options.name;
  slurm.join = std::filesystem::absolute(options.join).string();
  slurm.worker = options.worker.empty() ? WorkerProgram() : options.worker;
  slurm.device = options.device;
  if (slurm.device.empty()) slurm.device = AsksForGpu(options.sbatch) ? "cuda" : "cpu";
  if (slurm.device != "cpu" && slurm.device != "cuda") {
    return absl::InvalidArgumentError(
        absl::StrCat("--device: \"", slurm.device, "\"; expected cpu or cuda"));
  }
  slurm.worker_options = options.worker_options;
  slurm.prologue = options.prologue;
  slurm.skip = options.skip;
  slurm.log_folder =
      std::filesystem::absolute(options.logs.empty() ? "ablate-pilots" : options.logs).string();
  slurm.idle = options.idle;
  slurm.lanes = options.lanes.value_or(0);
  slurm.sbatch = options.sbatch;
  cluster.pool = {options.name, min, max, slurm.device, options.lanes.value_or(0)};
  return cluster;
}

std::string RandomName() { return process::RandomId().substr(0, 8); }

int DryRun(const Cluster& cluster, const Context& context) {
  const std::string worker = absl::StrCat(cluster.slurm.cluster, "-", RandomName());
  std::string line;
  for (const std::string& word : SbatchLine(cluster.slurm, worker)) {
    const bool plain = word.find_first_of(" '\"$`\\") == std::string::npos;
    absl::StrAppend(&line, line.empty() ? "" : " ", plain ? word : process::ShellWord(word));
  }
  *context.console.out << line << " <<'SCRIPT'\n"
                       << PilotScript(cluster.slurm, worker, /*stays=*/false) << "SCRIPT\n";
  return kSuccess;
}

int Serve(const Cluster& cluster, const v1::JoinFile& join, bool once, const Context& context) {
  std::error_code failed;
  std::filesystem::create_directories(cluster.slurm.log_folder, failed);
  if (failed) {
    return Fail(context,
                absl::InvalidArgumentError(absl::StrCat(
                    "--logs: can't create ", cluster.slurm.log_folder, ": ", failed.message())));
  }
  Connection connection(join::AddressOf(join, join.user()), context.sleep);
  SlurmLauncher launcher(cluster.slurm, [](const auto& words, absl::string_view input) {
    return process::RunTool(words, input);
  });
  PilotPool pool(
      cluster.pool, &launcher,
      [&connection](const auto& request) { return connection.Call(kSyncPilots, request); },
      RandomName,
      [&context](const std::string& lines) {
        for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
          context.console.Info(line);
        }
      });
  while (true) {
    const absl::Status round = pool.Round();
    // Only these don't mend by themselves.
    const bool refused = absl::IsUnauthenticated(round) || absl::IsPermissionDenied(round) ||
                         absl::IsFailedPrecondition(round) || absl::IsInvalidArgument(round);
    if (refused) return kFailure;
    if (once) return round.ok() ? kSuccess : kFailure;
    context.sleep(cluster.every);
  }
}

int RunCluster(const ClusterOptions& options, const Context& context) {
  const auto cluster = ReadOptions(options);
  if (!cluster.ok()) {
    context.console.Error(absl::StrCat("ablate cluster slurm: ", cluster.status().message()));
    return kUsage;
  }
  const auto join = join::ReadJoinFile(options.join);
  if (!join.ok()) return Fail(context, join.status());
  if (options.dry_run) return DryRun(*cluster, context);
  return Serve(*cluster, *join, options.once, context);
}

}  // namespace

Action DefineClusterSlurm(Command* command) {
  auto options = std::make_shared<ClusterOptions>();
  command->OptionalArguments(&options->sbatch, "SBATCH",
                             "After --: options of sbatch, as --partition=gpu");
  command->RequiredOption(&options->join, "--join", "FILE",
                          "Join file of a user of role worker, on a disk that the nodes see");
  command->Option(&options->max, "--max", "N", "Pilots at one time, at most; required");
  command->Option(&options->min, "--min", "N", "Pilots to keep without work [0]");
  command->Option(&options->idle, "--idle", "TIME", "End a pilot after TIME without a run [5m]");
  command->Option(&options->device, "--device", "DEVICE",
                  "Device: cpu or cuda [cuda if an option of sbatch asks for a GPU]");
  command->Option(&options->lanes, "--lanes", "N",
                  "Runs that a pilot trains at one time [as those that have attached, before 1]");
  command->Options(&options->prologue, "--prologue", "LINE",
                   "Line of the script before the worker, such as 'module load cuda'; may be "
                   "repeated");
  command->Options(&options->skip, "--skip", "DIRECTIVE",
                   "Directive to leave out, such as no-requeue; may be repeated");
  command->Option(&options->worker, "--worker", "PATH",
                  "Program ablate-worker on the nodes [the one next to this one]");
  command->Option(&options->worker_options, "--worker-options", "TEXT",
                  "More options of ablate-worker, as a shell line");
  command->Option(&options->logs, "--logs", "FOLDER", "Folder of the pilots' logs [ablate-pilots]");
  command->Option(&options->name, "--name", "NAME",
                  "Name of the cluster, with which the pilots' begin [slurm]");
  command->Option(&options->every, "--every", "TIME", "Look at the queue every TIME [60s]");
  command->Flag(&options->once, "--once", "Look once and exit, for cron");
  command->Flag(&options->dry_run, "--dry-run",
                "Print the command and the script, submit nothing, and exit");
  command->Footer(
      "A pilot is a worker that Slurm starts once it has a machine for it. It saves its runs and "
      "leaves when Slurm ends it, and another one continues them. Two launchers of one Slurm user "
      "need different names.\n\n"
      "Example:\n  ablate cluster slurm --join ci.join --max 8 -- --gres=gpu:1 --time=4:00:00");
  return [options](const Context& context) { return RunCluster(*options, context); };
}

}  // namespace ablate::client
