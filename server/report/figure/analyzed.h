// Arrays of a labelled analysis over a setting's seeds, for the kinds of figures of analyses, and
// texts about such figures. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_ANALYSED_H_
#define ABLATE_SERVER_REPORT_FIGURE_ANALYSED_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ablate::figure {

// An array that a kind of figure draws, with the other data that it reads.
struct ArrayForm {
  absl::string_view analysis;  // the kind of analysis that has it, such as loss_landscape
  absl::string_view array;     // its name
  absl::string_view axes;      // its axes' names, separated by commas
  absl::string_view places;    // the array of coordinates along the last axis; empty: none is read
  absl::string_view number;    // the headline number that is read; empty: none
  bool every_seed;  // of all converged runs, for a mean; otherwise of the one of the lowest seed
  absl::Span<const absl::string_view> beside = {};    // further arrays to read, of any numbers
  absl::Span<const absl::string_view> optional = {};  // likewise, if there are any
};

// The result of one run's analysis.
struct AnalyzedSeed {
  uint32_t seed = 0;
  uint32_t step = 0;           // the checkpoint's
  std::vector<size_t> shape;   // one per name of ArrayForm::axes; none is 0
  std::vector<double> values;  // row-major, as many as the shape has; they may be non-finite
  std::vector<double> places;  // as many as the last dimension; empty without ArrayForm::places
  // ArrayForm::beside and those of ArrayForm::optional that there are, row-major.
  std::map<std::string, std::vector<double>> beside;
  double number = std::numeric_limits<double>::quiet_NaN();  // NaN also if it is undefined
};

// A row of the comparison.
struct AnalyzedSetting {
  std::string label;
  size_t style = 0;                 // index of its colour (StyleOf)
  std::vector<AnalyzedSeed> seeds;  // converged and analyzed ones, in the row's order
  size_t converged = 0;             // number of all its runs
  size_t diverged = 0;              // likewise; they are in no mean
};

// All data that a figure draws for one label.
struct Analyzed {
  const ArrayForm* form = nullptr;  // one of the kind's; null if nothing was read
  std::map<std::string, std::vector<std::string>> options;  // the analysis's, as people write them
  std::string inputs;  // its inputs: "at most 2,000 held-out tokens"
  std::string prompt;  // the text, if it read one: UTF-8
  std::vector<AnalyzedSetting> settings;
};

// Returns the option's value, of a list the first; "" if it isn't set.
std::string OptionOf(const Analyzed& analyzed, const std::string& option);

// Returns true if some seed has been analyzed.
bool HasSeeds(const Analyzed& analyzed);

// Returns "at step 100", or if the checkpoints differ "at the last checkpoints that were analyzed,
// steps 50 to 100".
std::string StepsText(const Analyzed& analyzed);

// Number of a setting's runs that a figure leaves out.
struct LeftOutRuns {
  std::string label;
  bool without = false;  // no converged run has anything
  size_t converged = 0, diverged = 0;
};

// Returns a setting's name for a list in a footnote, cut in the middle if it is long.
std::string FootnoteName(absl::string_view label);

// Returns a footnote of these statements, followed by the runs that are left out: "without values:
// late; diverged, not in the mean: none 2 of 12". `what` names the missing data of converged runs.
std::string FootnoteOf(std::vector<std::string> statements,
                       const std::vector<LeftOutRuns>& settings, absl::string_view what);
// Returns the left-out runs of settings that have a label, drawn seeds, and counts of converged and
// diverged runs.
template <class Setting>
std::vector<LeftOutRuns> LeftOutOf(const std::vector<Setting>& settings) {
  std::vector<LeftOutRuns> runs;
  for (const Setting& setting : settings) {
    const bool without = setting.seeds.empty() && setting.converged > 0;
    runs.push_back({setting.label, without, setting.converged, setting.diverged});
  }
  return runs;
}

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_ANALYSED_H_
