// `ablate up`: a personal server in the background.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/host.h"
#include "base/log_file.h"
#include "base/private_folder.h"
#include "base/spawn.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/output/format.h"
#include "client/personal_server.h"

namespace ablate::client {
namespace {

namespace fs = std::filesystem;

constexpr const char* kServerName = "ablated";
constexpr absl::Duration kStartTimeout = absl::Seconds(10);
constexpr absl::Duration kGrace = absl::Seconds(1);  // for another one that starts just now
constexpr absl::Duration kPollInterval = absl::Milliseconds(50);
constexpr absl::Duration kAnswerTimeout = absl::Seconds(1);
constexpr size_t kMaxLogLines = 15;

struct UpOptions {
  std::string home;
  std::optional<uint32_t> lanes;
  std::string devices;
  std::optional<uint32_t> gpu_lanes;
  std::optional<uint32_t> gpu_programs;
  std::string resume_every;
  std::string worker_silence;
  std::string last_states;
  std::string listen;
  std::optional<uint32_t> metrics;
  std::string alerts;
  std::string programs;
  std::vector<std::string> environments;
  bool json = false;
};

// The workers of the server in `home`, if it answers.
absl::StatusOr<v1::ListWorkersResponse> Ask(const Home& home, const Context& context) {
  ASSIGN_OR_RETURN(const std::string address, ReadAddress(home));
  return Connection({address}, context.sleep).ListWorkersWithin(kAnswerTimeout);
}

bool IsProgram(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// Returns the path of `ablated` in the folder of this program, otherwise on $PATH. NOT_FOUND names
// both.
absl::StatusOr<std::string> FindServerProgram(const Environment& environment) {
  std::error_code error;
  const fs::path beside = fs::read_symlink("/proc/self/exe", error).parent_path() / kServerName;
  if (IsProgram(beside)) return beside.string();
  for (const absl::string_view folder :
       absl::StrSplit(environment("PATH").value_or(""), ':', absl::SkipEmpty())) {
    const fs::path candidate = fs::path(std::string(folder)) / kServerName;
    if (IsProgram(candidate)) return candidate.string();
  }
  return absl::NotFoundError(
      absl::StrCat("program ", kServerName, " not found at ", beside.string(), " or on PATH"));
}

// A process of our own that may have ended.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}

  // How it ended, such as "exit code 1" or "killed by signal 9"; nothing while it runs.
  std::optional<std::string> Ended() {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
    return WIFEXITED(status) ? absl::StrCat("exit code ", WEXITSTATUS(status))
                             : absl::StrCat("killed by signal ", WTERMSIG(status));
  }

 private:
  pid_t pid_;
};

// Starts the server; its output is appended to `log`, an open file.
absl::StatusOr<Child> SpawnServer(const std::string& program, std::vector<std::string> arguments,
                                  int log) {
  pid_t pid = 0;
  const int error =
      process::SpawnDetached(program, std::move(arguments), process::OwnEnvironment(), log, &pid);
  if (error != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(program, " can't be started: ", std::strerror(error)));
  }
  return Child(pid);
}

// Checks the paths of NAME=PATH[:FOLDER…], which are on this machine; the server checks the form.
// Otherwise only its worker's log would name a wrong path.
absl::Status CheckEnvironment(const std::string& given) {
  const std::vector<std::string> parts = absl::StrSplit(given, absl::MaxSplits('=', 1));
  const std::vector<std::string> paths = absl::StrSplit(parts.back(), ':', absl::SkipEmpty());
  if (parts.size() < 2) return absl::OkStatus();
  for (size_t i = 0; i < paths.size(); ++i) {
    std::error_code error;
    const bool usable =
        i == 0 ? IsProgram(paths[i])
               : fs::is_directory(paths[i], error) && access(paths[i].c_str(), R_OK | X_OK) == 0;
    if (usable || !fs::path(paths[i]).is_absolute()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--environment ", given, ": ", paths[i], " isn't ",
                     i == 0 ? "a program that can be run; expected the path of a Python interpreter"
                            : "a folder that can be read; expected one of data",
                     " on this machine"));
  }
  return absl::OkStatus();
}

// Options that the server takes, as its arguments.
std::vector<std::string> GivenOptions(const UpOptions& options) {
  std::vector<std::string> arguments;
  for (const auto& [name, value] :
       {std::pair("--lanes", options.lanes ? absl::StrCat(*options.lanes) : ""),
        std::pair("--devices", options.devices),
        std::pair("--gpu-lanes", options.gpu_lanes ? absl::StrCat(*options.gpu_lanes) : ""),
        std::pair("--gpu-programs",
                  options.gpu_programs ? absl::StrCat(*options.gpu_programs) : ""),
        std::pair("--resume-every", options.resume_every), std::pair("--listen", options.listen),
        std::pair("--metrics", options.metrics ? absl::StrCat(*options.metrics) : ""),
        std::pair("--alerts", options.alerts),
        std::pair("--worker-silence", options.worker_silence),
        std::pair("--last-states", options.last_states),
        std::pair("--programs", options.programs)}) {
    if (!value.empty()) arguments.insert(arguments.end(), {name, value});
  }
  for (const std::string& environment : options.environments) {
    arguments.insert(arguments.end(), {"--environment", environment});
  }
  return arguments;
}

