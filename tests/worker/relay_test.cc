// Tests the relay with clients and a server on loopback.
#include "server/worker/relay.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/host.h"

namespace ablate::worker {
namespace {

using process::FileDescriptor;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kLongMillis = 60'000;  // on a busy machine; no test waits for its end
constexpr size_t kMiB = 1 << 20;

FileDescriptor NewSocket(int more_flags = 0) {
  return FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | more_flags, 0));
}

std::vector<net::Endpoint> LoopbackAt(int port) {
  return *net::Resolve(*text::ParseHostPort(absl::StrCat("127.0.0.1:", port), /*least_port=*/0));
}

bool Await(int socket, short events) {
  pollfd waiting = {socket, events, 0};
  return poll(&waiting, 1, kLongMillis) > 0;
}

// A port of a server, at which connections are refused until it listens.
class Port {
 public:
  Port() {
    const net::Endpoint any = LoopbackAt(0).front();
    const auto* const address = reinterpret_cast<const sockaddr*>(&any.address);
    EXPECT_EQ(bind(socket_.get(), address, any.size), 0);
  }
  void Listen(int backlog = SOMAXCONN) {
    EXPECT_EQ(listen(socket_.get(), backlog), 0);
    listens_ = true;
  }
  bool listens() const { return listens_; }
  int socket() const { return socket_.get(); }
  int number() const { return net::PortOf(socket_.get()); }
  FileDescriptor Accept() const {
    EXPECT_TRUE(Await(socket_.get(), POLLIN)) << "nobody connects";
    return FileDescriptor(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

 private:
  const FileDescriptor socket_ = NewSocket();
  bool listens_ = false;
};

int ConnectTo(int socket, int port) {
  const net::Endpoint to = LoopbackAt(port).front();
  return connect(socket, reinterpret_cast<const sockaddr*>(&to.address), to.size);
}

// Returns false if the receiver is gone.
bool Send(const FileDescriptor& socket, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

// Returns the next bytes, all if `most` is absent; fewer if the sender ends or is gone.
std::string Receive(const FileDescriptor& socket, size_t most = std::string::npos) {
  std::string bytes;
  std::string buffer(kMiB, '\0');
  while (bytes.size() < most) {
    if (!Await(socket.get(), POLLIN)) {
      ADD_FAILURE() << "nothing comes after " << bytes.size() << " bytes";
      break;
    }
    const ssize_t size =
        recv(socket.get(), buffer.data(), std::min(buffer.size(), most - bytes.size()), 0);
    if (size <= 0) break;
    bytes.append(buffer, 0, static_cast<size_t>(size));
  }
  return bytes;
}

class RelayTest : public testing::Test {
 protected:
  RelayTest() { server_.Listen(); }
  ~RelayTest() override { Stop(); }

  // Starts the relay, by default to server_.
  void Start(RelayOptions options = {}) {
    options.listen = "127.0.0.1:0";
    options.to = "box.example.org:7443";
    options.on_trouble = [this](const std::string& trouble) {
      const std::lock_guard<std::mutex> lock(mutex_);
      troubles_.push_back(trouble);
      changed_.notify_all();
    };
    if (!options.resolve) {
      options.resolve = [port = server_.number()] { return LoopbackAt(port); };
    }
    auto relay = Relay::Listen(std::move(options));
    ASSERT_TRUE(relay.ok()) << relay.status();
    relay_ = *std::move(relay);
    thread_ = std::thread([this] { EXPECT_TRUE(relay_->Run(stop_.get()).ok()); });
  }

  void Stop() {
    if (!thread_.joinable()) return;
    EXPECT_EQ(eventfd_write(stop_.get(), 1), 0);
    thread_.join();
  }

  FileDescriptor Connect() const {
    FileDescriptor client = NewSocket();
    EXPECT_EQ(ConnectTo(client.get(), relay_->port()), 0);
    return client;
  }

  // Waits until bytes pass through a new connection, or until the relay has closed it.
  bool Passes(const Port& server) const {
    const FileDescriptor client = Connect();
    Send(client, "x");
    pollfd waiting[] = {{client.get(), POLLIN, 0},
                        {server.listens() ? server.socket() : -1, POLLIN, 0}};
    EXPECT_GT(poll(waiting, 2, kLongMillis), 0);
    return waiting[1].revents != 0 && Receive(server.Accept(), 1) == "x";
  }
  bool Passes() const { return Passes(server_); }

  std::vector<std::string> WaitForTroubles() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !troubles_.empty(); });
    return troubles_;
  }

  Port server_;
  const FileDescriptor stop_ = FileDescriptor(eventfd(0, EFD_CLOEXEC));
  std::unique_ptr<Relay> relay_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> troubles_;
  std::thread thread_;
};

