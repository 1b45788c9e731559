// Carries one connection from the network to gRPC: terminates TLS and passes the bytes through a
// FrameGate.
#ifndef ABLATE_SERVER_NET_TLS_PIPE_H_
#define ABLATE_SERVER_NET_TLS_PIPE_H_

#include <openssl/ssl.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "server/net/frame_gate.h"
#include "server/net/tls_context.h"

namespace ablate::net {

// Moves bytes between a TLS client and gRPC. Never blocks, holds at most kPipeBytes and a header
// block in each direction, and reads from neither end more than the other end takes. Not
// thread-safe; SIGPIPE must be blocked.
class TlsPipe {
 public:
  // Gives gRPC one end of a pair of sockets and returns the other; a closed descriptor on failure.
  using Connect = std::function<process::FileDescriptor()>;

  // `client` is an accepted, non-blocking socket. `connect` is called once the handshake is done
  // and must return a non-blocking one.
  TlsPipe(TlsSession ssl, process::FileDescriptor client, FrameGate gate, Connect connect,
          absl::Duration now);
  ~TlsPipe();
  TlsPipe(const TlsPipe&) = delete;
  TlsPipe& operator=(const TlsPipe&) = delete;
  // Moves what can be moved now, up to some buffers' worth. CANCELLED if an end has hung up. Other
  // errors are sentences about the client's mistake. Don't call it again after an error.
  absl::Status Pump(absl::Duration now);
  // Returns true if Pump stopped only to give others a turn: call it again without waiting.
  bool more() const { return more_; }
  // Returns how long the gate holds back received bytes; see FrameGate::wait.
  absl::Duration wait() const { return gate_.wait(); }
  // Returns the events that poll() should wait for.
  short client_events() const;
  short server_events() const;
  int client() const { return client_.get(); }
  int server() const { return server_.get(); }
  // See FrameGate::LetIn.
  void LetIn(Rate* calls) { gate_.LetIn(calls); }

 private:
  // Each returns true if it moved anything.
  bool Handshake();
  bool ReadClient();
  bool WriteServer();
  bool ReadServer();
  bool WriteClient(absl::Duration now);
  bool PassGate(absl::Duration now);
  // Records what an OpenSSL call waits for; ends the pipe at any other error.
  void Understand(int result);
  void CheckDrain(absl::Duration now);
  void End(absl::Status why);

  const TlsSession ssl_;
  const process::FileDescriptor client_;
  FrameGate gate_;
  const Connect connect_;
  process::FileDescriptor server_;
  absl::Status status_;
  bool open_ = false;  // handshake done
  bool more_ = false;
  bool tls_wants_write_ = false;
  bool server_ended_ = false;
  std::string from_client_;  // not yet checked by the gate
  std::string to_server_;
  std::string to_client_;
  // Since when the client has to read kDrainBytes, or all.
  absl::Duration owing_since_;
  size_t drained_ = 0;
};

}  // namespace ablate::net

#endif  // ABLATE_SERVER_NET_TLS_PIPE_H_
