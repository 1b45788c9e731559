// Fills in defaults from the table and the few that are no scalars.
#include "server/spec/defaults.h"

#include <set>

#include "server/spec/fields.h"

namespace ablate::spec {
namespace {

// −1 ends the run's list; where it stands, the last step would be kept twice.
void SortCheckpoints(v1::TrainingSpec* training) {
  std::set<int32_t> steps(training->checkpoints().begin(), training->checkpoints().end());
  const bool end = steps.empty() || steps.erase(-1) > 0;
  if (end) steps.erase(static_cast<int32_t>(training->steps()));
  training->clear_checkpoints();
  for (const int32_t step : steps) training->add_checkpoints(step);
  if (end) training->add_checkpoints(-1);
}

}  // namespace

void FillDefaults(bool cuda, v1::BaseSpec* base) {
  for (const FieldRule& rule : FieldRules()) {
    if (rule.Applies(*base) && !rule.field.Has(*base)) rule.field.Set(rule.standard(*base), base);
  }
  v1::TrainingSpec* training = base->mutable_training();
  if (training->optimizer() != v1::Optimizer::sgd && training->betas().empty()) {
    training->add_betas(0.9);
    training->add_betas(0.999);
  }
  if (!training->has_device() || training->device() == v1::Device::auto_) {
    training->set_device(cuda ? v1::Device::cuda : v1::Device::cpu);
  }
  SortCheckpoints(training);
}

}  // namespace ablate::spec
