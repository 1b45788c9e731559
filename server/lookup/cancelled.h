// Tells long computations whether anybody still waits for the answer.
#ifndef ABLATE_SERVER_LOOKUP_CANCELLED_H_
#define ABLATE_SERVER_LOOKUP_CANCELLED_H_

#include <functional>

namespace ablate::lookup {

// Called now and then; true ends the work with CANCELLED.
using Cancelled = std::function<bool()>;

}  // namespace ablate::lookup

#endif  // ABLATE_SERVER_LOOKUP_CANCELLED_H_
