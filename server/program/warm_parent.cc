#include "server/program/warm_parent.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/program/command.h"
#include "server/program/layout.h"
#include "server/program/process_tree.h"

namespace ablate::program {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kMaxImport = absl::Minutes(1);
constexpr absl::Duration kMaxFork = absl::Seconds(30);
constexpr size_t kPacketBytes = 1 << 20;
// Modules that take long to import, and whose threads don't run before they are used.
constexpr const char* kLargeModules[] = {"numpy", "pandas", "scipy", "sklearn", "torch"};
constexpr size_t kMaxScanned = 1000;  // files
constexpr uintmax_t kMaxScannedBytes = 1 << 20;

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
  nlohmann::json content;
  pid_t sender = 0;
};

// Receives a packet if one is there. Nothing without one; null content at the end.
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
  packet.content = nlohmann::json::parse(text.begin(), text.begin() + size, nullptr, false);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_CREDENTIALS) {
    ucred sender;
    std::memcpy(&sender, CMSG_DATA(header), sizeof(sender));
    packet.sender = sender.pid;
  }
  return packet;
}

// Waits for a packet at most `wait`; null content at the end of the socket or of that time.
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
  ForkedProcess() = default;
  ~ForkedProcess() override { End(); }

  // Makes the run's descriptors and sends its request.
  absl::Status Start(const nlohmann::json& packet, int channel) {
    ASSIGN_OR_RETURN(ProgramEnds ends, MakeEnds());
    ASSIGN_OR_RETURN(SocketPair pair, MakeSocketPair());
    const int on = 1;
    setsockopt(pair.ours.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
    if (!SendPacket(channel, packet,
                    {ends.log.get(), ends.metrics.get(), replies_.read.get(), pair.theirs.get()})) {
      exit_ = Exit{};
      return absl::UnavailableError("the process that starts Python programs has ended");
    }
    status_ = std::move(pair.ours);
    return absl::OkStatus();
  }

  // Waits until the run exists.
  absl::Status AwaitFork() {
    Packet packet = AwaitPacket(status_.get(), kMaxFork);
    if (packet.content.is_object() && packet.content.contains("pid")) {
      helper_ = packet.sender;
      return absl::OkStatus();
    }
    exit_ = Exit{};
    return absl::UnavailableError("the process that starts Python programs can't fork");
  }

  bool Signal(int number) override {
    return !exit_.has_value() && SendPacket(status_.get(), {{"signal", number}}, {});
  }
  void Kill() override { Signal(SIGKILL); }

  std::optional<Exit> TryWait() override {
    if (exit_.has_value()) return exit_;
    const std::optional<Packet> packet = ReceivePacket(status_.get());
    if (!packet.has_value()) return std::nullopt;
    Exit ended;
    const nlohmann::json& content = packet->content;
    if (content.is_object() && content.contains("exit")) {
      ended.code = content["exit"].get<int>();
    } else if (content.is_object() && content.contains("signal")) {
      ended.signal = content["signal"].get<int>();
    } else {
      ended.signal = SIGKILL;  // its helper was killed
    }
    exit_ = ended;
    return exit_;
  }

  int EndDescriptor() const override { return status_.get(); }

  std::vector<pid_t> Processes(size_t max) const override {
    return exit_.has_value() ? std::vector<pid_t>() : Descendants(helper_, max);
  }

 private:
  process::FileDescriptor status_;
  pid_t helper_ = 0;
  std::optional<Exit> exit_;
};

bool ImportsModule(absl::string_view line, absl::string_view module) {
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "import ") && !absl::ConsumePrefix(&line, "from ")) return false;
  if (!absl::ConsumePrefix(&line, module)) return false;
  return line.empty() || absl::string_view(" .,\t\r").find(line[0]) != absl::string_view::npos;
}

void AddImports(const fs::path& file, std::set<std::string>* imports) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    for (const char* module : kLargeModules) {
      if (ImportsModule(line, module)) imports->insert(module);
    }
  }
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
  return is_python && (!is_option || has_code) && request.devices.empty() && request.data.empty();
}

std::set<std::string> FindImports(const std::string& folder) {
  std::set<std::string> imports;
  size_t scanned = 0;
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(folder, error);
       !error && at != fs::recursive_directory_iterator() && scanned < kMaxScanned;
       at.increment(error)) {
    std::error_code ignored;
    if (at->path().extension() != ".py" || at->is_symlink(ignored)) continue;
    if (!at->is_regular_file(ignored) || at->file_size(ignored) > kMaxScannedBytes) continue;
    ++scanned;
    AddImports(at->path(), &imports);
  }
  return imports;
}

absl::StatusOr<std::unique_ptr<WarmParent>> WarmParent::Start(
    const Environment& environment, const std::string& folder, const std::string& helpers,
    const std::set<std::string>& imports) {
  ASSIGN_OR_RETURN(SocketPair pair, MakeSocketPair());
  Request request;
  request.command = {"python", "-B", absl::StrCat(kHelperFolder, "/", kWarmStartFile),
                     absl::StrCat(kMetricsDescriptor)};
  request.variables = {
      {"OMP_NUM_THREADS", "1"}, {"MKL_NUM_THREADS", "1"}, {"OPENBLAS_NUM_THREADS", "1"}};
  request.folder = folder;
  request.helpers = helpers;
  request.environment = environment;
  RETURN_IF_ERROR(CheckRequest(request));
  ASSIGN_OR_RETURN(std::unique_ptr<Process> process,
                   Process::StartForking(request, std::move(pair.theirs)));
  if (!SendPacket(pair.ours.get(), {{"imports", imports}}, {})) {
    return absl::UnavailableError("the process that starts Python programs has ended");
  }
  const Packet ready = AwaitPacket(pair.ours.get(), kMaxImport);
  if (!ready.content.is_object() || !ready.content.contains("ready")) {
    std::string printed;
    ReadAvailable(process->log(), kPacketBytes, &printed);
    return absl::UnavailableError(
        absl::StrCat("the process that starts Python programs isn't ready: ", printed));
  }
  return std::unique_ptr<WarmParent>(
      new WarmParent(folder, std::move(process), std::move(pair.ours)));
}

WarmParent::~WarmParent() = default;

absl::StatusOr<std::unique_ptr<Process>> WarmParent::StartRun(const Request& request) {
  absl::string_view name = request.folder;
  if (!absl::ConsumePrefix(&name, absl::StrCat(folder_, "/")) || absl::StrContains(name, '/')) {
    return absl::InvalidArgumentError(
        absl::StrCat("folder: ", request.folder, " isn't directly in ", folder_));
  }
  std::map<std::string, std::string> variables = ProgramVariables(request);
  const nlohmann::json packet = {{"command", request.command},
                                 {"folder", std::string(name)},
                                 {"work", kWorkFolder},
                                 {"variables", variables},
                                 {"file_bytes", request.limits.disk_bytes},
                                 {"memory_bytes", request.limits.memory_bytes}};
  auto run = std::make_unique<ForkedProcess>();
  {
    MutexLock lock(&mutex_);
    // Messages of helpers that failed; they would wait if nobody read them.
    std::string ignored;
    ReadAvailable(process_->log(), kPacketBytes, &ignored);
    RETURN_IF_ERROR(run->Start(packet, channel_.get()));
  }
  RETURN_IF_ERROR(run->AwaitFork());
  return run;
}

}  // namespace ablate::program
