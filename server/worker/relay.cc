#include "server/worker/relay.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace ablate::worker {
namespace {

constexpr uint64_t kStopId = 0, kListenerId = 1;  // those of connections are larger
// Reports changes only, so that an end that is closed or blocked doesn't wake the thread again.
constexpr uint32_t kChanges = EPOLLIN | EPOLLOUT | EPOLLET;
// Events, clients, and buffers of a direction per turn: others get theirs in between.
constexpr int kEventsInTurn = 64, kClientsInTurn = 32, kBuffersInTurn = 4;
constexpr absl::Duration kMaxWait = absl::Minutes(1), kTick = absl::Milliseconds(1);
// Descriptors were short.
constexpr absl::Duration kAcceptAgainAfter = absl::Milliseconds(500);
constexpr absl::Duration kReportEvery = absl::Minutes(1);

// A peer that has disappeared is noticed within two minutes.
void SetOptions(int socket) {
  const std::tuple<int, int, int> options[] = {{IPPROTO_TCP, TCP_NODELAY, 1},
                                               {SOL_SOCKET, SO_KEEPALIVE, 1},
                                               {IPPROTO_TCP, TCP_KEEPIDLE, 60},
                                               {IPPROTO_TCP, TCP_KEEPINTVL, 15},
                                               {IPPROTO_TCP, TCP_KEEPCNT, 4}};
  for (const auto& [level, name, value] : options) {
    setsockopt(socket, level, name, &value, sizeof(value));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Relay>> Relay::Listen(RelayOptions options) {
  ASSIGN_OR_RETURN(process::FileDescriptor listener, net::ListenTcp(options.listen));
  return std::unique_ptr<Relay>(new Relay(std::move(options), std::move(listener)));
}

Relay::Relay(RelayOptions options, process::FileDescriptor listener)
    : options_(std::move(options)),
      listener_(std::move(listener)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      last_id_(kListenerId) {
  UseResolved(options_.resolve());
}

absl::Status Relay::Run(int stop) {
  if (!Watch(stop, kStopId, EPOLLIN) || !Watch(listener_.get(), kListenerId, EPOLLIN | EPOLLET)) {
    return absl::InternalError(absl::StrCat("can't watch sockets: ", std::strerror(errno)));
  }
  while (Turn()) {
  }
  connections_.clear();
  return absl::OkStatus();
}

bool Relay::Watch(int descriptor, uint64_t id, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

bool Relay::Turn() {
  absl::Duration until = again_.empty() ? accept_at_ : absl::ZeroDuration();
  if (!timers_.empty()) until = std::min(until, timers_.begin()->first);
  const absl::Duration wait = std::clamp(until - MonotonicNow(), absl::ZeroDuration(), kMaxWait);
  std::array<epoll_event, kEventsInTurn> events;
  const int count = epoll_wait(epoll_.get(), events.data(), kEventsInTurn,
                               static_cast<int>(absl::Ceil(wait, kTick) / kTick));
  const absl::Duration now = MonotonicNow();
  std::set<uint64_t> ready = std::exchange(again_, {});
  for (int i = 0; i < count; ++i) ready.insert(events[static_cast<size_t>(i)].data.u64);
  if (ready.erase(kStopId) > 0) return false;
  if (ready.erase(kListenerId) > 0) accept_at_ = now;
  for (const uint64_t id : ready) Advance(id, now);
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const uint64_t id = timers_.begin()->second;
    if (connections_.at(id).connected) {
      End(id);
    } else {
      Connect(id, ETIMEDOUT, now);
    }
  }
  if (accept_at_ <= now) Accept(now);
  return true;
}

void Relay::Accept(absl::Duration now) {
  for (int i = 0; i < kClientsInTurn; ++i) {
    process::FileDescriptor client(
        accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client.open() && errno == ECONNABORTED) continue;
    if (!client.open()) {
      const bool none = errno == EAGAIN;
      accept_at_ = none ? absl::InfiniteDuration() : now + kAcceptAgainAfter;
      if (!none) Report(absl::StrCat("connections wait: ", std::strerror(errno)));
      return;
    }
    if (connections_.size() >= options_.max_connections) {
      Report(absl::StrCat("closed a connection: all ", options_.max_connections, " are in use"));
      continue;
    }
    Connection& connection = connections_[++last_id_];
    connection.client = std::move(client);
    Connect(last_id_, 0, now);
  }
}

void Relay::Connect(uint64_t id, int error, absl::Duration now) {
  Connection& connection = connections_.at(id);
  if (resolving_.valid() &&
      resolving_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    UseResolved(resolving_.get());
  }
  while (connection.tried < endpoints_.size()) {
    const net::Endpoint& endpoint = endpoints_[connection.tried++];
    connection.server = process::FileDescriptor(
        socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int server = connection.server.get();
    const auto* const address = reinterpret_cast<const sockaddr*>(&endpoint.address);
    // Watched only then: epoll reports a socket that doesn't connect yet as closed.
    if (connection.server.open() &&
        (connect(server, address, endpoint.size) == 0 || errno == EINPROGRESS) &&
        Watch(server, id, kChanges)) {
      SetDue(id, now + options_.connect_timeout / endpoints_.size());
      return;
    }
    error = errno;
  }
  if (error != 0) Report(absl::StrCat("can't reach ", options_.to, ": ", std::strerror(error)));
  ResolveAgain(now);
  End(id);
}

void Relay::Advance(uint64_t id, absl::Duration now) {
  Connection& connection = connections_.at(id);
  const int client = connection.client.get(), server = connection.server.get();
  if (!connection.connected) {
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(server, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0 && !Watch(client, id, kChanges)) error = errno;
    if (error != 0) {
      Connect(id, error, now);
      return;
    }
    SetOptions(client);
    SetOptions(server);
    SetDue(id, absl::InfiniteDuration());
    connection.connected = true;
  }
  Flow& up = connection.to_server;
  Flow& down = connection.to_client;
  const uint64_t sent = down.sent;
  const bool more_up = Move(client, server, &up);
  const bool more_down = Move(server, client, &down);
  if (up.broken || down.broken || (up.done && down.done)) {
    End(id);
    return;
  }
  if (more_up || more_down) again_.insert(id);
  if (!down.done && down.held.empty()) {
    SetDue(id, absl::InfiniteDuration());
  } else if (down.sent > sent || connection.due == absl::InfiniteDuration()) {
    SetDue(id, now + options_.client_timeout);
  }
}

bool Relay::Move(int from, int to, Flow* flow) {
  for (int i = 0; i < kBuffersInTurn && !flow->done; ++i) {
    absl::string_view bytes = flow->held;
    if (bytes.empty() && !flow->ended) {
      const ssize_t size = recv(from, buffer_.data(), buffer_.size(), 0);
      if (size < 0 && errno == EAGAIN) return false;
      flow->broken = size < 0;
      flow->ended = size <= 0;
      bytes = {buffer_.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))};
    }
    if (bytes.empty()) {
      shutdown(to, SHUT_WR);
      flow->done = true;
      return false;
    }
    const ssize_t result = send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (result < 0 && errno != EAGAIN) {
      // The other direction goes on: the receiver's last bytes may still wait there.
      flow->done = true;
      return false;
    }
    const auto sent = static_cast<size_t>(std::max<ssize_t>(result, 0));
    flow->sent += sent;
    std::string(bytes.substr(sent)).swap(flow->held);  // releases memory, unlike an assignment
    if (!flow->held.empty()) return false;
  }
  return !flow->done;
}

void Relay::SetDue(uint64_t id, absl::Duration due) {
  Connection& connection = connections_.at(id);
  timers_.erase({connection.due, id});
  connection.due = due;
  if (due != absl::InfiniteDuration()) timers_.emplace(due, id);
}

void Relay::End(uint64_t id) {
  SetDue(id, absl::InfiniteDuration());
  again_.erase(id);
  connections_.erase(id);
}

void Relay::ResolveAgain(absl::Duration now) {
  if (resolving_.valid() || now < resolve_after_) return;
  resolve_after_ = now + options_.resolve_every;
  std::packaged_task<absl::StatusOr<Endpoints>()> task(options_.resolve);
  resolving_ = task.get_future();
  std::thread(std::move(task)).detach();
}

void Relay::UseResolved(absl::StatusOr<Endpoints> resolved) {
  if (resolved.ok()) {
    endpoints_ = *std::move(resolved);
  } else {
    Report(absl::StrCat("can't resolve ", options_.to, ": ", resolved.status().message()));
  }
}

void Relay::Report(const std::string& trouble) {
  const absl::Duration now = MonotonicNow();
  const auto [entry, first] = reported_.try_emplace(trouble, now);
  if (!first && now - entry->second < kReportEvery) return;
  entry->second = now;
  options_.on_trouble(trouble);
}

}  // namespace ablate::worker
