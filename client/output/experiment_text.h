// Formats experiments: state, results per setting, and the plan of a submission.
#ifndef ABLATE_CLIENT_OUTPUT_EXPERIMENT_TEXT_H_
#define ABLATE_CLIENT_OUTPUT_EXPERIMENT_TEXT_H_

#include <cstdint>
#include <map>
#include <string>

#include "ablate/v1/experiment.pb.h"
#include "ablate/v1/run.pb.h"
#include "ablate/v1/spec.pb.h"
#include "absl/strings/string_view.h"

namespace ablate::client {

// Returns the primary metric of an experiment.
std::string PrimaryMetric(const v1::ExperimentSpec& spec);

// Returns the name of an axis, by default the last part of its field.
std::string AxisName(const v1::Axis& axis);

// Returns "post, rms" for labels of the axes that aren't tuned, or with `tuned` of those that are.
// Numbers and labels of tuned axes follow their axis, as in "width 64". Without such axes "base",
// or an empty text for tuned ones.
std::string SettingText(const v1::ExperimentSpec& spec,
                        const std::map<std::string, std::string>& labels, bool tuned);

// Returns "ACTIVE", or "STALLED: disk full".
std::string StateText(const v1::Experiment& experiment);

bool HasEnded(v1::RunState::Value state);

// Return the number of runs that have ended, and of all runs.
uint64_t EndedRuns(const v1::RunCounts& counts);
uint64_t AllRuns(const v1::RunCounts& counts);

// Returns "178 done, 2 diverged".
std::string CountsText(const v1::RunCounts& counts);
// Returns "30 of 32 analyses, 2 failed".
std::string AnalysesText(const v1::AnalysisCounts& counts, bool over = false);

// Returns the first line of a run's failure. A program's has the last lines of its log after it.
std::string FirstLine(absl::string_view failure);
// Returns "pre-s2: exit code 1" and, below it, indented, the last lines of the program's log; each
// line ends with a line break, and the text may be printed on a terminal.
std::string FailureText(const v1::RunRow& row);

// Returns a metric's summary of a run, or null.
const v1::Summary* FindSummary(const v1::RunRow& row, const std::string& key);

// Returns a line per combination of settings: labels, number of cells in the mean, number of
// diverged cells, and the mean of the last value of the metric `key` over DONE cells.
std::string SettingTable(const v1::ExperimentSpec& spec, const v1::ListRunsResponse& runs,
                         const std::string& key, int width);

// Returns `names-norm-7f3k   3 placement × 5 lr × 12 seeds = 180 runs (0 reused)   about 6 s, 40
// MB`; if cells are equal, `180 cells, 150 runs as equal cells run once`.
std::string Headline(const v1::CreateExperimentResponse& response);

// Returns `trainer: native 96 runs`, or `trainer: torch for all 96 runs: why` if the server chose
// and native doesn't train them all; a line for each trainer if the file asks for trainers. Empty
// if the answer lacks them.
std::string TrainersText(const v1::CreateExperimentResponse& response);

// Returns `12 runs continued from step 1,000 of shorter runs`, a sentence for each step; empty if
// none did.
std::string OriginsText(const v1::ListRunsResponse& runs);

// Returns a table of the combinations of settings: parameters, cells and reused cells, which are
// counted only if the answer has all cells.
std::string GridTable(const v1::CreateExperimentResponse& response, int width);

// Returns the cells that are stored except for their evaluation or checkpoints; empty if there are
// none.
std::string EvaluationText(const v1::CreateExperimentResponse& response);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_EXPERIMENT_TEXT_H_
