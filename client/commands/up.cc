// `ablate up`: a personal server in the background.
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/exit_code.h"
#include "client/json.h"
#include "client/server_process.h"
#include "process/log_file.h"
#include "process/private_folder.h"

namespace ablate::client {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr absl::Duration kGrace = absl::Seconds(1);  // for another one that starts just now
constexpr absl::Duration kPause = absl::Milliseconds(50);
constexpr absl::Duration kAnswerTime = absl::Seconds(1);
constexpr size_t kLogLines = 15;

struct Options {
  std::string home;
  std::optional<uint32_t> lanes;
  std::string resume_every;
  std::string worker_silence;
  bool json = false;
};

// The workers of the server in `home`, if it answers.
absl::StatusOr<v1::ListWorkersResponse> Ask(const Home& home, const Context& context) {
  const absl::StatusOr<std::string> address = ReadAddress(home);
  if (!address.ok()) return address.status();
  return Connection(*address, context.sleep).ListWorkers(kAnswerTime);
}

absl::StatusOr<Child> Start(const Home& home, const Options& options, const Context& context) {
  const absl::StatusOr<std::string> program = FindServerProgram(context.environment);
  if (!program.ok()) return program.status();
  std::vector<std::string> arguments = {"--home", home.folder};
  if (options.lanes) arguments.insert(arguments.end(), {"--lanes", absl::StrCat(*options.lanes)});
  if (!options.resume_every.empty()) {
    arguments.insert(arguments.end(), {"--resume-every", options.resume_every});
  }
  if (!options.worker_silence.empty()) {
    arguments.insert(arguments.end(), {"--worker-silence", options.worker_silence});
  }
  const absl::StatusOr<int> log = process::OpenLog(home.log_file);
  if (!log.ok()) return log.status();
  absl::StatusOr<Child> child = SpawnServer(*program, arguments, *log);
  close(*log);
  return child;
}

// Nothing in the folder is touched before it is known to be this user's alone: not even a log is
// written where others may have put a link.
absl::Status PrepareFolders(const Home& home) {
  const absl::StatusOr<std::string> folder = process::MakePrivateHome(home.folder);
  return folder.ok() ? process::MakePrivateFolder(home.log_folder) : folder.status();
}

void ShowLog(const Home& home, uint64_t from, const Context& context) {
  for (const std::string& line : LastLines(home.log_file, from, kLogLines)) {
    context.console.Say(absl::StrCat("  ", line));
  }
  context.console.Say(absl::StrCat("its log: ", home.log_file));
}

// Waits until the server answers; `child` is empty if someone else started it.
absl::StatusOr<v1::ListWorkersResponse> WaitForAnswer(const Home& home, const Context& context,
                                                      std::optional<Child> child) {
  absl::Time give_up = context.now() + kPatience;
  std::optional<std::string> end;
  while (true) {
    absl::StatusOr<v1::ListWorkersResponse> answer = Ask(home, context);
    if (answer.ok()) return answer;
    if (child && !end) {
      end = child->Ended();
      // Two that start at once: one gets the folder, the other ends, and both callers are served.
      if (end) give_up = std::min(give_up, context.now() + kGrace);
    }
    if (context.now() >= give_up) {
      if (end) return absl::FailedPreconditionError("ablated ended with " + *end);
      return absl::DeadlineExceededError(absl::StrCat(
          "ablated has not answered for ", absl::FormatDuration(kPatience), "; it still runs"));
    }
    context.sleep(kPause);
  }
}

int Up(const Options& options, const Context& context) {
  const absl::StatusOr<Home> home = FindHome(options.home, context.environment);
  if (!home.ok()) return Fail(context, home.status());
  uint64_t log_before = process::FileSize(home->log_file);
  absl::StatusOr<v1::ListWorkersResponse> answer = Ask(*home, context);
  const bool was_up = answer.ok();
  if (!was_up) {
    std::optional<Child> child;
    if (!ServerProcess::Find(*home).ok()) {
      const absl::Status prepared = PrepareFolders(*home);
      if (!prepared.ok()) return Fail(context, prepared);
      process::BoundLog(home->log_file);
      log_before = process::FileSize(home->log_file);
      const absl::StatusOr<Child> started = Start(*home, options, context);
      if (!started.ok()) return Fail(context, started.status());
      child = *started;
    }
    answer = WaitForAnswer(*home, context, child);
  }
  if (!answer.ok()) {
    const int code = Fail(context, answer.status());
    ShowLog(*home, log_before, context);
    return code;
  }
  if (options.json) *context.console.out << ToJson(*answer);
  context.console.Say(absl::StrCat(was_up ? "already up: " : "up: ", home->folder));
  if (was_up &&
      (options.lanes || !options.resume_every.empty() || !options.worker_silence.empty())) {
    context.console.Note("it keeps the options it was started with: `ablate down` first");
  }
  if (const auto address = context.environment("ABLATE_SERVER")) {
    context.console.Note("ABLATE_SERVER is set: other commands talk to " + *address);
  }
  return kSuccess;
}

}  // namespace

void AddUp(Command root) {
  auto options = std::make_shared<Options>();
  Command command = root.Add("up", "Start a personal server in the background, if none runs");
  command.Option(&options->home, "--home", "FOLDER", kHomeHelp);
  command.Option(&options->lanes, "--lanes", "N", "runs trained at the same time [one a core]");
  command.Option(&options->resume_every, "--resume-every", "SECONDS",
                 "how often a run's state is saved, to continue after a crash [30]");
  command.Option(&options->worker_silence, "--worker-silence", "SECONDS",
                 "without a sign of life for so long a worker is killed and replaced [30]");
  command.Flag(&options->json, "--json", "print the server's workers");
  command.Footer(
      "Its log is FOLDER/log/ablated.log; one beyond 16 MB is renamed to "
      "ablated.log.old.\n\nExample:\n  ablate up --lanes 2");
  command.Do([options](const Context& context) { return Up(*options, context); });
}

}  // namespace ablate::client
