// Stored analyses of an experiment by their labels, read for the figures that draw their arrays.
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
#include "server/report/figure/kinds.h"
#include "server/results/compare.h"
#include "server/results/series.h"
#include "server/rpc/cancelled.h"
#include "storage/store.h"

namespace ablate::results {

// The options that are set, by their names, as people write them.
std::map<std::string, std::vector<std::string>> OptionsOf(const v1::AnalysisKind& kind);
// Options of `ablate analyze attention` with which it has maps, as a shell reads them.
inline constexpr absl::string_view kMapOptions = "--prompt TEXT --set 'maps=[model]'";
// What is read, as people say it: "at most 20,000 held-out tokens". Inputs are resolved.
std::string InputsText(const v1::AnalysisInputs& inputs);

// Analyses of one run each that are DONE and that the experiment has given labels. Not changed once
// loaded; the store outlives it.
class LabelledResults {
 public:
  // Blocks on the store; without arrays.
  static absl::StatusOr<LabelledResults> Load(storage::Store* store, const std::string& experiment);

  // Labels of analyses with an array that the kind draws, ascending.
  std::vector<std::string> LabelsFor(const figure::Kind& kind) const;
  // Returns the labels that a figure of the kind draws if none is asked for: the label that the
  // kind is called by or, if no analysis has it, LabelsFor. Never empty.
  std::vector<std::string> DefaultLabels(const figure::Kind& kind) const;
  // Labels of analyses of this kind, such as gradient_flow, ascending.
  std::vector<std::string> LabelsOf(const std::string& analysis) const;

  // What the kind draws of `label`: of each row's converged runs, or the one of the lowest seed
  // that has it, at the checkpoint of `step`, or without one at each run's last that was analysed.
  // INVALID_ARGUMENT in field `key`, naming labels, if there is no such label, or it is another
  // kind's; in `step` if no run has it there. FAILED_PRECONDITION in `key` if the analysis lacks
  // what is drawn, or only runs that are not drawn have it; DATA_LOSS if its arrays are damaged or
  // not what its kind has; RESOURCE_EXHAUSTED if there are more than kMaxArrayValues. Blocks on the
  // store.
  absl::StatusOr<figure::Analysed> Read(const ComparedGrid& compared, const figure::Kind& kind,
                                        const std::string& label, std::optional<uint32_t> step,
                                        const rpc::Cancelled& cancelled) const;

 private:
  struct One {
    std::string id;
    uint32_t step = 0;
    v1::Analysis result;
  };
  struct Label {
    v1::Analysis asked;                            // kind, options and inputs
    std::map<std::string, std::vector<One>> runs;  // by run; ascending steps
  };

  explicit LabelledResults(storage::Store* store) : store_(store) {}
  // The first of the kind's forms that an analysis of the label has; null if none has any.
  static const figure::ArrayForm* FormOf(const figure::Kind& kind, const Label& label);
  // Returns the error for a label if none of the runs that rows show has its analysis.
  static absl::Status NoneDrawn(const ComparedGrid& compared, const Label& results,
                                const std::string& label);
  absl::StatusOr<const Label*> Find(const figure::Kind& kind, const std::string& label) const;
  // Fills in what the form names.
  absl::Status ReadArrays(const One& one, const figure::ArrayForm& form,
                          const rpc::Cancelled& cancelled, figure::AnalysedSeed* seed) const;

  storage::Store* store_;
  std::map<std::string, Label> labels_;
};

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_ANALYSED_H_
