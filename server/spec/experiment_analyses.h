// What an experiment's file asks to have computed: its entries of `analyses` as requests, and their
// checks.
#ifndef ABLATE_SERVER_SPEC_EXPERIMENT_ANALYSES_H_
#define ABLATE_SERVER_SPEC_EXPERIMENT_ANALYSES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/analysis_options.pb.h"
#include "ablate/v1/experiment.pb.h"
#include "ablate/v1/spec.pb.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/analysis.h"
#include "server/engine/config.h"
#include "server/spec/bad_paths.h"
#include "server/spec/problems.h"

namespace ablate::spec {

// An entry that is a kind of analysis: not samples, which a report asks for.
struct AskedAnalysis {
  int entry = 0;              // of the spec's analyses
  v1::AnalysisKind analysis;  // as written: without defaults
  v1::AnalysisInputs inputs;  // likewise
  uint32_t seed = 0;
  std::string label;        // of its numbers
  bool of_runs = true;      // false: it is made once, of no run
  std::vector<int32_t> at;  // steps, -1 is the last; none: of every checkpoint
  bool together = false;    // of a run one analysis of all its steps; else one of each
  bool all = false;         // of all values of tuned axes

  size_t analyses_of_a_run() const { return together ? 1 : at.size(); }
};

// Entries in their order, samples and those without a kind left out.
std::vector<AskedAnalysis> AskedAnalyses(const v1::ExperimentSpec& spec);

// Each entry by itself: one kind, its options, inputs, steps and name; at most one `samples`, and a
// base that has text. Overrides are in the base.
void CheckAnalyses(const v1::ExperimentSpec& spec, Problems* problems);
inline constexpr int kMaxAnalyses = 100;

// As its labels say it, "norm=post, rate=0.1"; empty for the only one.
std::string NameOfSetting(const v1::SettingParameters& setting);

// A setting that is analyzed.
struct AnalyzedSetting {
  std::string name;  // NameOfSetting's
  const engine::RunConfig* config = nullptr;
  const BadPaths* bad = nullptr;  // of its spec
};

// Guessed microseconds of an entry's analyses of one group.
struct GroupTime {
  double mean = 0;     // of an analysis, over all settings: 0 of those in other groups
  double largest = 0;  // of one
};

// The cost of one analysis of an entry.
struct EntryCost {
  std::map<std::string, GroupTime> times;  // by AnalysisTime's group
  uint64_t array_bytes = 0;                // of the setting where it is most
};

// Each entry against what will be trained: steps without a checkpoint, and what can be asked of
// none of these models. What only some have no use for, as those without a norm, is not asked of
// them: a note says so. Leaves out entries that are wrong by themselves, and what would read a bad
// path of a setting. Returns the cost of each entry of AskedAnalyses; an empty one after a problem.
std::vector<EntryCost> CheckAnalyzed(const v1::ExperimentSpec& spec,
                                     absl::Span<const AnalyzedSetting> settings, Problems* problems,
                                     std::vector<std::string>* notes);

// Sets its defaults; nothing if something is wrong with it by itself.
std::optional<engine::AnalysisOptions> ResolveAsked(AskedAnalysis* asked);

// Whether this model has a use for an entry that ResolveAsked gave these options, as one with norms
// for their statistics.
bool CanBeAskedOf(const AskedAnalysis& resolved, const engine::AnalysisOptions& options,
                  const engine::RunConfig& config);

// Adds what was found of an entry, by fields below it, as problems of the experiment. `setting` is
// the one that has them.
void AddProblemsOf(const AskedAnalysis& asked, const std::string& setting, Problems found,
                   Problems* problems);

// The entry of this label, whose numbers runs have as LABEL/NUMBER; nothing if there is none.
std::optional<AskedAnalysis> EntryWithNumbers(const v1::ExperimentSpec& spec,
                                              absl::string_view label);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_EXPERIMENT_ANALYSES_H_
