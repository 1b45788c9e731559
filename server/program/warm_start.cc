#include "server/program/warm_start.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/folder_walk.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/program/processes.h"

namespace ablate::program {

// Each packet is sent whole, so threads may send at the same time.
struct WarmParent {
  std::unique_ptr<Process> process;
  process::FileDescriptor channel;
};

namespace {

constexpr absl::Duration kMaxImport = absl::Minutes(1);
constexpr absl::Duration kMaxFork = absl::Seconds(30);
constexpr size_t kPacketBytes = 1 << 20;
// Modules that take long to import, and whose threads don't run before they are used.
constexpr const char* kLargeModules[] = {"numpy", "pandas", "scipy", "sklearn", "torch"};
constexpr size_t kMaxScanned = 1000;  // files
constexpr off_t kMaxScannedBytes = 1 << 20;

struct SocketPair {
  process::FileDescriptor ours;
  process::FileDescriptor theirs;
};

absl::StatusOr<SocketPair> MakeSocketPair() {
  std::array<int, 2> ends;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return absl::ErrnoToStatus(errno, "socketpair");
  }
  return SocketPair{process::FileDescriptor(ends[0]), process::FileDescriptor(ends[1])};
}

// Sends a packet with descriptors; returns false if the other end is gone.
bool SendPacket(int socket, const nlohmann::json& packet, const std::vector<int>& descriptors) {
  std::string text = packet.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  iovec part{text.data(), text.size()};
  std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) >= 0;
}

// A received packet. `sender` is the pid here of the process that sent it, if the socket passes
// credentials.
struct Packet {
  nlohmann::json content = nlohmann::json::object();
  pid_t sender = 0;
};

// Receives a packet if one is there. Nothing without one; no content at the end.
std::optional<Packet> ReceivePacket(int socket) {
  std::string text(kPacketBytes, '\0');
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  Packet packet;
  if (size <= 0) return packet;
  auto content = nlohmann::json::parse(text.begin(), text.begin() + size, nullptr, false);
  if (content.is_object()) packet.content = std::move(content);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_CREDENTIALS) {
    ucred sender;
    std::memcpy(&sender, CMSG_DATA(header), sizeof(sender));
    packet.sender = sender.pid;
  }
  return packet;
}

// Waits for a packet at most `wait`; no content at the end of the socket or of that time.
Packet AwaitPacket(int socket, absl::Duration wait) {
  const absl::Duration deadline = MonotonicNow() + wait;
  while (AwaitReadable(socket, deadline - MonotonicNow())) {
    if (std::optional<Packet> packet = ReceivePacket(socket)) return *std::move(packet);
  }
  return {};
}

// A run that a warm parent forked. Its helper, a process outside of its namespace, answers on a
// socket of the run.
class ForkedProcess final : public Process {
 public:
  // The parent's end would end the run.
  explicit ForkedProcess(std::shared_ptr<WarmParent> parent) : parent_(std::move(parent)) {}
  ~ForkedProcess() override { End(); }

  // Makes the run's descriptors, sends its request, and waits until the run exists.
  absl::Status Start(const nlohmann::json& packet) {
    exit_ = Exit{};
    ASSIGN_OR_RETURN(ProgramEnds ends, MakeEnds());
    ASSIGN_OR_RETURN(SocketPair pair, MakeSocketPair());
    const int on = 1;
    setsockopt(pair.ours.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
    status_ = std::move(pair.ours);
    // Messages of helpers that failed; they would wait if nobody read them.
    std::string ignored;
    ReadAvailable(parent_->process->log(), kPacketBytes, &ignored);
    if (!SendPacket(parent_->channel.get(), packet,
                    {ends.log.get(), ends.metrics.get(), replies_.read.get(), pair.theirs.get()})) {
      return absl::UnavailableError("the process that starts Python programs has ended");
    }
    pair.theirs.Close();
    const Packet started = AwaitPacket(status_.get(), kMaxFork);
    if (!started.content.contains("pid")) {
      return absl::UnavailableError("the process that starts Python programs can't fork");
    }
    helper_ = started.sender;
    exit_.reset();
    return absl::OkStatus();
  }

  bool Signal(int number) override {
    return !exit_.has_value() && SendPacket(status_.get(), {{"signal", number}}, {});
  }
  void Kill() override { Signal(SIGKILL); }

  std::optional<Exit> TryWait() override {
    if (exit_.has_value()) return exit_;
    const std::optional<Packet> packet = ReceivePacket(status_.get());
    if (!packet.has_value()) return std::nullopt;
    const nlohmann::json& content = packet->content;
    const int killed = content.contains("exit") ? 0 : SIGKILL;  // without content with its helper
    exit_ = Exit{.code = content.value("exit", 0),
                 .signal = content.value("signal", killed),
                 .lost = content.empty()};
    return exit_;
  }

  int EndDescriptor() const override { return status_.get(); }

  std::vector<pid_t> Processes(size_t max) const override {
    return exit_.has_value() ? std::vector<pid_t>() : Descendants(helper_, max);
  }

 private:
  const std::shared_ptr<WarmParent> parent_;
  process::FileDescriptor status_;
  pid_t helper_ = 0;
  std::optional<Exit> exit_;  // set before the start, too
};

// Starts a parent and waits until it has imported the modules. `folder` has the runs' folders.
absl::StatusOr<std::shared_ptr<WarmParent>> StartParent(const Request& run,
                                                        const std::string& folder,
                                                        const std::set<std::string>& imports) {
  ASSIGN_OR_RETURN(SocketPair pair, MakeSocketPair());
  Request request;
  request.command = {"python", "-B", absl::StrCat(kHelperFolder, "/", kWarmStartFile),
                     absl::StrCat(kMetricsDescriptor)};
  request.variables = {
      {"OMP_NUM_THREADS", "1"}, {"MKL_NUM_THREADS", "1"}, {"OPENBLAS_NUM_THREADS", "1"}};
  request.folder = folder;
  request.helpers = run.helpers;
  request.environment = run.environment;
  request.data = run.data_root;
  RETURN_IF_ERROR(CheckRequest(request));
  ASSIGN_OR_RETURN(std::unique_ptr<Process> process, Process::Start(request, pair.theirs));
  pair.theirs.Close();
  SendPacket(pair.ours.get(), {{"imports", imports}}, {});
  const Packet ready = AwaitPacket(pair.ours.get(), kMaxImport);
  if (!ready.content.contains("ready")) {
    std::string printed;
    ReadAvailable(process->log(), kPacketBytes, &printed);
    return absl::UnavailableError(
        absl::StrCat("the process that starts Python programs isn't ready: ", printed));
  }
  return std::make_shared<WarmParent>(WarmParent{std::move(process), std::move(pair.ours)});
}

bool ImportsModule(absl::string_view line, absl::string_view module) {
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "import ") && !absl::ConsumePrefix(&line, "from ")) return false;
  if (!absl::ConsumePrefix(&line, module)) return false;
  return line.empty() || absl::string_view(" .,\t\r").find(line[0]) != absl::string_view::npos;
}

