#include "server/experiment/initial_model.h"

#include <utility>

namespace ablate::spec {

void BeginWith(const ModelFacts& initial, v1::BaseSpec* spec) {
  v1::ModelSpec model = initial.model;
  if (spec->model().has_dropout()) model.set_dropout(spec->model().dropout());
  if (spec->model().has_context()) model.set_context(spec->model().context());
  *spec->mutable_model() = std::move(model);
  if (!spec->has_training()) spec->mutable_training()->set_steps(0);
}

bool MayDiffer(absl::string_view path) {
  return path == "model.dropout" || path == "model.context";
}

}  // namespace ablate::spec
