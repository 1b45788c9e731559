// Who writes what: no field may have two writers.
#ifndef ABLATE_SERVER_SPEC_CONFLICTS_H_
#define ABLATE_SERVER_SPEC_CONFLICTS_H_

#include <string>
#include <vector>

#include "server/spec/problems.h"

namespace ablate::spec {

// One writer's claim to a path below BaseSpec and to all that is below the path.
struct Claim {
  std::string path;  // names a field
  std::string source;
  int writer = 0;
};

// A problem, at the later claim, for each pair of claims of different writers to one path, to a
// path and its prefix, or to different members of one oneof.
void CheckClaims(const std::vector<Claim>& claims, Problems* problems);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_CONFLICTS_H_
