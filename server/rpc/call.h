// Answers unary calls without blocking a gRPC reaction.
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
#include "server/lookup/limits.h"
#include "server/rpc/live_streams.h"
#include "server/rpc/work_pool.h"

namespace ablate::rpc {

// Runs `work` on the pool in the caller's turn and finishes the call with its status. Skips the
// work if the call was cancelled or passed its deadline first. The call's request and response live
// until it is finished.
grpc::ServerUnaryReactor* Answer(WorkPool* pool, grpc::CallbackServerContext* context,
                                 std::function<absl::Status()> work);

// Context of a stream with a client or a worker; the pointers outlive the call.
struct StreamCall {
  grpc::CallbackServerContext* context = nullptr;
  WorkPool* pool = nullptr;
  LiveStreams* streams = nullptr;
  MinPace pace;
  std::string user = {};  // whose turn its work takes; empty for none
};

// Ends a call at once. Finish isn't enough: gRPC sends the status only after the message that is
// being written, which a client that doesn't read never takes. The call's reactor must still finish
// it, as after every cancellation.
void EndNow(grpc::CallbackServerContext* context, const absl::Status& status);

// Returns the error for a client that reads its stream too slowly or not at all.
absl::Status TooSlow(const Pace& pace);

// Bounds the total size of the requests in the server. Thread-safe.
class ByteBudget {
 public:
  // `what` names the bytes in errors, as "bytes of experiments".
  ByteBudget(std::string what, lookup::Limit bytes) : what_(std::move(what)), max_(bytes) {}
  // Reserves bytes until the result is destroyed; the budget must outlive it. RESOURCE_EXHAUSTED if
  // not enough are left, in all or of the user's part. An empty user means none, and may have all.
  absl::StatusOr<std::shared_ptr<void>> Take(size_t bytes, const std::string& user = {});

 private:
  void GiveBack(size_t bytes, const std::string& user);

  const std::string what_;
  const lookup::Limit max_;
  Mutex mutex_;
  size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, size_t> of_users_
      ABSL_GUARDED_BY(mutex_);  // users with reservations
};

// Returns freed memory to the system. The allocator alone would keep it in each thread's arena for
// as long as the server lives.
void GiveMemoryBack();

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_CALL_H_
