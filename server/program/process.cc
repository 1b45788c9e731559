#include "server/program/process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/private_folder.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/program/processes.h"
#include "server/program/sandbox.h"

namespace ablate::program {
namespace {

constexpr char kNoSandbox[] =
    "sandbox: bubblewrap isn't installed. Install it: apt install bubblewrap.";
constexpr char kStatusDescriptor[] = "5", kOptionsDescriptor[] = "6";  // of bwrap
constexpr absl::Duration kMaxStart = absl::Seconds(30);
constexpr absl::Duration kMaxDeath = absl::Seconds(10);
constexpr size_t kMaxOthers = 100;  // each has an open descriptor
constexpr size_t kMaxStatusBytes = 64 << 10;

process::FileDescriptor OpenProcess(pid_t pid) {
  // glibc 2.36 declares pidfd_open and pidfd_send_signal for C only.
  return process::FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

void KillProcess(const process::FileDescriptor& process) {
  syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
}

// Returns an anonymous file with the words, each followed by a zero byte, as bwrap reads them.
absl::StatusOr<process::FileDescriptor> OptionsFile(const std::vector<std::string>& words) {
  process::FileDescriptor file(memfd_create("options", MFD_CLOEXEC));
  std::string text;
  for (const std::string& word : words) absl::StrAppend(&text, word, absl::string_view("\0", 1));
  if (!file.open() || !process::WriteAll(file.get(), text) || lseek(file.get(), 0, SEEK_SET) != 0) {
    return absl::ErrnoToStatus(errno, "can't write the sandbox's options");
  }
  return file;
}

// Returns the number of a field in the lines of JSON that bwrap reports.
std::optional<int> ReportedNumber(absl::string_view text, const char* field) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const auto report = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!report.is_object() || !report.contains(field)) continue;
    if (report[field].is_number_integer()) return report[field].get<int>();
  }
  return std::nullopt;
}

// A child of this process, in a process group of its own: the program, or the sandbox around it.
class LaunchedProcess : public Process {
 public:
  bool Signal(int number) final {
    const pid_t program = Program();
    if (program == 0) return false;
    std::vector<pid_t> targets = {program};
    for (size_t next = 0; next < targets.size(); ++next) {
      if (!IsShell(targets[next])) continue;
      const std::vector<pid_t> commands = Children(targets[next]);
      targets.insert(targets.end(), commands.begin(), commands.end());
    }
    for (const pid_t target : targets) kill(target, number);
    return true;
  }

  std::optional<Exit> TryWait() final {
    if (!end_.has_value()) {
      siginfo_t info{};
      const auto descriptor = static_cast<id_t>(child_descriptor_.get());
      if (waitid(P_PIDFD, descriptor, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          info.si_pid == 0) {
        return std::nullopt;
      }
      kill(-child_, SIGKILL);  // the number stays this process's until the next call
      waitid(P_PIDFD, descriptor, &info, WEXITED | WNOHANG);
      end_ = info;
    }
    if (!KillOthers()) return std::nullopt;
    return Describe(*end_);
  }

  int EndDescriptor() const final {
    return end_.has_value() ? OthersEndDescriptor() : child_descriptor_.get();
  }

 protected:
  absl::Status Launched(pid_t pid) {
    child_ = pid;
    child_descriptor_ = OpenProcess(pid);
    if (child_descriptor_.open()) return absl::OkStatus();
    const absl::Status error = absl::ErrnoToStatus(errno, "pidfd_open");
    kill(pid, SIGKILL);
    waitpid(std::exchange(child_, 0), nullptr, 0);
    return error;
  }

  pid_t child() const { return child_; }  // 0 before the start
  const process::FileDescriptor& child_descriptor() const { return child_descriptor_; }
  bool has_ended() const { return end_.has_value(); }

 private:
  // Returns the program's pid on the host; 0 if there is none.
  virtual pid_t Program() const = 0;
  // Kills what is left after the child's end; returns true if nothing is. Until then the descriptor
  // is readable when that may have changed.
  virtual bool KillOthers() = 0;
  virtual int OthersEndDescriptor() const = 0;
  // Returns how the program ended, after the child's end.
  virtual Exit Describe(const siginfo_t& end) = 0;

  pid_t child_ = 0;
  process::FileDescriptor child_descriptor_;
  std::optional<siginfo_t> end_;  // of the child
};

// A program in the sandbox of a bwrap, which is the child.
class SandboxedProcess final : public LaunchedProcess {
 public:
  ~SandboxedProcess() override {
    if (child() != 0) End();
  }

