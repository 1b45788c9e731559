// Reads an experiment's labelled analyses for the figures that draw their arrays.
#ifndef ABLATE_SERVER_RESULTS_ANALYSED_H_
#define ABLATE_SERVER_RESULTS_ANALYSED_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/analysis.pb.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/lookup/cancelled.h"
#include "server/report/figure/kinds.h"
#include "server/results/compare.h"
#include "server/results/series.h"
#include "storage/store.h"

namespace ablate::results {

// Returns the options that are set, by the names that people write.
std::map<std::string, std::vector<std::string>> OptionsOf(const v1::AnalysisKind& kind);
// Options of `ablate analyze attention` that store attention maps, quoted for a shell.
inline constexpr absl::string_view kMapOptions = "--prompt TEXT --set 'maps=[model]'";
// Describes resolved inputs in words: "at most 20,000 held-out tokens".
std::string InputsText(const v1::AnalysisInputs& inputs);

// The DONE analyses of a single run each that have a label in the experiment. Not changed once
// loaded; the store must outlive it.
class LabelledResults {
 public:
  // Loads the results without their arrays. Blocks on the store.
  static absl::StatusOr<LabelledResults> Load(storage::Store* store, const std::string& experiment);

  // Returns the labels of analyses with an array that the kind draws, in ascending order.
  std::vector<std::string> LabelsFor(const figure::Kind& kind) const;
  // Returns the labels that a figure of the kind draws by default: the label with the kind's own
  // name or, if no analysis has it, LabelsFor. Never empty.
  std::vector<std::string> DefaultLabels(const figure::Kind& kind) const;
  // Returns the labels of analyses of this kind, such as gradient_flow, in ascending order.
  std::vector<std::string> LabelsOf(const std::string& analysis) const;

  // Reads the data that the kind draws for `key`: a label, for its first form that the label has,
  // or LABEL/ARRAY for the form with this array. For each row, its converged runs or the one of the
  // lowest seed that has it, at the checkpoint of `step`, or by default at each run's last analyzed
  // one. INVALID_ARGUMENT in field `key`, naming labels, if the label doesn't exist or is another
  // kind's; in `step` if no run has it there. FAILED_PRECONDITION in `key` if the analysis lacks
  // the array, or only runs that aren't drawn have it. DATA_LOSS if its arrays are damaged or not
  // as its kind defines; RESOURCE_EXHAUSTED if there are more than kMaxArrayValues. Blocks on the
  // store.
  absl::StatusOr<figure::Analyzed> Read(const ComparedGrid& compared, const figure::Kind& kind,
                                        const std::string& key, std::optional<uint32_t> step,
                                        const lookup::Cancelled& cancelled) const;

 private:
  struct One {
    std::string id;
    uint32_t step = 0;
    v1::Analysis result;
  };
  struct Label {
    v1::Analysis asked;                            // kind, options and inputs
    std::map<std::string, std::vector<One>> runs;  // by run; steps ascend
  };

  explicit LabelledResults(storage::Store* store) : store_(store) {}
  // Returns the kind's forms that an analysis of the label has.
  static std::vector<const figure::ArrayForm*> FormsOf(const figure::Kind& kind,
                                                       const Label& label);
  // Returns the error for a label if none of the runs that rows show has its analysis.
  static absl::Status NoneDrawn(const ComparedGrid& compared, const Label& results,
                                const std::string& label);
  absl::StatusOr<const Label*> Find(const figure::Kind& kind, const std::string& label) const;
  // Reads the arrays that the form names into `seed`.
  absl::Status ReadArrays(const One& one, const figure::ArrayForm& form,
                          const lookup::Cancelled& cancelled, figure::AnalyzedSeed* seed) const;

  storage::Store* store_;
  std::map<std::string, Label> labels_;
};

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_ANALYSED_H_
