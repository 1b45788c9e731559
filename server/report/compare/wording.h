// Formats numbers for sentences: signed, with as many decimals as the interval justifies.
#ifndef ABLATE_SERVER_REPORT_COMPARE_WORDING_H_
#define ABLATE_SERVER_REPORT_COMPARE_WORDING_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/report/compare/statistics.h"

namespace ablate::report {

// Returns the decimals for a mean and its interval: one significant digit of the half width if that
// digit is 5 or more, otherwise two; more until no nonzero bound prints as 0. -1: too small for
// decimals, print in scientific notation.
int DecimalsFor(double mean, const Interval& interval);

// Returns the decimals for a number without an interval: three significant digits; -1 as above.
int DecimalsFor(double value);

// Returns true if a value prints as zeros only with so many decimals.
bool PrintsAsZero(double value, int decimals);

// Returns "2.437", "0.031", "−0.5"; U+2212 as minus, no sign on zeros; -1 decimals: "1.2e−9".
std::string Plain(double value, int decimals);

// The same with three significant digits.
std::string Plain(double value);

// The same with "+" before positive numbers.
std::string Signed(double value, int decimals);

// A number in words: "+0.031" or "higher by 0.031"; and its interval: "[+0.024, +0.038]", "" for
// none.
struct NumberWords {
  std::string value, interval;
  std::string text() const;  // both
};

// Returns a setting's name from its labels, one per axis: "post, rms". A bare value (a number,
// true, false) has its axis in front: "lr 0.01". "base" without axes.
std::string SettingName(absl::Span<const std::string> axes, absl::Span<const std::string> labels);

// Returns a setting's name for a list, in quotes if its commas would look like the list's.
std::string Listed(absl::string_view name);

// Joins the parts that aren't empty, with `between` between them.
std::string Together(const std::vector<std::string>& parts, absl::string_view between);

// Capitalizes the first letter.
std::string Capitalized(std::string text);

// Returns a setting's name for a sentence: “none”.
std::string Quoted(absl::string_view name);

// Returns "p = 0.031", "p < 0.001", with enough decimals to differ from kAlpha.
std::string PText(double p);

// Returns "12 seeds", "1 seed".
std::string Counted(size_t count, absl::string_view noun);

// Returns "68 of 96 runs".
std::string OfRuns(size_t ended, size_t planned);

// Returns what a metric is computed on: "held-out data"; "data or targets" for the training loss.
absl::string_view ScoredText(absl::string_view key);

// Returns "a, b and c"; parts beyond `max_parts` are counted: "a, b and 3 more".
std::string Enumerated(absl::Span<const std::string> parts, size_t max_parts = 8);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_WORDING_H_