  // `socket` as of Process::Start.
  absl::Status Start(const Request& request, const process::FileDescriptor& socket) {
    ASSIGN_OR_RETURN(const auto options,
                     OptionsFile(SandboxOptions(request, /*forks=*/socket.open())));
    ASSIGN_OR_RETURN(ProgramEnds ends, MakeEnds());
    ASSIGN_OR_RETURN(Pipe status, MakePipe());
    SetNonBlocking(status.read);
    Launch launch;
    launch.arguments = {"bwrap",           "--args", kOptionsDescriptor, "--json-status-fd",
                        kStatusDescriptor, "--"};
    launch.arguments.insert(launch.arguments.end(), request.command.begin(), request.command.end());
    launch.folder = "/";
    const int metrics = socket.open() ? socket.get() : ends.metrics.get();
    launch.descriptors = {ends.input.get(),    ends.log.get(),     ends.log.get(), metrics,
                          replies_.read.get(), status.write.get(), options.get()};
    launch.max_file_bytes = request.limits.disk_bytes;
    const std::string path = process::EnvironmentVariable("PATH").value_or("");
    launch.environment = {absl::StrCat("PATH=", path, ":/usr/bin")};
    const absl::StatusOr<pid_t> pid = Fork(launch);
    // A folder of PATH that can't be entered changes the error.
    if (absl::IsNotFound(pid.status()) || absl::IsPermissionDenied(pid.status())) {
      return absl::FailedPreconditionError(kNoSandbox);
    }
    RETURN_IF_ERROR(pid.status());
    status_ = std::move(status.read);
    status.write.Close();
    ends = {};
    RETURN_IF_ERROR(Launched(*pid));
    return AwaitSandbox();
  }

  void Kill() override {
    // The first process ends the others only when it gets a processor, so a fork bomb would go on.
    // Killing its group stops a bomb at once.
    if (init_ != 0 && getpgid(init_) == init_) kill(-init_, SIGKILL);
    KillProcess(init_descriptor_.open() ? init_descriptor_ : child_descriptor());
  }

  std::vector<pid_t> Processes(size_t max) const override { return Descendants(init_, max); }

 private:
  // Waits for the pid of the sandbox's first process.
  absl::Status AwaitSandbox() {
    const absl::Duration deadline = MonotonicNow() + kMaxStart;
    std::optional<int> pid;
    for (bool more = true; !pid.has_value(); pid = ReportedNumber(status_text_, "child-pid")) {
      if (!more || !AwaitReadable(status_.get(), deadline - MonotonicNow())) {
        std::string printed;
        ReadAvailable(log_, kMaxStatusBytes, &printed);
        return absl::FailedPreconditionError(ExplainSandboxError(printed));
      }
      more = ReadAvailable(status_, kMaxStatusBytes, &status_text_);
    }
    init_descriptor_ = OpenProcess(*pid);
    if (init_descriptor_.open()) init_ = *pid;  // otherwise it has ended already
    return absl::OkStatus();
  }

  pid_t Program() const override {
    if (has_ended()) return 0;
    // Orphans become children of the first process, too, after the program.
    const std::vector<pid_t> children = Children(init_);
    return children.empty() ? 0 : children.front();
  }

  bool KillOthers() override {
    if (!init_descriptor_.open() || AwaitReadable(init_descriptor_.get(), absl::ZeroDuration())) {
      return true;
    }
    KillProcess(init_descriptor_);
    return false;
  }

  int OthersEndDescriptor() const override { return init_descriptor_.get(); }

  Exit Describe(const siginfo_t& end) override {
    ReadAvailable(status_, kMaxStatusBytes, &status_text_);
    const auto code = ReportedNumber(status_text_, "exit-code");
    if (!code.has_value()) return {.started = false, .code = end.si_status};
    const bool killed = *code > 128 && sigabbrev_np(*code - 128) != nullptr;
    return {.code = killed ? 0 : *code, .signal = killed ? *code - 128 : 0};
  }

  process::FileDescriptor status_;  // bwrap's reports
  std::string status_text_;
  pid_t init_ = 0;  // the first process in the sandbox
  process::FileDescriptor init_descriptor_;
};

// A program without a sandbox, which is the child.
class DirectProcess final : public LaunchedProcess {
 public:
  ~DirectProcess() override {
    if (child() != 0) End();
  }

