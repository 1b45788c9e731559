// Reads what spec.proto declares of a run's fields: default, range, and when a field has an effect.
// Fills in the defaults, also those that depend on other fields, and checks what is set.
#ifndef ABLATE_SERVER_SPEC_FIELDS_H_
#define ABLATE_SERVER_SPEC_FIELDS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "ablate/v1/analysis_options.pb.h"
#include "ablate/v1/spec.pb.h"
#include "absl/strings/string_view.h"
#include "proto/reflect/read.h"
#include "server/spec/bad_paths.h"
#include "server/spec/problems.h"

namespace ablate::spec {

// A singular number, boolean or enum below BaseSpec; booleans are 0 and 1, enums their numbers.
class ScalarField {
 public:
  // `path` must name one.
  explicit ScalarField(absl::string_view path) : path_(v1::BaseSpec::descriptor(), path) {}

  bool Has(const v1::BaseSpec& base) const { return path_.IsSet(base); }
  double Get(const v1::BaseSpec& base) const;  // 0 if absent
  void Set(double value, v1::BaseSpec* base) const;
  // As people write it: pre, true, 0.001.
  std::string Text(double value) const;
  bool is_number() const;

 private:
  reflect::FieldPath path_;
};

inline constexpr double kNoDefault = std::numeric_limits<double>::quiet_NaN();

// A field, a list among them, that has an effect only with some values of another. Those of a task
// have one only with that kind of task.
struct Condition {
  std::string path;
  reflect::FieldPath field;
  std::string switch_path;          // of the other; task is the kind of task
  reflect::FieldPath switch_field;  // the same
  std::vector<std::string> values;  // of the other, as SwitchValue has it

  bool Holds(const v1::BaseSpec& base) const;
  // Returns the other field's value, such as none, true or documents.
  std::string SwitchValue(const v1::BaseSpec& base) const;
};
// All of them, in the order of spec.proto.
const std::vector<Condition>& Conditions();

struct FieldRule {
  std::string path;
  ScalarField field;
  const v1::OptionInfo* info;
  const Condition* condition = nullptr;  // null: it always has an effect
  // The default, unless `computed` is set, which may read fields with constant defaults and those
  // that come earlier in the table. kNoDefault if the field stays unset, which then means
  // something of its own.
  double constant = kNoDefault;
  double (*computed)(const v1::BaseSpec& base) = nullptr;

  // Returns false if the field has no effect in this spec and stays unset.
  bool Applies(const v1::BaseSpec& base) const {
    return condition == nullptr || condition->Holds(base);
  }
  double Default(const v1::BaseSpec& base) const;
  bool HasDefault(const v1::BaseSpec& base) const;
};

// The scalars in the order of spec.proto. Not in it, because they are no such scalars or their
// default depends on the machine: task.documents.dataset and task.text.dataset (required),
// training.betas, training.checkpoints, training.device, evaluation.record.
const std::vector<FieldRule>& FieldRules();

// The kind of a task as specs have it, such as documents; empty if there is none.
std::string TaskName(const v1::TaskSpec& task);
// All kinds, as a sentence lists them.
std::string TaskNames();

// Paths below BaseSpec at which a task names its data set.
inline constexpr absl::string_view kDatasetPaths[] = {"task.documents.dataset",
                                                      "task.text.dataset"};

// Where a task names its data set, and what it names.
struct NamedDataset {
  std::string path;                   // one of kDatasetPaths; empty for a task that has none
  const std::string* name = nullptr;  // the task's; null if it is not set
};
NamedDataset DatasetOf(const v1::TaskSpec& task);
// The name, to be changed; null where DatasetOf has none.
std::string* MutableDatasetOf(v1::TaskSpec* task);

// Clears every field that has no effect, sets every absent one that applies and has a default,
// betas where the optimizer has them, and the checkpoints in ascending order with −1 last, each
// once; records likewise. Does so again without effect.
void FillFields(v1::BaseSpec* base);

// All that, but an absent trainer is auto, which depends on the whole run (expand.h); and the
// device, whose default depends on the machine: absent or auto becomes cuda or cpu.
void FillDefaults(bool cuda, v1::BaseSpec* base);

// Reads a run's spec as it was stored. A field that the server of that time did not have yet gets
// its default, as it would if the run were made today; an absent training.trainer is torch. False
// if `bytes` are no spec of a run.
[[nodiscard]] bool ReadStoredRun(const std::string& bytes, v1::RunSpec* run);

// Where a path below BaseSpec is to be reported.
using ReportedAs = std::function<std::string(const std::string& path)>;

// Checks what is set in `base`, each field by itself. Returns the paths with problems.
BadPaths CheckFields(const v1::BaseSpec& base, const ReportedAs& reported_as, Problems* problems);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_FIELDS_H_
