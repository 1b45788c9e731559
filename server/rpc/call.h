// Answers unary calls without blocking a reaction.
#ifndef ABLATE_SERVER_RPC_CALL_H_
#define ABLATE_SERVER_RPC_CALL_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/live_streams.h"
#include "server/rpc/work_pool.h"

namespace ablate::rpc {

// Does `work` on the pool, unless the call was cancelled or ran past its deadline before it began,
// and finishes the call with its status. Request and response of the call live until then.
grpc::ServerUnaryReactor* Answer(WorkPool* pool, grpc::CallbackServerContext* context,
                                 std::function<absl::Status()> work);

// What a stream with a client or a worker runs on; pointers outlive the call.
struct StreamCall {
  grpc::CallbackServerContext* context = nullptr;
  WorkPool* pool = nullptr;
  LiveStreams* streams = nullptr;
  MinPace pace;
};

// Ends a call at once. Finish would not do while a message is being written that the client does
// not take: the status would wait behind it. The call's reactor must finish it still, as after
// every cancellation.
void EndNow(grpc::CallbackServerContext* context, const absl::Status& status);

// The error of a client that takes what it is sent too slowly, or not at all.
absl::Status TooSlow(const Pace& pace);

// What requests that are in the server at once may weigh. Thread-safe.
class ByteBudget {
 public:
  explicit ByteBudget(size_t bytes) : bytes_(bytes) {}
  // A share that is given back when it is destroyed, which the budget must outlive; null if so many
  // bytes are not left.
  std::shared_ptr<void> Take(size_t bytes);
  size_t bytes() const { return bytes_; }

 private:
  const size_t bytes_;
  std::atomic<size_t> used_ = 0;
};

// Hands what was freed back to the system: the allocator alone would keep it, in each thread's
// arena, for as long as the server lives.
void GiveMemoryBack();

// The error of a call that came while too many waited.
absl::Status TooBusy();

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_CALL_H_
