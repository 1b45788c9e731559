// Reads and checks the analyses that an experiment's file asks for.
#ifndef ABLATE_SERVER_EXPERIMENT_EXPERIMENT_ANALYSES_H_
#define ABLATE_SERVER_EXPERIMENT_EXPERIMENT_ANALYSES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/analysis_options.pb.h"
#include "ablate/v1/experiment.pb.h"
#include "ablate/v1/spec.pb.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/config/bad_paths.h"
#include "server/config/problems.h"
#include "server/engine/analysis.h"
#include "server/engine/config.h"

namespace ablate::spec {

// An entry with a kind of analysis; entries of samples are for reports.
struct AskedAnalysis {
  int entry = 0;              // index in the spec's analyses
  v1::AnalysisKind analysis;  // as written: without defaults
  v1::AnalysisInputs inputs;  // likewise
  uint64_t text_bytes = 0;    // of the data set that they name; 0: unknown
  uint32_t seed = 0;
  std::string label;        // label of its numbers
  bool of_runs = true;      // false: it is computed once, without a run
  std::vector<int32_t> at;  // steps, -1 is the last; empty: every checkpoint
  bool together = false;    // one analysis of all steps of a run; otherwise one per step
  bool all = false;         // for all values of tuned axes

  size_t analyses_of_a_run() const { return together ? 1 : at.size(); }
};

// Returns the entries in order, without samples and entries that have no kind.
std::vector<AskedAnalysis> AskedAnalyses(const v1::ExperimentSpec& spec);

// Checks each entry by itself: one kind, its options, inputs, steps and name; at most one
// `samples`, and for it a base that has text. Overrides are in the base.
void CheckAnalyses(const v1::ExperimentSpec& spec, Problems* problems);
inline constexpr int kMaxAnalyses = 100;

// Returns the setting's labels as "norm=post, rate=0.1"; empty for the only setting.
std::string NameOfSetting(const v1::SettingParameters& setting);

// A setting that is analyzed.
struct AnalyzedSetting {
  std::string name;  // NameOfSetting's
  const engine::RunConfig* config = nullptr;
  const BadPaths* bad = nullptr;  // bad paths of its spec
};

// Guessed microseconds of an entry's analyses of one group.
struct GroupTime {
  double mean = 0;     // per analysis, over all settings: 0 for those in other groups
  double largest = 0;  // largest of one analysis
};

// The cost of one analysis of an entry.
struct EntryCost {
  std::map<std::string, GroupTime> times;  // keyed by AnalysisTime's group
  uint64_t array_bytes = 0;                // of the setting where it is largest
};

// Checks each entry against the runs to be trained: steps without a checkpoint, and analyses that
// none of these models allows. If only some don't allow it, such as those without a norm, they are
// left out with a note. Skips entries with problems of their own, and checks that would read a bad
// path of a setting. `text_bytes` returns the size of the texts of a data set; 0: unknown. Returns
// the cost of each entry of AskedAnalyses; an empty one after a problem.
std::vector<EntryCost> CheckAnalyzed(const v1::ExperimentSpec& spec,
                                     absl::Span<const AnalyzedSetting> settings,
                                     absl::FunctionRef<uint64_t(const std::string&)> text_bytes,
                                     Problems* problems, std::vector<std::string>* notes);

// Sets the entry's defaults and returns its options; nothing if it has a problem by itself.
std::optional<engine::AnalysisOptions> ResolveAsked(AskedAnalysis* asked);

// Returns true if an entry that ResolveAsked gave these options applies to this model; norm
// statistics, for instance, need norms.
bool CanBeAskedOf(const AskedAnalysis& resolved, const engine::AnalysisOptions& options,
                  const engine::RunConfig& config);

// Adds problems found in an entry, in fields below it, to the experiment's. `setting` is the one
// that has them.
void AddProblemsOf(const AskedAnalysis& asked, const std::string& setting, Problems found,
                   Problems* problems);

// Returns the entry of this label, whose numbers runs have as LABEL/NUMBER; nothing if there is
// none.
std::optional<AskedAnalysis> EntryWithNumbers(const v1::ExperimentSpec& spec,
                                              absl::string_view label);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_EXPERIMENT_ANALYSES_H_
