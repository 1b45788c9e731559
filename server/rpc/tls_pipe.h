// One connection from the network to gRPC: TLS ends here, and a gate stands behind it.
#ifndef ABLATE_SERVER_RPC_TLS_PIPE_H_
#define ABLATE_SERVER_RPC_TLS_PIPE_H_

#include <openssl/ssl.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "server/rpc/frame_gate.h"
#include "server/rpc/tls_context.h"

namespace ablate::rpc {

// Never blocks, holds at most kPipeBytes and a header block in each direction, and reads from
// neither end what the other end does not take. Not thread-safe; SIGPIPE must be blocked.
class TlsPipe {
 public:
  // Gives gRPC one end of a pair of sockets, and returns the other; closed if there is none.
  using Connect = std::function<process::FileDescriptor()>;

  // `client` is a socket that was accepted and does not block, nor does what `connect` returns,
  // which is called when the handshake is done.
  TlsPipe(TlsSession ssl, process::FileDescriptor client, FrameGate gate, Connect connect,
          absl::Duration now);
  ~TlsPipe();
  TlsPipe(const TlsPipe&) = delete;
  TlsPipe& operator=(const TlsPipe&) = delete;
  // Moves what can be moved now, up to some buffers' worth. CANCELLED: an end hung up. Other
  // errors are sentences about what the client did. After an error there is nothing more to do.
  absl::Status Pump(absl::Duration now);
  // Whether Pump stopped for others' sake, and should be called again without waiting.
  bool more() const { return more_; }
  // For how long the gate holds back what came: see FrameGate::wait.
  absl::Duration wait() const { return gate_.wait(); }
  // What poll() should wait for.
  short client_events() const;
  short server_events() const;
  int client() const { return client_.get(); }
  int server() const { return server_.get(); }
  // See FrameGate::LetIn.
  void LetIn(Rate* calls) { gate_.LetIn(calls); }

 private:
  // Each returns whether it moved anything.
  bool Handshake();
  bool ReadClient();
  bool WriteServer();
  bool ReadServer();
  bool WriteClient(absl::Duration now);
  bool PassGate(absl::Duration now);
  // Notes what a call of OpenSSL waits for; ends the pipe for what it can't wait for.
  void Understand(int result);
  void CheckDrain(absl::Duration now);
  void End(absl::Status why);

  const TlsSession ssl_;
  const process::FileDescriptor client_;
  FrameGate gate_;
  const Connect connect_;
  process::FileDescriptor server_;
  absl::Status status_;
  bool open_ = false;  // the handshake is done
  bool more_ = false;
  bool tls_wants_write_ = false;
  bool server_ended_ = false;
  std::string from_client_;  // not yet judged
  std::string to_server_;
  std::string to_client_;
  // Since when the client owes us that it takes kDrainBytes, or all.
  absl::Duration owing_since_;
  size_t drained_ = 0;
};

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_TLS_PIPE_H_
