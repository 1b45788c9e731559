// Representations that are compared with each other: what comes to the sites of one subject, or to
// those of several that read the same tokens.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_REPRESENTATIONS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_REPRESENTATIONS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/analyze/material.h"

namespace ablate::engine {

struct Representation {
  size_t subject = 0;
  std::string site;
  int64_t features = 0;
};

class Representations {
 public:
  // The sites that options name (SitesOr), subject by subject. `material` must outlive it. Makes a
  // pass over the first batch.
  Representations(const std::vector<std::string>& sites, const Material& material);

  const std::vector<Representation>& all() const { return all_; }
  // Means over the first batch, [features] each.
  const std::vector<at::Tensor>& first_means() const { return first_means_; }
  std::vector<int64_t> Features() const;
  // What each is called: by its site, and its subject where there are several.
  std::vector<std::string> Labels() const;
  // The number of the first and the second, which come in this order; empty where none is given:
  // each with itself, and of several subjects all but the same site of two.
  std::string PairName(size_t first, size_t second) const;

  // Of one batch, [n, features] each, float64.
  std::vector<at::Tensor> Rows(int64_t batch) const;

 private:
  const Material& material_;
  std::vector<std::vector<std::string>> sites_;  // of each subject
  std::vector<Representation> all_;
  std::vector<at::Tensor> first_means_;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_REPRESENTATIONS_H_
