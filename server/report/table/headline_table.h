// Makes tables of the headline numbers of an experiment's analyses, and tests their differences
// together. Pure functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_TABLE_HEADLINE_TABLE_H_
#define ABLATE_SERVER_REPORT_TABLE_HEADLINE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/statistics.h"
#include "server/report/table/table.h"

namespace ablate::report {

// Headline numbers of the analyses of one entry of the spec.
struct HeadlineNumbers {
  // A number of a setting.
  struct Entry {
    Scale scale = Scale::kDifference;
    Unit unit = Unit::kSeed;
    Summary own;  // over the setting's converged runs, or over the sequences of the only one
    size_t runs = 0, left_out = 0;  // converged runs with the number, and without it
    PairedStatistics difference = NoPairs(Undefined::kNoBaseline);  // from the baseline
    TableCell baseline = {};                                        // the baseline's mean
    bool ended = true;  // all runs of both settings have ended
    // p of the difference, adjusted by TestTogether; undefined if it isn't tested.
    Number p = NoNumber(Undefined::kNotRecorded);
  };
  struct Line {
    std::string setting;
    bool is_baseline = false, compared = false;  // with a baseline
    uint32_t step = 0;
    std::vector<Entry> entries;  // one per number
  };
  // A number of an analysis that doesn't belong to a run.
  struct OwnNumber {
    std::string name;
    std::optional<double> value;
    std::string undefined;  // why it has no value
  };
  std::string label, kind;
  std::string how;  // sentences: its inputs and options other than the defaults; "" if neither
  size_t asked = 0, done = 0;        // analyses
  double device_seconds = 0;         // of those that are done
  std::string failure;               // why one failed, or why none was requested; or ""
  std::vector<std::string> numbers;  // without the label, in the order of columns
  // Numbers that are the same in every run, with their values; they have no column.
  std::vector<std::pair<std::string, std::string>> constants;
  size_t left_out = 0;  // numbers that are in neither
  std::vector<Line> lines;
  std::vector<OwnNumber> own;
  // Names of undefined headline numbers by reason, such as "too few tokens", each with how many of
  // the analyses lack it.
  std::map<std::string, std::map<std::string, size_t>> undefined;
};

// Moves numbers that are the same in every run of at least two lines from the columns to
// `constants`.
void SetConstantsApart(HeadlineNumbers* analysis);

// Returns "The same in every run: majority 0.196."; "" if there is no such number.
std::string ConstantsText(const HeadlineNumbers& analysis);

// Tests all differences of the analyses together: paired t-test, p adjusted by Holm. Leaves out
// those of `primary`, a metric that is tested by itself, of runs that go on, and equal differences
// of the same setting under another name.
void TestTogether(absl::string_view primary, std::vector<HeadlineNumbers>* analyses);

// Returns a line for each setting and step. Below a baseline's mean is its interval, below another
// setting's the difference from the baseline with its interval, and a star if its p is at most
// kAlpha.
Table NumbersTable(const HeadlineNumbers& analysis);

// Explains the cells of such tables, in sentences.
std::string NumbersLegend(const std::vector<HeadlineNumbers>& analyses);

// Returns a line for each number of analyses without a run.
Table OwnNumbersTable(const HeadlineNumbers& analysis);

// The significant differences among those tested together.
struct SignificantDifferences {
  size_t tested = 0, significant = 0;
  Table table;  // the first kMaxSignificant of them, smallest p first
};
inline constexpr size_t kMaxSignificant = 20;

SignificantDifferences FindSignificant(const std::vector<HeadlineNumbers>& analyses);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_TABLE_HEADLINE_TABLE_H_
