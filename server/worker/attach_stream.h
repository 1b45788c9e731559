// Wraps one Attach call: the stream of messages between this worker and the server, until it
// breaks.
#ifndef ABLATE_SERVER_WORKER_ATTACH_STREAM_H_
#define ABLATE_SERVER_WORKER_ATTACH_STREAM_H_

#include <functional>
#include <memory>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "proto/join/channel.h"

namespace ablate::worker {

// Sends messages to the server. Thread-safe. Callbacks come one at a time from the transport's
// threads and must not block.
class AttachStream {
 public:
  virtual ~AttachStream() = default;
  // Queues a message. It is lost silently if the stream is broken.
  virtual void Send(v1::FromWorker message) = 0;
  // Returns true if something sent isn't on its way yet; false once the stream is broken.
  virtual bool Unsent() const = 0;
  // Breaks the stream.
  virtual void Cancel() = 0;
};

struct AttachCallbacks {
  std::function<void(const v1::ToWorker&)> received;
  // Everything sent is on its way.
  std::function<void()> sent;
  // The stream has ended; nothing is received afterwards.
  std::function<void(const absl::Status&)> ended;
};

// Opens streams to one server, one at a time.
class AttachClient {
 public:
  static std::unique_ptr<AttachClient> Make(const join::ServerAddress& server);
  virtual ~AttachClient() = default;
  // Starts a call with Hello and returns at once. The stream's destructor breaks it and waits until
  // `ended` has returned.
  virtual std::unique_ptr<AttachStream> Open(v1::Hello hello, AttachCallbacks callbacks) = 0;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_ATTACH_STREAM_H_
