// The data sets that specs name, each looked up once.
#ifndef ABLATE_SERVER_SPEC_DATASETS_H_
#define ABLATE_SERVER_SPEC_DATASETS_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/spec/resolve.h"

namespace ablate::spec {

class Datasets {
 public:
  // `surroundings` must outlive it.
  explicit Datasets(const Surroundings& surroundings) : surroundings_(surroundings) {}

  const absl::StatusOr<DatasetFacts>& Find(const std::string& name) {
    const auto known = found_.find(name);
    if (known != found_.end()) return known->second;
    return found_.emplace(name, surroundings_.find_dataset(name)).first->second;
  }

  // The one of that id among those found so far; null if there is none.
  const DatasetFacts* Known(absl::string_view id) const {
    for (const auto& [name, facts] : found_) {
      if (facts.ok() && facts->id == id) return &*facts;
    }
    return nullptr;
  }

 private:
  const Surroundings& surroundings_;
  std::map<std::string, absl::StatusOr<DatasetFacts>> found_;
};

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_DATASETS_H_
