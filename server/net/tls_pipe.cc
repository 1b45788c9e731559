#include "server/net/tls_pipe.h"

#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/net/public_limits.h"

namespace ablate::net {
namespace {

// One TLS record.
constexpr size_t kReadBytes = 16 << 10;
// Number of reads and writes per end before others get their turn.
constexpr int kTurns = 8;

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

TlsPipe::TlsPipe(TlsSession ssl, process::FileDescriptor client, FrameGate gate, Connect connect,
                 absl::Duration now)
    : ssl_(std::move(ssl)),
      client_(std::move(client)),
      gate_(std::move(gate)),
      connect_(std::move(connect)),
      owing_since_(now) {
  SSL_set_fd(ssl_.get(), client_.get());
}

// Tells the client that nothing was cut off; a failure doesn't matter.
TlsPipe::~TlsPipe() {
  ERR_clear_error();
  if (open_) SSL_shutdown(ssl_.get());
}

absl::Status TlsPipe::Pump(absl::Duration now) {
  more_ = true;
  tls_wants_write_ = false;
  for (int turn = 0; turn < kTurns && more_ && status_.ok(); ++turn) {
    more_ = open_ || Handshake();
    if (!open_) continue;
    // Call each, whatever the others did.
    const bool moved[] = {ReadClient(), PassGate(now), WriteServer(), ReadServer(),
                          WriteClient(now)};
    more_ = false;
    for (const bool each : moved) more_ = more_ || each;
  }
  if (status_.ok()) CheckDrain(now);
  return status_;
}

short TlsPipe::client_events() const {
  short events = 0;
  if (!open_ || from_client_.empty()) events |= POLLIN;
  if (tls_wants_write_ || !to_client_.empty()) events |= POLLOUT;
  return events;
}

short TlsPipe::server_events() const {
  short events = 0;
  if (open_ && to_client_.empty() && !server_ended_) events |= POLLIN;
  if (!to_server_.empty()) events |= POLLOUT;
  return events;
}

bool TlsPipe::Handshake() {
  ERR_clear_error();
  const int result = SSL_accept(ssl_.get());
  if (result != 1) {
    Understand(result);
    return false;
  }
  open_ = true;
  server_ = connect_();
  if (!server_.open()) End(absl::CancelledError("no descriptors are left"));
  return true;
}

bool TlsPipe::ReadClient() {
  if (!from_client_.empty()) return false;
  std::array<char, kReadBytes> buffer;
  ERR_clear_error();
  const int size = SSL_read(ssl_.get(), buffer.data(), buffer.size());
  if (size <= 0) {
    Understand(size);
    return false;
  }
  from_client_.assign(buffer.data(), size);
  return true;
}

bool TlsPipe::PassGate(absl::Duration now) {
  if (to_server_.size() >= kPipeBytes) return false;
  absl::string_view rest = from_client_;
  const absl::Status passed = gate_.Pass(now, &rest, &to_server_);
  if (!passed.ok()) End(passed);
  const bool moved = rest.size() < from_client_.size();
  from_client_.erase(0, from_client_.size() - rest.size());
  return moved;
}

bool TlsPipe::WriteServer() {
  if (to_server_.empty()) return false;
  const ssize_t size = send(server_.get(), to_server_.data(), to_server_.size(), MSG_NOSIGNAL);
  if (size < 0) {
    if (!WouldBlock()) End(absl::CancelledError("the server hung up"));
    return false;
  }
  to_server_.erase(0, size);
  return true;
}

bool TlsPipe::ReadServer() {
  if (!to_client_.empty()) return false;
  if (server_ended_) {
    End(absl::CancelledError("the server hung up"));
    return false;
  }
  std::array<char, kPipeBytes> buffer;
  const ssize_t size = recv(server_.get(), buffer.data(), buffer.size(), 0);
  if (size < 0) {
    if (!WouldBlock()) End(absl::CancelledError("the server hung up"));
    return false;
  }
  server_ended_ = size == 0;
  to_client_.assign(buffer.data(), size);
  return true;
}

bool TlsPipe::WriteClient(absl::Duration now) {
  if (to_client_.empty()) {
    owing_since_ = now;
    return false;
  }
  ERR_clear_error();
  const int size = SSL_write(ssl_.get(), to_client_.data(), static_cast<int>(to_client_.size()));
  if (size <= 0) {
    Understand(size);
    return false;
  }
  to_client_.erase(0, size);
  drained_ += size;
  if (to_client_.empty() || drained_ >= kDrainBytes) {
    owing_since_ = now;
    drained_ = 0;
  }
  return true;
}

void TlsPipe::Understand(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return;
    case SSL_ERROR_WANT_WRITE:
      tls_wants_write_ = true;
      return;
    case SSL_ERROR_SSL:
      End(absl::InvalidArgumentError("TLS protocol error"));
      return;
    default:
      End(absl::CancelledError("the client hung up"));
  }
}

void TlsPipe::CheckDrain(absl::Duration now) {
  if (!to_client_.empty() && now - owing_since_ > kDrainTimeout) {
    End(absl::InvalidArgumentError(absl::StrCat("the client reads less than ", kDrainBytes,
                                                " bytes in ",
                                                absl::FormatDuration(kDrainTimeout))));
  }
}

void TlsPipe::End(absl::Status why) {
  if (status_.ok()) status_ = std::move(why);
}

}  // namespace ablate::net