  absl::Status Start(const Request& request) {
    std::map<std::string, std::string> variables = ProgramVariables(request);
    Launch launch;
    launch.arguments = request.command;
    const std::string& interpreter = request.environment.interpreter;
    const bool is_python = request.command[0] == "python" || request.command[0] == "python3";
    if (is_python && !interpreter.empty()) launch.arguments[0] = interpreter;
    const std::string id = process::RandomId();
    variables["ABLATE_PROGRAM"] = id;
    mark_ = absl::StrCat("ABLATE_PROGRAM=", id);
    for (const auto& [name, value] : variables) {
      launch.environment.push_back(absl::StrCat(name, "=", value));
    }
    ASSIGN_OR_RETURN(const ProgramEnds ends, MakeEnds());
    launch.folder = request.folder;
    launch.descriptors = {ends.input.get(), ends.log.get(), ends.log.get(), ends.metrics.get(),
                          replies_.read.get()};
    launch.max_file_bytes = request.limits.disk_bytes;
    const absl::StatusOr<pid_t> pid = Fork(launch);
    if (pid.ok()) return Launched(*pid);
    return absl::Status(pid.status().code(), ExplainExec(request, pid.status().message()));
  }

  void Kill() override {
    if (!has_ended()) kill(-child(), SIGKILL);
  }

  std::vector<pid_t> Processes(size_t max) const override {
    std::set<pid_t> all = {child()};
    for (const auto& some : {Descendants(child(), max), ProcessesWithVariable(mark_)}) {
      all.insert(some.begin(), some.end());
    }
    return {all.begin(), all.end()};
  }

 private:
  pid_t Program() const override { return has_ended() ? 0 : child(); }

  bool KillOthers() override {
    // A process that exits loses its environment before it closes its files.
    std::erase_if(others_, [](const process::FileDescriptor& other) {
      return AwaitReadable(other.get(), absl::ZeroDuration());
    });
    for (const pid_t pid : ProcessesWithVariable(mark_)) {
      process::FileDescriptor other = OpenProcess(pid);
      if (!other.open()) continue;
      KillProcess(other);
      if (others_.size() < kMaxOthers) others_.push_back(std::move(other));
    }
    return others_.empty();
  }

  int OthersEndDescriptor() const override { return others_.front().get(); }

  Exit Describe(const siginfo_t& end) override {
    const bool exited = end.si_code == CLD_EXITED;
    return {.code = exited ? end.si_status : 0, .signal = exited ? 0 : end.si_status};
  }

  std::string mark_;                             // the variable of all its processes
  std::vector<process::FileDescriptor> others_;  // killed, perhaps not gone yet
};

}  // namespace

absl::StatusOr<std::unique_ptr<Process>> Process::Start(const Request& request,
                                                        const process::FileDescriptor& socket) {
  if (request.sandboxed) {
    auto process = std::make_unique<SandboxedProcess>();
    RETURN_IF_ERROR(process->Start(request, socket));
    return process;
  }
  auto process = std::make_unique<DirectProcess>();
  RETURN_IF_ERROR(process->Start(request));
  return process;
}

absl::StatusOr<Process::ProgramEnds> Process::MakeEnds() {
  ProgramEnds ends;
  ends.input = process::FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!ends.input.open()) return absl::ErrnoToStatus(errno, "/dev/null");
  ASSIGN_OR_RETURN(Pipe log_pipe, MakePipe());
  ASSIGN_OR_RETURN(Pipe metrics_pipe, MakePipe());
  ASSIGN_OR_RETURN(replies_, MakePipe());
  SetNonBlocking(log_pipe.read);
  SetNonBlocking(metrics_pipe.read);
  SetNonBlocking(replies_.write);
  log_ = std::move(log_pipe.read);
  metrics_ = std::move(metrics_pipe.read);
  ends.log = std::move(log_pipe.write);
  ends.metrics = std::move(metrics_pipe.write);
  return ends;
}

void Process::End() {
  Kill();
  const absl::Duration deadline = MonotonicNow() + kMaxDeath;
  while (!TryWait().has_value()) {
    const absl::Duration left = deadline - MonotonicNow();
    if (left <= absl::ZeroDuration() || !AwaitReadable(EndDescriptor(), left)) return;
  }
}

void Process::Reply(absl::string_view line) {
  const std::string text = absl::StrCat(line, "\n");
  [[maybe_unused]] const ssize_t ignored = write(replies_.write.get(), text.data(), text.size());
}

}  // namespace ablate::program
