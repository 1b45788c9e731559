#include "server/net/public_port.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/tcp.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "server/lookup/limits.h"
#include "server/net/public_limits.h"

namespace ablate::net {
namespace {

// Every connection gets a turn this often, so that late ones are noticed.
constexpr absl::Duration kTurnAtLeastEvery = absl::Seconds(1);
// Connections accepted in one turn; others get their turns between.
constexpr int kAcceptsInTurn = 32;
constexpr absl::Duration kAcceptAgainAfter = absl::Milliseconds(100);
// After this time everything that the connections of a group used up is available again.
constexpr absl::Duration kForgetGroupAfter =
    absl::Seconds(1 + static_cast<int>(kCallBurst / kCallsPerSecond));

absl::Duration Now() { return MonotonicNow(); }

int Millis(absl::Duration duration) { return static_cast<int>(duration / absl::Milliseconds(1)); }

// Needed because OpenSSL writes to sockets without MSG_NOSIGNAL.
void BlockSigpipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

// Taken in one turn; others come in the next.
constexpr int kEventsInTurn = 512;

}  // namespace

absl::StatusOr<std::unique_ptr<PublicPort>> PublicPort::Listen(const PublicPortOptions& options) {
  ASSIGN_OR_RETURN(TlsContext context,
                   MakeTlsContext(options.certificate_chain, options.private_key));
  ASSIGN_OR_RETURN(process::FileDescriptor listener, ListenTcp(options.address));
  process::FileDescriptor wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  process::FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!wake.open() || !epoll.open()) {
    return absl::UnavailableError("can't listen: no descriptors are left");
  }
  const int port = PortOf(listener.get());
  return std::unique_ptr<PublicPort>(new PublicPort(
      std::move(context), std::move(listener), std::move(wake), std::move(epoll), port, options));
}

PublicPort::PublicPort(TlsContext context, process::FileDescriptor listener,
                       process::FileDescriptor wake, process::FileDescriptor epoll, int port,
                       const PublicPortOptions& options)
    : context_(std::move(context)),
      wake_(std::move(wake)),
      epoll_(std::move(epoll)),
      port_(port),
      table_(std::make_shared<ConnectionTable>([this] { Wake(); })),
      call_authenticator_(MakeCallAuthenticator(options.authenticate, table_)),
      on_hang_ups_(options.on_hang_ups),
      listener_(std::move(listener)) {}

PublicPort::~PublicPort() {
  stopping_ = true;
  Wake();
  if (thread_.joinable()) thread_.join();
}