void AddImports(const std::string& file, std::set<std::string>* imports) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    for (const char* module : kLargeModules) {
      if (ImportsModule(line, module)) imports->insert(module);
    }
  }
}

bool IsDirectlyIn(absl::string_view path, absl::string_view folder) {
  return absl::ConsumePrefix(&path, folder) && absl::ConsumePrefix(&path, "/") &&
         !absl::StrContains(path, '/');
}

}  // namespace

bool MayFork(const Request& request) {
  const std::vector<std::string>& command = request.command;
  if (!request.sandboxed || request.environment.interpreter.empty() || command.size() < 2) {
    return false;
  }
  const bool is_python = command[0] == "python" || command[0] == "python3";
  const bool is_option = absl::StartsWith(command[1], "-");
  const bool has_code = (command[1] == "-m" || command[1] == "-c") && command.size() > 2;
  // A run has folders of its own in place of these.
  const bool hides_folder = std::any_of(
      request.environment.folders.begin(), request.environment.folders.end(),
      [](const std::string& folder) {
        return absl::StartsWith(folder + "/", "/tmp/") || absl::StartsWith(folder, "/dev/shm");
      });
  const bool sees_data = request.data.empty() || IsDirectlyIn(request.data, request.data_root);
  return is_python && (!is_option || has_code) && request.devices.empty() && sees_data &&
         !hides_folder;
}

std::set<std::string> FindImports(const std::string& folder) {
  std::set<std::string> imports;
  size_t scanned = 0;
  WalkFolder(AT_FDCWD, folder, [&](const FolderEntry& entry) {
    const bool is_python = S_ISREG(entry.info.st_mode) && absl::EndsWith(entry.name, ".py");
    if (!is_python || entry.info.st_size > kMaxScannedBytes) return absl::OkStatus();
    AddImports(entry.path, &imports);
    return ++scanned < kMaxScanned ? absl::OkStatus() : absl::CancelledError();
  }).IgnoreError();
  return imports;
}

absl::StatusOr<std::unique_ptr<Process>> WarmPool::StartRun(const Request& request) {
  const size_t slash = request.folder.rfind('/');
  const std::string folder = request.folder.substr(0, slash);
  const std::set<std::string> imports = FindImports(request.folder);
  const std::shared_ptr<Place> place =
      Find(absl::StrCat(request.environment.name, " ", folder, " ", absl::StrJoin(imports, ",")));
  const nlohmann::json packet = {{"command", request.command},
                                 {"folder", request.folder.substr(slash + 1)},
                                 {"data", request.data.substr(request.data.rfind('/') + 1)},
                                 {"work", kWorkFolder},
                                 {"variables", ProgramVariables(request)},
                                 {"file_bytes", request.limits.disk_bytes},
                                 {"memory_bytes", request.limits.memory_bytes}};
  absl::Status failed;
  for (int attempt = 0; attempt < 2; ++attempt) {
    std::shared_ptr<WarmParent> parent;
    {
      MutexLock lock(&place->mutex);
      if (place->parent == nullptr) {
        ASSIGN_OR_RETURN(place->parent, StartParent(request, folder, imports));
      }
      parent = place->parent;
    }
    auto run = std::make_unique<ForkedProcess>(parent);
    failed = run->Start(packet);
    if (failed.ok()) return run;
    if (!absl::IsUnavailable(failed)) break;
    MutexLock lock(&place->mutex);
    if (place->parent == parent) place->parent = nullptr;
  }
  return failed;
}

std::shared_ptr<WarmPool::Place> WarmPool::Find(const std::string& key) {
  MutexLock lock(&mutex_);
  const auto known = std::find_if(recent_.begin(), recent_.end(),
                                  [&key](const auto& entry) { return entry.first == key; });
  if (known == recent_.end()) {
    recent_.emplace_front(key, std::make_shared<Place>());
    if (recent_.size() > kMostParents) recent_.pop_back();
  } else {
    recent_.splice(recent_.begin(), recent_, known);
  }
  return recent_.front().second;
}

}  // namespace ablate::program