// Sends bytes in chunks of random sizes, then ends this direction.
void SendInChunks(const FileDescriptor& socket, absl::string_view bytes, uint32_t seed) {
  std::mt19937 random(seed);
  while (!bytes.empty()) {
    const size_t size = std::uniform_int_distribution<size_t>(1, 200'000)(random);
    ASSERT_TRUE(Send(socket, bytes.substr(0, size)));
    bytes.remove_prefix(std::min(size, bytes.size()));
  }
  shutdown(socket.get(), SHUT_WR);
}

std::string RandomBytes(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<char>(random()); });
  return bytes;
}

TEST_F(RelayTest, PassesBytesBothWaysUnchanged) {
  Start();
  const FileDescriptor client = Connect();
  const FileDescriptor server = server_.Accept();
  const std::string up = RandomBytes(8 * kMiB + 1, 1), down = RandomBytes(5 * kMiB + 3, 2);
  std::thread up_sender([&] { SendInChunks(client, up, 3); });
  std::thread down_sender([&] { SendInChunks(server, down, 4); });
  std::string received_up;
  std::thread up_receiver([&] { received_up = Receive(server); });
  const std::string received_down = Receive(client);
  for (std::thread* each : {&up_sender, &down_sender, &up_receiver}) each->join();
  EXPECT_TRUE(received_up == up);
  EXPECT_TRUE(received_down == down);
}

TEST_F(RelayTest, PassesOnTheEndOfOneDirection) {
  Start();
  const FileDescriptor client = Connect();
  const FileDescriptor server = server_.Accept();
  EXPECT_TRUE(Send(client, "question"));
  shutdown(client.get(), SHUT_WR);
  EXPECT_EQ(Receive(server), "question");
  EXPECT_TRUE(Send(server, "answer"));
  shutdown(server.get(), SHUT_WR);
  EXPECT_EQ(Receive(client), "answer");
}

TEST_F(RelayTest, EndsTheOtherEndWhenOneIsReset) {
  Start();
  FileDescriptor client = Connect();
  const FileDescriptor server = server_.Accept();
  EXPECT_TRUE(Send(client, "last"));
  EXPECT_EQ(Receive(server, 4), "last");
  const linger reset = {1, 0};
  EXPECT_EQ(setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
  EXPECT_TRUE(client.Close());
  EXPECT_EQ(Receive(server), "");
}

TEST_F(RelayTest, BlocksASenderWhoseReceiverReadsNothing) {
  Start();
  const FileDescriptor client = Connect();
  const FileDescriptor server = server_.Accept();
  ASSERT_EQ(fcntl(client.get(), F_SETFL, O_NONBLOCK), 0);
  const std::string chunk = RandomBytes(kMiB, 5);
  constexpr size_t kFar = 256 * kMiB;  // the kernel's buffers hold some megabytes
  std::string sent;
  constexpr int kBlockedMillis = 300;  // too short a time can't fail the test
  pollfd writable = {client.get(), POLLOUT, 0};
  while (sent.size() < kFar && poll(&writable, 1, kBlockedMillis) > 0) {
    const ssize_t size = send(client.get(), chunk.data(), chunk.size(), MSG_NOSIGNAL);
    ASSERT_GT(size, 0);
    sent.append(chunk, 0, static_cast<size_t>(size));
  }
  EXPECT_LT(sent.size(), kFar);
  shutdown(client.get(), SHUT_WR);
  EXPECT_TRUE(Receive(server) == sent);
}

TEST_F(RelayTest, ClosesConnectionsWhileTheServerIsAway) {
  Port server;
  RelayOptions options;
  options.resolve = [port = server.number()] { return LoopbackAt(port); };
  Start(std::move(options));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Passes(server));
  server.Listen();
  EXPECT_TRUE(Passes(server));
  EXPECT_THAT(WaitForTroubles(),
              ElementsAre("can't reach box.example.org:7443: Connection refused"));
}

// Returns sockets that fill the queue of a listener, so that it answers no further connection.
std::vector<FileDescriptor> Fill(const Port& listener) {
  std::vector<FileDescriptor> waiting;
  while (true) {
    waiting.push_back(NewSocket(SOCK_NONBLOCK));
    ConnectTo(waiting.back().get(), listener.number());
    constexpr int kAnsweredMillis = 100;
    pollfd connected = {waiting.back().get(), POLLOUT, 0};
    if (poll(&connected, 1, kAnsweredMillis) == 0) return waiting;
  }
}

TEST_F(RelayTest, ClosesAConnectionIfTheServerDoesNotAnswerInTime) {
  Port deaf;
  deaf.Listen(/*backlog=*/0);
  const std::vector<FileDescriptor> waiting = Fill(deaf);
  RelayOptions options;
  options.resolve = [port = deaf.number()] { return LoopbackAt(port); };
  options.connect_timeout = absl::Milliseconds(50);
  Start(std::move(options));
  EXPECT_EQ(Receive(Connect()), "");
  EXPECT_THAT(WaitForTroubles(),
              ElementsAre("can't reach box.example.org:7443: Connection timed out"));
}

