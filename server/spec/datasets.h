// Looks up the data sets that specs name, each once.
#ifndef ABLATE_SERVER_SPEC_DATASETS_H_
#define ABLATE_SERVER_SPEC_DATASETS_H_

#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/spec/resolve.h"

namespace ablate::spec {

class Datasets {
 public:
  // `surroundings` must outlive it.
  explicit Datasets(const Surroundings& surroundings) : surroundings_(surroundings) {}

  // Finds a data set. `as_text`: code points and line ends are needed, too.
  const absl::StatusOr<DatasetFacts>& Find(const std::string& name, bool as_text = false) {
    const auto known = found_.find(name);
    const bool enough = known != found_.end() && (known->second.as_text || !as_text);
    if (enough) return known->second.facts;
    Found found{surroundings_.find_dataset(name, as_text), as_text};
    return found_.insert_or_assign(name, std::move(found)).first->second.facts;
  }

  // Returns the data set with that id among those found so far; null if there is none.
  const DatasetFacts* Known(absl::string_view id, bool as_text = false) const {
    for (const auto& [name, found] : found_) {
      const bool enough = found.facts.ok() && (found.as_text || !as_text);
      if (enough && found.facts->id == id) return &*found.facts;
    }
    return nullptr;
  }

 private:
  struct Found {
    absl::StatusOr<DatasetFacts> facts;
    bool as_text = false;
  };

  const Surroundings& surroundings_;
  std::map<std::string, Found> found_;
};

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_DATASETS_H_
