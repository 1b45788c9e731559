// Reads the defaults, ranges and conditions that spec.proto declares for a run's fields. Fills in
// the defaults, also those that depend on other fields, and checks set fields.
#ifndef ABLATE_SERVER_CONFIG_FIELDS_H_
#define ABLATE_SERVER_CONFIG_FIELDS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "ablate/v1/analysis_options.pb.h"
#include "ablate/v1/spec.pb.h"
#include "absl/strings/string_view.h"
#include "proto/reflect/read.h"
#include "server/config/bad_paths.h"
#include "server/config/problems.h"

namespace ablate::spec {

// Accesses a singular number, boolean or enum below BaseSpec; booleans are 0 and 1, enums their
// numbers.
class ScalarField {
 public:
  // `path` must name one.
  explicit ScalarField(absl::string_view path) : path_(v1::BaseSpec::descriptor(), path) {}

  bool Has(const v1::BaseSpec& base) const { return path_.IsSet(base); }
  double Get(const v1::BaseSpec& base) const;  // 0 if absent
  void Set(double value, v1::BaseSpec* base) const;
  // Returns the value as people write it: pre, true, 0.001.
  std::string Text(double value) const;
  bool is_number() const;

 private:
  reflect::FieldPath path_;
};

inline constexpr double kNoDefault = std::numeric_limits<double>::quiet_NaN();

// A condition of a field, which may be a list: it has an effect only with some values of another
// field. Fields of a task have one only with that kind of task.
struct Condition {
  std::string path;
  reflect::FieldPath field;
  std::string switch_path;          // path of the other field; task means the kind of task
  reflect::FieldPath switch_field;  // the same
  std::vector<std::string>
      values;  // effective values of the other field, as SwitchValue returns them

  bool Holds(const v1::BaseSpec& base) const;
  // Returns the other field's value, such as none, true or documents.
  std::string SwitchValue(const v1::BaseSpec& base) const;
};
// Returns all conditions, in the order of spec.proto.
const std::vector<Condition>& Conditions();

struct FieldRule {
  std::string path;
  ScalarField field;
  const v1::OptionInfo* info;
  const Condition* condition = nullptr;  // null: it always has an effect
  // The default, unless `computed` is set, which may read fields with constant defaults and earlier
  // ones of the table. kNoDefault if the field stays unset, which then has a meaning of its own.
  double constant = kNoDefault;
  double (*computed)(const v1::BaseSpec& base) = nullptr;

  // Returns false if the field has no effect in this spec and stays unset.
  bool Applies(const v1::BaseSpec& base) const {
    return condition == nullptr || condition->Holds(base);
  }
  double Default(const v1::BaseSpec& base) const;
  bool HasDefault(const v1::BaseSpec& base) const;
};

// Returns the scalars in the order of spec.proto. Missing because they aren't such scalars or their
// default depends on the machine: task.documents.dataset and task.text.dataset (required),
// task.documents.tokenizer and task.text.tokenizer (chars, or stored if the data set has tokens),
// training.betas, training.checkpoints, training.device, evaluation.record.
const std::vector<FieldRule>& FieldRules();

// Returns the kind of a task as specs have it, such as documents; empty if there is none.
std::string TaskName(const v1::TaskSpec& task);
// Returns all kinds, enumerated for a sentence.
std::string TaskNames();

// Paths below BaseSpec at which a task names its data set.
inline constexpr absl::string_view kDatasetPaths[] = {"task.documents.dataset",
                                                      "task.text.dataset"};

// The paths at which a task says how its data set is divided into tokens, and the values that
// aren't the name of a tokenizer's data set.
inline constexpr absl::string_view kTokenizerPaths[] = {"task.documents.tokenizer",
                                                        "task.text.tokenizer"};
inline constexpr char kCharacters[] = "chars";
inline constexpr char kStoredTokens[] = "stored";
// Returns true if the value names a data set.
bool NamesTokenizer(absl::string_view tokenizer);

// The path and value of a task's data set name, or of its tokenizer.
struct NamedDataset {
  std::string path;                   // empty for a task without data set
  const std::string* name = nullptr;  // in the task; null if it isn't set
};
NamedDataset DatasetOf(const v1::TaskSpec& task);
NamedDataset TokenizerOf(const v1::TaskSpec& task);
// Return the name for changing it; null if DatasetOf or TokenizerOf has none.
std::string* MutableDatasetOf(v1::TaskSpec* task);
std::string* MutableTokenizerOf(v1::TaskSpec* task);
// Sets the tokenizer of a task that has a data set.
void SetTokenizer(absl::string_view tokenizer, v1::TaskSpec* task);

// Normalizes a spec: clears every field without effect; sets every absent one that applies and has
// a default, betas if the optimizer has them; sorts the checkpoints with −1 last, each once, and
// records likewise. Idempotent.
void FillFields(v1::BaseSpec* base);

// Does the same, except that an absent trainer becomes auto, which depends on all runs of the
// experiment (expand.h); and sets the device: absent or auto, which depends on them, too, becomes
// cuda or cpu.
void FillDefaults(bool cuda, v1::BaseSpec* base);

// Returns true if the device is absent or auto.
bool LeavesDeviceOpen(const v1::TrainingSpec& training);

// Parses a stored run's spec. A field that the server of that time lacked gets its default, as for
// a run made today; an absent training.trainer is torch. Returns false if `bytes` aren't a run's
// spec.
[[nodiscard]] bool ReadStoredRun(const std::string& bytes, v1::RunSpec* run);

// Returns the path at which to report a problem of a path below BaseSpec.
using ReportedAs = std::function<std::string(const std::string& path)>;

// Checks the set fields of `base`, each by itself. Returns the paths with problems.
BadPaths CheckFields(const v1::BaseSpec& base, const ReportedAs& reported_as, Problems* problems);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_CONFIG_FIELDS_H_
