// Lists names that exist now, for completion: experiments, cells, data sets, models, servers.
#ifndef ABLATE_CLIENT_COMPLETION_LIVE_NAMES_H_
#define ABLATE_CLIENT_COMPLETION_LIVE_NAMES_H_

#include <string>
#include <vector>

#include "client/completion/values.h"
#include "client/personal_server.h"

namespace ablate::client {

// A word, and what it means on one line.
struct Candidate {
  std::string word;
  std::string help;
};

// Returns true if an experiment and a slash begin `typed`, so that a part of it comes next.
bool HasExperiment(absl::string_view typed);

// Returns the names that begin with `typed`, the newest 1,000 at most. Makes at most one call to
// the server that runs, which takes at most 300 ms; whatever goes wrong, there are no names. Leaves
// out names that mean something in a shell: any user may have chosen them.
std::vector<Candidate> LiveNames(Values values, const std::string& typed,
                                 const Environment& environment);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_COMPLETION_LIVE_NAMES_H_
