// Flattens a spec to a list of paths and values, for comparing it with another.
#ifndef ABLATE_SERVER_EXPERIMENT_FIELD_VALUES_H_
#define ABLATE_SERVER_EXPERIMENT_FIELD_VALUES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "server/experiment/writes.h"

namespace ablate::spec {

// Every set scalar and list by dotted path: model.norm.placement → pre, training.betas → [0.9,
// 0.999]. Numbers are shortest decimals.
using FieldValues = std::map<std::string, std::string>;
FieldValues ValuesOf(const google::protobuf::Message& spec);

// A field below BaseSpec that isn't a message.
struct SpecPath {
  enum class Kind { kNumber, kBoolean, kEnum, kText, kList };
  std::string path;
  Kind kind = Kind::kText;
  std::vector<std::string> values;  // of an enum
};
// Returns all, by path.
const std::map<std::string, SpecPath>& SpecPaths();

// The fields of several specs: those that are equal in all, and the others of each.
class SharedFields {
 public:
  void Add(const v1::BaseSpec& spec);
  // Returns the fields that all have with one value.
  FieldValues Common() const;
  // Returns the others of each spec, in the order in which they were added.
  std::vector<FieldValues> Others() const;

 private:
  FieldValues first_;
  std::vector<FieldValues> differences_;  // of each from the first; "": only that has the field
  FieldValues varied_;                    // all fields of differences_
};

// Returns the values of `base` with `writes` applied and its defaults filled in; `cuda` as in
// FillDefaults. Empty if a write can't be applied.
FieldValues FilledValues(v1::BaseSpec base, const std::vector<Write>& writes, bool cuda);

// Returns the values of `spec` at each path where it differs from `base`; "" if only `base` has
// one.
FieldValues Difference(const FieldValues& spec, const FieldValues& base);

// Returns the fields that determine what a run's metric is computed on, by path: two runs of equal
// seed have the same data and targets exactly if these are equal. `filled` has its defaults.
// For documents: the hash of the data set, the number held out, and the context if it cuts any of
// them, the longest of which has `longest` characters (0: unknown). For a text: the hash, how it is
// split and tokenized, the context, and the number of evaluated batches. For generated data: the
// generator's fields. The batch isn't included: it draws other rows of the same kind. A training
// metric doesn't depend on the number of evaluated batches; train/loss does on label_smoothing.
FieldValues ScoredData(const v1::BaseSpec& filled, const std::string& dataset_sha256,
                       uint64_t longest, absl::string_view metric);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_FIELD_VALUES_H_
