// Looks up the models that specs begin with (model_from), each once, and gives specs their fields.
#ifndef ABLATE_SERVER_EXPERIMENT_INITIAL_MODEL_H_
#define ABLATE_SERVER_EXPERIMENT_INITIAL_MODEL_H_

#include <map>
#include <string>

#include "ablate/v1/spec.pb.h"
#include "absl/status/statusor.h"
#include "server/experiment/resolution.h"

namespace ablate::spec {

class InitialModels {
 public:
  // `surroundings` must outlive it.
  explicit InitialModels(const Surroundings& surroundings) : surroundings_(surroundings) {}

  const absl::StatusOr<ModelFacts>& Find(const std::string& name) {
    const auto known = found_.find(name);
    if (known != found_.end()) return known->second;
    return found_.emplace(name, surroundings_.find_model(name)).first->second;
  }

 private:
  const Surroundings& surroundings_;
  std::map<std::string, absl::StatusOr<ModelFacts>> found_;
};

// Gives a spec the fields of the model that it begins with, except those that MayDiffer. A spec
// without `training` gets 0 steps.
void BeginWith(const ModelFacts& initial, v1::BaseSpec* spec);

// Returns true for paths below BaseSpec whose value a run may choose although it begins with a
// model: the dropout, and a context that isn't longer than the model's.
bool MayDiffer(absl::string_view path);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_INITIAL_MODEL_H_
