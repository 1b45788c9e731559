// Looks up the data sets that specs name, each once, and the tokens that texts are divided into.
#ifndef ABLATE_SERVER_EXPERIMENT_DATASETS_H_
#define ABLATE_SERVER_EXPERIMENT_DATASETS_H_

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/config/fields.h"
#include "server/experiment/resolution.h"

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

  // Returns the data set that a task reads: the one that it names or, if it names a tokenizer too,
  // the tokens of both. Call it only if both names were found.
  const absl::StatusOr<DatasetFacts>& FindRead(const v1::TaskSpec& task) {
    const std::string* name = DatasetOf(task).name;
    const absl::StatusOr<DatasetFacts>& named = Find(*name, task.has_text());
    const std::string* wanted = TokenizerOf(task).name;
    if (wanted == nullptr || !NamesTokenizer(*wanted)) return named;
    const std::string tokenizer = Find(*wanted)->id;
    const bool documents = task.has_documents();
    const auto key = std::make_tuple(named->id, tokenizer, documents);
    const auto known = encoded_.find(key);
    if (known != encoded_.end()) return known->second;
    return encoded_.emplace(key, surroundings_.encode_dataset(named->id, tokenizer, documents))
        .first->second;
  }

  // Returns the data set with that id among those found so far; null if there is none.
  const DatasetFacts* Known(absl::string_view id, bool as_text = false) const {
    for (const auto& [names, facts] : encoded_) {
      if (facts.ok() && facts->id == id) return &*facts;
    }
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
  // By the ids of a text and a tokenizer, and whether they are of its documents.
  std::map<std::tuple<std::string, std::string, bool>, absl::StatusOr<DatasetFacts>> encoded_;
};

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_DATASETS_H_
