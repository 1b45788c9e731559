#include "server/engine/torch/model/pass.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ablate::engine {
Hook Observe(std::function<void(const at::Tensor&)> observer) {
  return [observer = std::move(observer)](const at::Tensor& x) {
    observer(x);
    return x;
  };
}

Hook Replace(at::Tensor value) {
  return [value = std::move(value)](const at::Tensor&) { return value; };
}

Hook Add(at::Tensor value) {
  return [value = std::move(value)](const at::Tensor& x) { return x + value; };
}

absl::StatusOr<Hooks> Hooks::Make(const ModelConfig& model,
                                  std::vector<std::pair<std::string, Hook>> hooks) {
  std::map<std::string, std::pair<HookPoint, int>> hook_points;
  for (ModelHookPoint& place : HookPointsOf(model)) {
    hook_points.emplace(std::move(place.name), std::pair(place.hook_point, place.block));
  }
  Hooks made;
  for (std::pair<std::string, Hook>& hook : hooks) {
    const auto found = hook_points.find(hook.first);
    if (found == hook_points.end()) {
      return absl::InvalidArgumentError(absl::StrCat("site: '", hook.first,
                                                     "' is unknown; expected ",
                                                     absl::StrJoin(HookPointNames(model), ", ")));
    }
    made.hooks_[found->second].push_back(std::move(hook.second));
  }
  return made;
}

at::Tensor Hooks::Apply(HookPoint hook_point, int block, const at::Tensor& x) const {
  const auto found = hooks_.find({hook_point, block});
  if (found == hooks_.end()) return x;
  at::Tensor result = x;
  for (const Hook& hook : found->second) {
    result = hook(result);
    TORCH_CHECK(result.sizes() == x.sizes() && result.scalar_type() == x.scalar_type(),
                "a hook returned ", result.sizes(), " instead of ", x.sizes());
  }
  return result;
}

}  // namespace ablate::engine
