// Tells long computations whether anybody still waits for the answer.
#ifndef ABLATE_SERVER_RPC_CANCELLED_H_
#define ABLATE_SERVER_RPC_CANCELLED_H_

#include <functional>

namespace ablate::rpc {

// Called now and then; true ends the work with CANCELLED.
using Cancelled = std::function<bool()>;

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_CANCELLED_H_
