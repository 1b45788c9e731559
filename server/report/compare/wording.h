// Numbers as people read them in sentences: signed, with as many decimals as the interval deserves.
#ifndef ABLATE_SERVER_REPORT_COMPARE_WORDING_H_
#define ABLATE_SERVER_REPORT_COMPARE_WORDING_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/report/compare/statistics.h"

namespace ablate::report {

// Decimals for a mean and its interval: one significant digit of the half width where that is 5 or
// more, else two; more until no bound that is not 0 is printed as 0. -1: too small for decimals,
// print in scientific notation.
int DecimalsFor(double mean, const Interval& interval);

// Decimals for a number without an interval: three significant digits; -1 as above.
int DecimalsFor(double value);

// Whether nothing but zeros is left of a value at so many decimals.
bool PrintsAsZero(double value, int decimals);

// "2.437", ".031", "−.5"; no leading zero, U+2212 as minus, no sign on what rounds to 0; -1
// decimals: "1.2e−9".
std::string Plain(double value, int decimals);

// The same with "+" before what is positive.
std::string Signed(double value, int decimals);

// "+.031 [+.024, +.038]"; the mean alone where there is no interval, "undefined (REASON)" where
// there is no mean.
std::string SignedWithInterval(const Number& mean, const Interval& interval);
// With so many decimals.
std::string SignedWithInterval(const Number& mean, const Interval& interval, int decimals);

// "higher by .031 [.024, .038]" where the interval leaves out 0; else as SignedWithInterval.
std::string DirectedWithInterval(const Number& mean, const Interval& interval);

// Such a text in two, the interval without its space: {"+.031", "[+.024, +.038]"}; the second part
// is empty where there is none.
std::pair<std::string, std::string> BeforeInterval(const std::string& text);

// A value as an experiment file writes it, with the zero in front of its point left out as in every
// other number: ".004" of "0.004". Other texts stay as they are.
std::string ShownValue(absl::string_view text);

std::string ShownValues(absl::Span<const std::string> texts);  // ".004, 64"

// What a setting is called, by its labels, one an axis: "post, rms". A bare value (a number, true,
// false) has its axis in front: "lr .01". "base" without axes.
std::string SettingName(absl::Span<const std::string> axes, absl::Span<const std::string> labels);

// The same where there is little room, as in figures: of one axis its name, of several the values
// alone, "pre/true/16".
std::string SettingMark(absl::Span<const std::string> axes, absl::Span<const std::string> labels);

// Those of the parts that say something, with `between` between them.
std::string Together(const std::vector<std::string>& parts, absl::string_view between);

// As a sentence begins.
std::string Capitalized(std::string text);

// A setting's name in a sentence: “none”.
std::string Quoted(absl::string_view name);

// "p = .031", "p < .001"; as many decimals as it takes to print another number than kAlpha.
std::string PText(double p);

// "12 seeds", "1 seed".
std::string Counted(size_t count, absl::string_view noun);

// "68 of 96 runs".
std::string OfRuns(size_t ended, size_t planned);

// Whether the metric of `key` is computed on held-out data: eval/loss, not train/loss.
bool IsOfHeldOutData(absl::string_view key);

// What that metric is computed on: "held-out data", or "data".
absl::string_view ScoredText(absl::string_view key);

// "a, b and c"; what is beyond `max_parts` is counted: "a, b and 3 more".
std::string Enumerated(absl::Span<const std::string> parts, size_t max_parts = 8);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_WORDING_H_
