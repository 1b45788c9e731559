// Arrays of a labelled analysis of a setting's seeds: what the kinds of figures of analyses draw,
// and what such figures say of them. Pure functions.
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

// An array that a kind of figure draws, and what it reads beside it.
struct ArrayForm {
  absl::string_view analysis;  // the kind of analysis that has it, such as loss_landscape
  absl::string_view array;     // its name
  absl::string_view axes;      // its axes' names, separated by commas
  absl::string_view places;    // the array of places along the last axis; empty: none is read
  absl::string_view number;    // the headline number that is read; empty: none
  bool every_seed;  // of all converged runs, for a mean; else of the one of the lowest seed
  absl::Span<const absl::string_view> beside = {};  // further arrays that are read
};

// What one run's analysis gave.
struct AnalysedSeed {
  uint32_t seed = 0;
  uint32_t step = 0;           // of the checkpoint
  std::vector<size_t> shape;   // one a name of ArrayForm::axes; none is 0
  std::vector<double> values;  // row-major, as many as the shape says; they may be non-finite
  std::vector<double> places;  // as many as the last dimension; empty without ArrayForm::places
  std::map<std::string, std::vector<double>> beside;         // ArrayForm::beside, row-major
  double number = std::numeric_limits<double>::quiet_NaN();  // also where it is undefined
};

// A row of the comparison.
struct AnalysedSetting {
  std::string label;
  size_t style = 0;                 // index of its colour (StyleOf)
  std::vector<AnalysedSeed> seeds;  // that converged and were analysed, in the row's order
  size_t converged = 0;             // of all its runs
  size_t diverged = 0;              // likewise; they are in no mean
};

// All of what is drawn of one label.
struct Analysed {
  const ArrayForm* form = nullptr;  // one of the kind's; null where nothing was read
  std::map<std::string, std::vector<std::string>> options;  // of the analysis, as people write them
  std::string inputs;  // what it read: "at most 2,000 held-out tokens"
  std::string prompt;  // the text, if it read one: UTF-8
  std::vector<AnalysedSetting> settings;
};

// The option's value, of a list the first; "" where it is not set.
std::string OptionOf(const Analysed& analysed, const std::string& option);

// Whether some seed has been analysed.
bool HasSeeds(const Analysed& analysed);

// "at step 100", or where the checkpoints differ "at the last checkpoints that were analysed, steps
// 50 to 100".
std::string StepsText(const Analysed& analysed);

// How many of a setting's runs a figure leaves out.
struct LeftOutRuns {
  std::string label;
  bool without = false;  // of runs that converged none has anything
  size_t converged = 0, diverged = 0;
};

// Returns a footnote of these statements, and after them which runs are left out: "without values:
// late; diverged, not in the mean: none 2 of 12". Diverged runs are not `what`.
std::string FootnoteOf(std::vector<std::string> statements,
                       const std::vector<LeftOutRuns>& settings, absl::string_view what);
// Returns the runs that are left out of settings with a label, their seeds that are drawn, and
// counts of converged and diverged runs.
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