void PublicPort::Prepare(grpc::ServerBuilder* builder) {
  // These credentials accept local sockets without TLS, but still ask for tokens.
  const std::shared_ptr<grpc::ServerCredentials> credentials =
      grpc::experimental::LocalServerCredentials(UDS);
  credentials->SetAuthMetadataProcessor(call_authenticator_);
  acceptor_ = builder->experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  builder->SetMaxReceiveMessageSize(lookup::kMaxRequestBytes);
  // gRPC checks the size of a message after decompression; a thousandth of it is sent.
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  grpc::ResourceQuota quota("public port");
  quota.Resize(kPublicQuotaBytes);
  quota.SetMaxThreads(kMaxPublicServiceThreads);
  builder->SetResourceQuota(quota);
  const std::pair<const char*, int> arguments[] = {
      {GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxPublicCalls},
      {GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes},
      {GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Millis(kLetInTimeout)},
      {GRPC_ARG_MAX_CONNECTION_IDLE_MS, Millis(kMaxPublicIdle)},
      {GRPC_ARG_KEEPALIVE_TIME_MS, Millis(kPublicPingAfter)},
      {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Millis(kPublicPingTimeout)},
      {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
      {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},  // the server's own pings: as many as it takes
      {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, Millis(kMinPublicPingInterval)},
  };
  for (const auto& [name, value] : arguments) builder->AddChannelArgument(name, value);
}

void PublicPort::Serve() {
  thread_ = std::thread([this] { Run(); });
}

void PublicPort::StopAccepting() {
  accepting_ = false;
  Wake();
}

absl::Status PublicPort::UseCertificate(const std::string& certificate_chain,
                                        const std::string& private_key) {
  ASSIGN_OR_RETURN(TlsContext context, MakeTlsContext(certificate_chain, private_key));
  MutexLock lock(&mutex_);
  context_ = std::move(context);
  return absl::OkStatus();
}

// A session holds its context as long as it needs it.
TlsSession PublicPort::NewSession() {
  MutexLock lock(&mutex_);
  return TlsSession(SSL_new(context_.get()));
}

void PublicPort::Run() {
  BlockSigpipe();
  short waking = 0;
  Watch(wake_.get(), POLLIN, nullptr, &waking);
  while (!stopping_) Turn();
  for (const std::unique_ptr<Connection>& each : connections_) End(each.get(), Now());
}

void PublicPort::Turn() {
  absl::Duration now = Now();
  if (!accepting_ && listener_.open()) {
    Watch(listener_.get(), 0, nullptr, &listening_);
    listener_ = process::FileDescriptor();
  }
  const bool accepts = listener_.open() && now >= accept_after_;
  if (listener_.open()) Watch(listener_.get(), accepts ? POLLIN : 0, &listener_, &listening_);
  absl::Duration until =
      now + (listener_.open() && !accepts ? kAcceptAgainAfter : kTurnAtLeastEvery);
  if (!due_.empty()) until = std::min(until, due_.begin()->first);
  std::set<Connection*> ready;
  const bool newcomers = WaitForEvents(until, &ready);
  now = Now();
  NoteUsers(now);
  for (const auto& [due, connection] : due_) {
    if (due > now) break;
    ready.insert(connection);
  }
  for (Connection* const connection : ready) Pump(connection, now);
  if (newcomers) AcceptWaiting(now);
  Sweep(now);
  SayHangUps(now);
}

bool PublicPort::WaitForEvents(absl::Duration until, std::set<Connection*>* ready) {
  std::array<epoll_event, kEventsInTurn> events;
  const absl::Duration pause = std::max(until - Now(), absl::ZeroDuration());
  const int count = epoll_wait(epoll_.get(), events.data(), kEventsInTurn,
                               Millis(absl::Ceil(pause, absl::Milliseconds(1))));
  bool newcomers = false;
  for (int i = 0; i < count; ++i) {
    void* const of = events[static_cast<size_t>(i)].data.ptr;
    newcomers = newcomers || of == &listener_;
    if (of != nullptr && of != &listener_) ready->insert(static_cast<Connection*>(of));
  }
  return newcomers;
}

void PublicPort::SetDue(Connection* connection, absl::Duration due) {
  due_.erase({connection->due, connection});
  connection->due = due;
  due_.insert({due, connection});
}

void PublicPort::Watch(int descriptor, short events, void* of, short* reported) const {
  const short before = std::exchange(*reported, events);
  if (events == before) return;
  epoll_event event{};
  event.events = static_cast<uint32_t>(events);  // as poll's
  event.data.ptr = of;
  const int operation = events == 0 ? EPOLL_CTL_DEL : before == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  // Fails only for want of memory: then the descriptor has its turn when it is due.
  epoll_ctl(epoll_.get(), operation, descriptor, &event);
}

void PublicPort::AcceptWaiting(absl::Duration now) {
  for (int i = 0; i < kAcceptsInTurn; ++i) {
    sockaddr_storage address = {};
    socklen_t size = sizeof(address);
    process::FileDescriptor client(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&address),
                                           &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client.open()) {
      // Without a pause, poll() would report a connection that can't be accepted again and again.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        accept_after_ = now + kAcceptAgainAfter;
      }
      return;
    }
    Admit(std::move(client), PeerOf(address, size), now);
  }
}

// Closes a connection at once if there is no room: left in the listener's queue it would make
// others wait.
void PublicPort::Admit(process::FileDescriptor client, const Peer& peer, absl::Duration now) {
  Group& shared = GroupOf(peer.group, now, &addresses_);
  if (!MakeRoom(shared, now)) {
    NoteHangUp(peer.address, "too many connections in all, or of this address");
    return;
  }
  TlsSession ssl = NewSession();
  if (ssl == nullptr) return;
  SSL_set_accept_state(ssl.get());
  const int on = 1;
  setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  auto connection = std::make_unique<Connection>();
  connection->id = table_->Add(peer.address);
  connection->peer = peer.address;
  connection->address = &shared;
  connection->let_in_by = now + kLetInTimeout;
  connection->pipe = std::make_unique<TlsPipe>(
      std::move(ssl), std::move(client),
      FrameGate(kConnectionHeader, connection->id, &shared.calls),
      [this] { return ConnectToServer(); }, now);
  SetDue(connection.get(), now);
  connections_.push_back(std::move(connection));
  ++shared.connections;
  ++shared.unauthenticated_peers;
  ++unauthenticated_peers_;
}

// Closes the unauthenticated connection that has waited longest, of the same address if that one is
// full. An honest client authenticates within a few round trips, so that it is hardly ever closed.
bool PublicPort::MakeRoom(const Group& address, absl::Duration now) {
  const bool address_full = address.connections >= kMaxConnectionsOfAddress ||
                            address.unauthenticated_peers >= kMaxUnauthenticatedPeersOfAddress;
  const bool full = connections_.size() >= kMaxPublicConnections ||
                    unauthenticated_peers_ >= kMaxUnauthenticatedPeers;
  if (!address_full && !full) return true;
  for (const std::unique_ptr<Connection>& each : connections_) {
    const bool ended = each->pipe == nullptr;
    if (ended || !each->unauthenticated || (address_full && each->address != &address)) continue;
    NoteHangUp(each->peer, "too many connections without a call that has a valid token");
    End(each.get(), now);
    return true;
  }
  return false;
}