absl::StatusOr<Child> StartServer(const Home& home, const UpOptions& options,
                                  const Context& context) {
  ASSIGN_OR_RETURN(const std::string program, FindServerProgram(context.environment));
  std::vector<std::string> arguments = GivenOptions(options);
  arguments.insert(arguments.begin(), {"--home", home.folder});
  ASSIGN_OR_RETURN(const process::FileDescriptor log, process::OpenLog(home.log_file));
  return SpawnServer(program, std::move(arguments), log.get());
}

// Makes the folders and checks that only this user may write them. Nothing is written before, not
// even a log: others may have put a link there.
absl::Status PrepareFolders(const Home& home) {
  const absl::StatusOr<std::string> folder = process::MakePrivateHome(home.folder);
  return folder.ok() ? process::MakePrivateFolder(home.log_folder) : folder.status();
}

// Returns the last lines, at most `max_lines`, of a file after its first `offset` bytes.
std::vector<std::string> LastLines(const std::string& path, uint64_t offset, size_t max_lines) {
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  std::vector<std::string> lines;
  std::string line;
  while (std::getline(in, line)) {
    if (lines.size() == max_lines) lines.erase(lines.begin());
    lines.push_back(line);
  }
  return lines;
}

void ShowLog(const Home& home, uint64_t from, const Context& context) {
  for (const std::string& line : LastLines(home.log_file, from, kMaxLogLines)) {
    context.console.Info(absl::StrCat("  ", line));
  }
  context.console.Info(absl::StrCat("its log: ", home.log_file));
}

// A server on a full disk can't say so: its log is there, too.
void ShowFullDisk(const Home& home, const Context& context) {
  std::error_code error;
  fs::path folder = home.folder;
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  const fs::space_info space = fs::space(folder, error);
  if (error || space.available >= process::kLeastRoom) return;
  context.console.Info(absl::StrCat("the disk of ", home.folder, " is full: it has ",
                                    Bytes(space.available), " left"));
}

// Brings a server up: starts one unless there is one, and waits until it answers.
class Starter {
 public:
  Starter(const Home& home, const UpOptions& options, const Context& context)
      : home_(home),
        options_(options),
        context_(context),
        log_start_(process::FileSize(home.log_file)) {}

  // A server that is there already may be starting.
  absl::Status StartUnlessThere() {
    since_ = context_.now();
    return ServerProcess::Find(home_).ok() ? absl::OkStatus() : Start();
  }

  absl::StatusOr<v1::ListWorkersResponse> WaitForAnswer() {
    while (true) {
      absl::StatusOr<v1::ListWorkersResponse> answer = Ask(home_, context_);
      if (answer.ok()) return answer;
      RETURN_IF_ERROR(LookAfter());
      if (context_.now() - since_ >= patience_) return Explanation();
      context_.sleep(kPollInterval);
    }
  }

  // The byte of the log at which the new server's begins.
  uint64_t log_start() const { return log_start_; }

 private:
  absl::Status Start() {
    RETURN_IF_ERROR(PrepareFolders(home_));
    process::BoundLog(home_.log_file);
    log_start_ = process::FileSize(home_.log_file);
    ASSIGN_OR_RETURN(child_, StartServer(home_, options_, context_));
    since_ = context_.now();
    patience_ = kStartTimeout;
    return absl::OkStatus();
  }

  // The server that someone else started may be about to end: then ours is started after it. An
  // error if it can't be.
  absl::Status LookAfter() {
    if (!child_ && !ServerProcess::Find(home_).ok()) return Start();
    if (!child_ && !ReadAddress(home_).ok()) patience_ = kEndTimeout;  // it has taken it away
    if (child_ && !end_) {
      end_ = child_->Ended();
      // Two that start at once: one gets the folder, the other ends, and both callers are served.
      if (end_) patience_ = std::min(patience_, context_.now() - since_ + kGrace);
    }
    return absl::OkStatus();
  }

  // Returns the reason for the missing answer.
  absl::Status Explanation() const {
    if (end_) return absl::FailedPreconditionError("ablated ended with " + *end_);
    return absl::DeadlineExceededError(absl::StrCat(
        "ablated has not answered for ", absl::FormatDuration(patience_), "; it still runs"));
  }

  const Home& home_;
  const UpOptions& options_;
  const Context& context_;
  uint64_t log_start_;
  absl::Time since_;  // of the server that is waited for
  absl::Duration patience_ = kStartTimeout;
  std::optional<Child> child_;      // ours; empty if someone else started it
  std::optional<std::string> end_;  // of ours
};

