#include "server/engine/model/pass.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ablate::engine {
Tap Observe(std::function<void(const at::Tensor&)> observer) {
  return [observer = std::move(observer)](const at::Tensor& x) {
    observer(x);
    return x;
  };
}

Tap Replace(at::Tensor value) {
  return [value = std::move(value)](const at::Tensor&) { return value; };
}

Tap Add(at::Tensor value) {
  return [value = std::move(value)](const at::Tensor& x) { return x + value; };
}

absl::StatusOr<Taps> Taps::Make(const ModelConfig& model,
                                std::vector<std::pair<std::string, Tap>> taps) {
  std::map<std::string, std::pair<Site, int>> sites;
  for (SitePlace& place : SitesOf(model)) {
    sites.emplace(std::move(place.name), std::pair(place.site, place.block));
  }
  Taps made;
  for (std::pair<std::string, Tap>& tap : taps) {
    const auto found = sites.find(tap.first);
    if (found == sites.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "site: '", tap.first, "' is unknown; expected ", absl::StrJoin(SiteNames(model), ", ")));
    }
    made.taps_[found->second].push_back(std::move(tap.second));
  }
  return made;
}

at::Tensor Taps::Apply(Site site, int block, const at::Tensor& x) const {
  const auto found = taps_.find({site, block});
  if (found == taps_.end()) return x;
  at::Tensor result = x;
  for (const Tap& tap : found->second) {
    result = tap(result);
    TORCH_CHECK(result.sizes() == x.sizes() && result.scalar_type() == x.scalar_type(),
                "a tap gave ", result.sizes(), " in place of ", x.sizes());
  }
  return result;
}

}  // namespace ablate::engine