TEST_F(RelayTest, TriesTheNextEndpointIfOneRefusesOrDoesNotAnswer) {
  Port refusing, deaf;
  deaf.Listen(/*backlog=*/0);
  const std::vector<FileDescriptor> waiting = Fill(deaf);
  RelayOptions options;
  std::vector<net::Endpoint> all;
  for (const int port : {refusing.number(), deaf.number(), server_.number()}) {
    all.push_back(LoopbackAt(port).front());
  }
  options.resolve = [all] { return all; };
  options.connect_timeout = absl::Milliseconds(300);
  Start(std::move(options));
  EXPECT_TRUE(Passes());
}

TEST_F(RelayTest, ResolvesTheServerAgainAfterAFailedConnect) {
  Port before;
  RelayOptions options;
  options.resolve_every = absl::ZeroDuration();
  options.resolve = [before = before.number(), now = server_.number(),
                     calls = std::make_shared<std::atomic<int>>(
                         0)]() -> absl::StatusOr<std::vector<net::Endpoint>> {
    const int call = (*calls)++;
    if (call == 0) return absl::UnavailableError("no such name");
    return LoopbackAt(call == 1 ? before : now);
  };
  Start(std::move(options));
  EXPECT_THAT(WaitForTroubles(), ElementsAre("can't resolve box.example.org:7443: no such name"));
  while (!Passes()) {
  }
  EXPECT_THAT(WaitForTroubles(), Contains(HasSubstr("Connection refused")));
}

TEST_F(RelayTest, CarriesManyConnections) {
  Start();
  constexpr int kConnections = 200;
  std::vector<FileDescriptor> clients, servers;
  for (int i = 0; i < kConnections; ++i) {
    clients.push_back(Connect());
    EXPECT_TRUE(Send(clients.back(), absl::StrCat("client ", 100 + i)));
    servers.push_back(server_.Accept());
  }
  for (const FileDescriptor& server : servers) {
    EXPECT_TRUE(Send(server, absl::StrCat("for ", Receive(server, 10))));
  }
  for (int i = 0; i < kConnections; ++i) {
    EXPECT_EQ(Receive(clients[static_cast<size_t>(i)], 14), absl::StrCat("for client ", 100 + i));
  }
}

TEST_F(RelayTest, ClosesConnectionsAboveTheLimitAtOnce) {
  RelayOptions options;
  options.max_connections = 2;
  Start(std::move(options));
  std::vector<FileDescriptor> clients, servers;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(Connect());
    servers.push_back(server_.Accept());
  }
  EXPECT_EQ(Receive(Connect()), "");
  EXPECT_EQ(Receive(Connect()), "");
  EXPECT_THAT(WaitForTroubles(), ElementsAre("closed a connection: all 2 are in use"));
  EXPECT_TRUE(Send(clients[0], "1") && Send(clients[1], "2")) << "the others stay";
  EXPECT_EQ(Receive(servers[0], 1) + Receive(servers[1], 1), "12");
  clients.clear();
  servers.clear();
  while (!Passes()) {
  }
}

TEST_F(RelayTest, AcceptsAgainOnceThereAreDescriptors) {
  Start();
  const FileDescriptor client = NewSocket();
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none = {0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_EQ(ConnectTo(client.get(), relay_->port()), 0);
  EXPECT_THAT(WaitForTroubles(), ElementsAre("connections wait: Too many open files"));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(Send(client, "x"));
  EXPECT_EQ(Receive(server_.Accept(), 1), "x");
}

TEST_F(RelayTest, ClosesAClientThatTakesNothing) {
  RelayOptions options;
  options.client_timeout = absl::Milliseconds(50);
  Start(std::move(options));
  const FileDescriptor client = Connect();
  const FileDescriptor server = server_.Accept();
  const std::string bytes(kMiB, 'x');
  while (Send(server, bytes)) {
  }
}

TEST_F(RelayTest, ClosesAClientThatDoesNotEndAfterTheServer) {
  RelayOptions options;
  options.client_timeout = absl::Milliseconds(50);
  Start(std::move(options));
  const FileDescriptor client = Connect();
  const FileDescriptor server = server_.Accept();
  shutdown(server.get(), SHUT_WR);
  EXPECT_EQ(Receive(client), "");
  EXPECT_EQ(Receive(server), "");
}

TEST_F(RelayTest, ClosesAllConnectionsWhenItIsStopped) {
  Start();
  const FileDescriptor client = Connect();
  const FileDescriptor server = server_.Accept();
  Stop();
  EXPECT_EQ(Receive(client), "");
  EXPECT_EQ(Receive(server), "");
}

TEST(RelayListenTest, SaysWhichAddressCannotBe) {
  RelayOptions options;
  options.listen = "localhost";
  const absl::Status status = Relay::Listen(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("can't listen on localhost: without a port"));
}

}  // namespace
}  // namespace ablate::worker