// Prints notes if other machines can't reach a server that is set up for sharing.
void NoteSharing(const Home& home, const UpOptions& options, const Context& context) {
  const std::string file = process::ReadWholeFile(absl::StrCat(home.folder, "/shared-address"));
  const std::string shared(absl::StripAsciiWhitespace(file));
  if (shared.empty()) return;
  if (options.listen.empty()) {
    context.console.Note(absl::StrCat("other machines look for this server at ", shared,
                                      "; they reach it only after `ablate up --listen HOST:PORT`"));
    return;
  }
  const auto listened = text::ParseHostPort(options.listen), looked = text::ParseHostPort(shared);
  if (listened.ok() && looked.ok() && listened->port != looked->port) {
    context.console.Note(
        absl::StrCat("the server listens at ", options.listen, ", but join files name ", shared));
  }
}

int Up(const UpOptions& options, const Context& context) {
  const absl::StatusOr<Home> home = FindHome(options.home, context.environment);
  if (!home.ok()) return FailSettings(context, home.status());
  for (const std::string& environment : options.environments) {
    const absl::Status checked = CheckEnvironment(environment);
    if (!checked.ok()) return Fail(context, checked);
  }
  Starter starter(*home, options, context);
  absl::StatusOr<v1::ListWorkersResponse> answer = Ask(*home, context);
  const bool was_up = answer.ok();
  if (!was_up) {
    const absl::Status started = starter.StartUnlessThere();
    if (!started.ok()) return Fail(context, started);
    answer = starter.WaitForAnswer();
  }
  if (!answer.ok()) {
    const int code = Fail(context, answer.status());
    ShowFullDisk(*home, context);
    ShowLog(*home, starter.log_start(), context);
    return code;
  }
  if (options.json) PrintJson(context, *answer);
  context.console.Info(absl::StrCat(was_up ? "already up: " : "up: ", home->folder,
                                    !was_up && !options.listen.empty()
                                        ? absl::StrCat(", for other machines at ", options.listen)
                                        : ""));
  if (was_up && !GivenOptions(options).empty()) {
    context.console.Note(
        "the running server keeps its options; run `ablate down` first to change them");
  }
  NoteSharing(*home, options, context);
  if (const auto address = context.environment("ABLATE_SERVER")) {
    context.console.Note("ABLATE_SERVER or --server is set; other commands use " + *address);
  }
  return kSuccess;
}

}  // namespace

int StartServer(const Context& context) { return Up(UpOptions(), context); }

Action DefineUp(Command* command) {
  auto options = std::make_shared<UpOptions>();
  command->Option(&options->home, "--home", "FOLDER", kHomeHelp);
  command->Option(&options->lanes, "--lanes", "N",
                  "Train N runs at the same time on the cores, 1–4096 [one per core]");
  command->Option(&options->devices, "--devices", "DEVICES",
                  "GPUs to use besides the cores: all, none, or a list such as cuda:0,cuda:1, as "
                  "nvidia-smi numbers them [all]");
  command->Option(&options->gpu_lanes, "--gpu-lanes", "N",
                  "Train N runs at the same time on each GPU, 1–16 [found by measuring]");
  command->Option(&options->gpu_programs, "--gpu-programs", "N",
                  "Run N users' programs at the same time on each GPU, 0–16, in addition to "
                  "models [1]");
  command->Option(&options->resume_every, "--resume-every", "SECONDS",
                  "Save the training state of each run, and the state of each analysis, every "
                  "SECONDS to resume after a crash, 0–86400 [30]");
  command->Option(&options->worker_silence, "--worker-silence", "SECONDS",
                  "Kill and replace a worker that has been silent for SECONDS, 1–50 [30]");
  command->Option(&options->last_states, "--last-states", "SIZE",
                  "Keep saved training states of ended runs, at most SIZE in all. The same runs "
                  "with more steps continue from them. 0 keeps none [2GB]");
  command->Option(&options->listen, "--listen", "HOST:PORT",
                  "Serve other machines at HOST:PORT by TLS and tokens; run `ablate admin init` "
                  "first");
  command->Option(&options->metrics, "--metrics", "PORT",
                  "Serve the state to Prometheus at http://127.0.0.1:PORT/metrics, 1–65535");
  command->Option(&options->alerts, "--alerts", "COMMAND",
                  "Command that /bin/sh runs when a run fails, an experiment ends, the disk fills "
                  "or pilots fail; it reads a line of JSON");
  command->Option(&options->programs, "--programs", "MODE",
                  "Run users' own programs: sandboxed, unsandboxed or off [sandboxed; off with "
                  "--listen]");
  command->Options(
      &options->environments, "--environment", "NAME=PATH[:FOLDER…]",
      "Offer programs the Python interpreter PATH, absolute, as environment NAME, with "
      "FOLDERs of data to read; may be repeated");
  command->Flag(&options->json, "--json", "Print the server's workers as JSON");
  command->Footer(
      "No option is remembered: the next `ablate up` has the defaults again. An option that it "
      "needs must be given each time.\n\n"
      "The log is FOLDER/log/ablated.log. A log larger than 16 MB is renamed to "
      "ablated.log.old.\n\nExample:\n  ablate up --lanes 2");
  return [options](const Context& context) { return Up(*options, context); };
}

}  // namespace ablate::client
