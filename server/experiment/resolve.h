// Resolves an experiment's spec to the runs to train: overrides, axes, seeds, defaults, checks,
// fingerprints.
#ifndef ABLATE_SERVER_EXPERIMENT_RESOLVE_H_
#define ABLATE_SERVER_EXPERIMENT_RESOLVE_H_

#include <cstddef>
#include <map>
#include <string>

#include "ablate/v1/spec.pb.h"
#include "google/protobuf/struct.pb.h"
#include "server/experiment/resolution.h"

namespace ablate::spec {

inline constexpr size_t kMaxOverrides = 100;
Problem TooManyOverrides(size_t count);

// Resolves a spec and reports every problem at once, each with its path. A problem skips only the
// checks that depend on it. Limits on runs are checked before expansion. Pure except for
// find_dataset and find_model, which are called once for each distinct name (and find_dataset as
// text only if a task reads it so), and encode_dataset, which is called once for each pair.
Resolution Resolve(v1::ExperimentSpec spec,
                   const std::map<std::string, google::protobuf::Value>& overrides,
                   const Surroundings& surroundings);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_RESOLVE_H_
