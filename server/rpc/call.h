// Answers unary calls without blocking a reaction.
#ifndef ABLATE_SERVER_RPC_CALL_H_
#define ABLATE_SERVER_RPC_CALL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/limits.h"
#include "server/rpc/live_streams.h"
#include "server/rpc/work_pool.h"

namespace ablate::rpc {

// Does `work` on the pool in the caller's turn, unless the call was cancelled or ran past its
// deadline before it began, and finishes the call with its status. Request and response of the call
// live until then.
grpc::ServerUnaryReactor* Answer(WorkPool* pool, grpc::CallbackServerContext* context,
                                 std::function<absl::Status()> work);

// What a stream with a client or a worker runs on; pointers outlive the call.
struct StreamCall {
  grpc::CallbackServerContext* context = nullptr;
  WorkPool* pool = nullptr;
  LiveStreams* streams = nullptr;
  MinPace pace;
  std::string user = {};  // whose turn its work takes; nobody's if empty
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
  // `what` names them in errors, such as "bytes of experiments".
  ByteBudget(std::string what, Most bytes) : what_(std::move(what)), max_(bytes) {}
  // A share that is given back when it is destroyed, which the budget must outlive.
  // RESOURCE_EXHAUSTED if so many bytes are not left, in all or of what the user may have; "" is
  // nobody, who may have all.
  absl::StatusOr<std::shared_ptr<void>> Take(size_t bytes, const std::string& user = {});

 private:
  void GiveBack(size_t bytes, const std::string& user);

  const std::string what_;
  const Most max_;
  Mutex mutex_;
  size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, size_t> of_users_ ABSL_GUARDED_BY(mutex_);  // who has some
};

// Hands what was freed back to the system: the allocator alone would keep it, in each thread's
// arena, for as long as the server lives.
void GiveMemoryBack();

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_CALL_H_
