// What the server calls workers. One elsewhere is NAME@USER, after the user whose token it came
// with, whatever it says of itself: so nobody can take the name, or what hangs on it, of another's.
#ifndef ABLATE_SERVER_SCHEDULE_WORKER_NAMES_H_
#define ABLATE_SERVER_SCHEDULE_WORKER_NAMES_H_

#include <string>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/strings/string_view.h"

namespace ablate::schedule {

// Puts the user behind the names that a worker gives itself and its process. `user` is empty for
// workers on this machine, which keep theirs.
void SetUser(absl::string_view user, worker::v1::Hello* hello);

// With whose token a worker of this name came; empty for one on the server's machine.
absl::string_view UserOf(absl::string_view worker);

// Whether a worker of this name is on another machine than the server.
bool IsElsewhere(absl::string_view worker);

// Whether a worker of this name came with a token of `user`. This machine's owner, whose `user` is
// empty, has the right to all.
bool IsOfUser(absl::string_view worker, absl::string_view user);

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_WORKER_NAMES_H_
