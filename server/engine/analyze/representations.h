// Reads the representations that are compared: activations at the hook points of one subject, or of
// several subjects that read the same tokens.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_REPRESENTATIONS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_REPRESENTATIONS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/analyze/analysis_context.h"

namespace ablate::engine {

struct Representation {
  size_t subject = 0;
  std::string hook_point;
  int64_t features = 0;
};

// Lists the representations and reads them batch by batch.
class Representations {
 public:
  // Takes the requested hook points (HookPointsOr), subject by subject. Runs a pass over the first
  // batch. `analysis` must outlive it.
  Representations(const std::vector<std::string>& hook_points, const AnalysisContext& analysis);

  const std::vector<Representation>& all() const { return all_; }
  // Returns the means over the first batch, [features] each.
  const std::vector<at::Tensor>& first_means() const { return first_means_; }
  std::vector<int64_t> Features() const;
  // Returns a label for each: its hook point, and its subject if there are several.
  std::vector<std::string> Labels() const;
  // Returns the name of the number about the first and the second, in this order. Empty for pairs
  // without a number: each with itself and, with several subjects, all pairs except equal hook
  // points of two subjects.
  std::string PairName(size_t first, size_t second) const;

  // Returns the rows of one batch, [n, features] each, float64.
  std::vector<at::Tensor> Rows(int64_t batch);

 private:
  std::vector<CapturedBatches> subjects_;
  std::vector<Representation> all_;
  std::vector<at::Tensor> first_means_;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_REPRESENTATIONS_H_