void PublicPort::Pump(Connection* connection, absl::Duration now) {
  absl::Status pumped = connection->pipe->Pump(now);
  if (pumped.ok() && connection->unauthenticated && now >= connection->let_in_by) {
    pumped = absl::DeadlineExceededError(
        absl::StrCat("no call with a valid token within ", absl::FormatDuration(kLetInTimeout)));
  }
  if (!pumped.ok()) {
    if (!absl::IsCancelled(pumped)) NoteHangUp(connection->peer, pumped.message());
    End(connection, now);
    return;
  }
  const TlsPipe& pipe = *connection->pipe;
  Watch(pipe.client(), pipe.client_events(), connection, &connection->client_events);
  Watch(pipe.server(), pipe.server_events(), connection, &connection->server_events);
  absl::Duration due = now + kTurnAtLeastEvery;
  if (pipe.wait() > absl::ZeroDuration()) due = std::min(due, now + pipe.wait());
  SetDue(connection, pipe.more() ? now : due);
}

void PublicPort::NoteUsers(absl::Duration now) {
  uint64_t woken = 0;
  if (read(wake_.get(), &woken, sizeof(woken)) < 0) return;
  for (const std::unique_ptr<Connection>& each : connections_) NoteUser(each.get(), now);
}

void PublicPort::NoteUser(Connection* connection, absl::Duration now) {
  const std::optional<std::string> user = table_->UserOf(connection->id);
  if (!user.has_value()) return;
  if (connection->unauthenticated) LetIn(connection);
  Group* const group = user->empty() ? nullptr : &GroupOf(*user, now, &users_);
  if (group == connection->user) return;
  LeaveUser(connection, now);
  connection->user = group;
  if (group != nullptr) ++group->connections;
  connection->pipe->LetIn(group != nullptr ? &group->calls : &connection->address->calls);
}

void PublicPort::LetIn(Connection* connection) {
  connection->unauthenticated = false;
  SetDue(connection, absl::ZeroDuration());
  connection->pipe->LetIn(&connection->address->calls);
  --connection->address->unauthenticated_peers;
  --unauthenticated_peers_;
}

void PublicPort::LeaveUser(Connection* connection, absl::Duration now) {
  if (connection->user == nullptr) return;
  --connection->user->connections;
  connection->user->left = now;
  connection->user = nullptr;
}

void PublicPort::End(Connection* connection, absl::Duration now) {
  if (connection->pipe == nullptr) return;
  // A child process that is being started may still hold the descriptors, and epoll with them.
  Watch(connection->pipe->client(), 0, nullptr, &connection->client_events);
  Watch(connection->pipe->server(), 0, nullptr, &connection->server_events);
  connection->pipe = nullptr;
  due_.erase({connection->due, connection});
  ended_ = true;
  table_->Remove(connection->id);
  if (connection->unauthenticated) {
    --connection->address->unauthenticated_peers;
    --unauthenticated_peers_;
  }
  --connection->address->connections;
  connection->address->left = now;
  LeaveUser(connection, now);
}

void PublicPort::Sweep(absl::Duration now) {
  if (std::exchange(ended_, false)) {
    std::erase_if(connections_, [](const auto& each) { return each->pipe == nullptr; });
  }
  if (now - swept_ < kTurnAtLeastEvery) return;
  swept_ = now;
  for (Groups* groups : {&addresses_, &users_}) {
    for (auto it = groups->begin(); it != groups->end();) {
      const bool gone = it->second.connections == 0 && now - it->second.left > kForgetGroupAfter;
      it = gone ? groups->erase(it) : std::next(it);
    }
  }
}

PublicPort::Group& PublicPort::GroupOf(const std::string& name, absl::Duration now,
                                       Groups* groups) {
  return groups->try_emplace(name, Group{0, 0, Rate(kCallsPerSecond, kCallBurst), now})
      .first->second;
}

void PublicPort::NoteHangUp(const std::string& peer, absl::string_view why) {
  ++hang_ups_;
  last_hang_up_ = absl::StrCat(peer, ": ", why);
}

void PublicPort::SayHangUps(absl::Duration now) {
  if (hang_ups_ == 0 || on_hang_ups_ == nullptr) return;
  if (now - said_hang_ups_ < kSayHangUpsEvery) return;
  on_hang_ups_(
      absl::StrCat("hung up on ", hang_ups_, " connections, the last from ", last_hang_up_));
  said_hang_ups_ = now;
  hang_ups_ = 0;
}

process::FileDescriptor PublicPort::ConnectToServer() {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return {};
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.fd = ends[0];
  acceptor_->HandleNewConnection(&parameters);
  return process::FileDescriptor(ends[1]);
}

void PublicPort::Wake() const {
  const uint64_t one = 1;
  // It fails only if the wake-up is pending already.
  if (write(wake_.get(), &one, sizeof(one)) < 0) return;
}

}  // namespace ablate::net
