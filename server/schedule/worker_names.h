// Names of workers. A worker on another machine is NAME@USER, by the user whose token it used,
// whatever name it sends, so that nobody can take another user's worker name.
#ifndef ABLATE_SERVER_SCHEDULE_WORKER_NAMES_H_
#define ABLATE_SERVER_SCHEDULE_WORKER_NAMES_H_

#include <string>

#include "ablate/worker/v1/worker.pb.h"
#include "absl/strings/string_view.h"

namespace ablate::schedule {

// Appends the user to the names that a worker gives itself and its process. `user` is empty for
// workers on this machine, which keep theirs.
void SetUser(absl::string_view user, worker::v1::Hello* hello);

// Returns the user whose token the worker used; empty for one on the server's machine.
absl::string_view UserOf(absl::string_view worker);

// Returns true if the worker is on another machine than the server.
bool IsElsewhere(absl::string_view worker);

// Returns true if the worker used a token of `user`. An empty `user`, this machine's owner, may use
// all workers.
bool IsOfUser(absl::string_view worker, absl::string_view user);

}  // namespace ablate::schedule

#endif  // ABLATE_SERVER_SCHEDULE_WORKER_NAMES_H_
