// Gives the names and values of filters, orders and columns of runs their meaning.
#ifndef ABLATE_SERVER_SERVICE_RUN_NAMES_H_
#define ABLATE_SERVER_SERVICE_RUN_NAMES_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/struct.pb.h"
#include "server/filter/filter.h"
#include "storage/run_query.h"

namespace ablate::service {

struct RunOrder {
  storage::RunKey key;
  bool descending = false;
};

// Resolves names against what is visible to one viewer. In the order of precedence a name is a
// property of the cell (state, seed, …), a field of the spec or a setting of a program, an axis, a
// metric, or the end of one setting's name (lr for settings.lr); the functions axis(), last(),
// min(), max() and best() say which. Errors are INVALID_ARGUMENT about `field` of the request, with
// the column, and the nearest name for an unknown one.
class RunNames {
 public:
  // Returns the labels on an axis.
  using Labels = std::function<std::vector<std::string>(absl::string_view axis)>;

  // Returns the names, datasets/ID, of the data sets that have this ID or file name. Null: values
  // are compared as they are.
  using Datasets = std::function<std::vector<std::string>(absl::string_view id_or_name)>;

  RunNames(storage::QueryNames names, Labels labels, Datasets datasets, absl::Time now)
      : names_(std::move(names)),
        labels_(std::move(labels)),
        datasets_(std::move(datasets)),
        now_(now) {}

  absl::StatusOr<storage::RunCondition> Filter(absl::string_view field,
                                               absl::string_view text) const;
  absl::StatusOr<RunOrder> Order(absl::string_view field, absl::string_view text) const;
  absl::StatusOr<storage::RunKey> Column(absl::string_view field, absl::string_view text) const;

 private:
  // Returns the settings of programs that `name` may stand for: settings.model.heads for heads.
  std::vector<std::string> SettingsEnding(const std::string& name) const;
  // Each returns false and sets the mistake.
  bool Resolve(const filter::Name& name, storage::RunKey* key, filter::Mistake* mistake) const;
  bool ResolveMetric(const filter::Name& name, storage::RunKey* key,
                     filter::Mistake* mistake) const;
  bool Convert(const filter::Expression& expression, storage::RunCondition* condition,
               filter::Mistake* mistake) const;
  bool ConvertTest(const filter::Comparison& comparison, storage::RunTest* test,
                   filter::Mistake* mistake) const;
  // Replaces a data set's file name or ID by the names of all data sets that have it.
  void NameDatasets(const filter::Comparison& comparison, storage::RunCondition* condition) const;
  bool CheckLabel(const filter::Comparison& comparison, const std::string& axis,
                  filter::Mistake* mistake) const;

  const storage::QueryNames names_;
  const Labels labels_;
  const Datasets datasets_;
  const absl::Time now_;
};

// Converts a row's value for the answer: a number, a text or null.
google::protobuf::Value ToColumn(const storage::RunKey& key, const storage::RunValue& value);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_RUN_NAMES_H_
