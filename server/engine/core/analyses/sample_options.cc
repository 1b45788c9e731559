// Checks the options of sampling.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/utf8.h"
#include "server/engine/samples.h"

namespace ablate::engine {
namespace {

constexpr double kMaxSamples = 1'000;
constexpr double kMaxTemperature = 100;
constexpr double kMaxTopK = 10'000'000;
constexpr size_t kMaxStops = 16;
constexpr size_t kMaxStopBytes = 1'000;

struct Range {
  const char* field;
  double value;
  double low;
  bool open_low;  // low itself is excluded
  double high;
  const char* allowed;

  // Returns false for NaN.
  bool Holds() const { return (open_low ? value > low : value >= low) && value <= high; }
};

// Returns the shortest decimal that parses to the same number; counts have no exponent.
std::string DecimalOf(double value) {
  const bool whole = value >= 0 && value < 1e15 && value == std::floor(value);
  if (whole) return absl::StrCat(static_cast<uint64_t>(value));
  std::string text;
  text::AppendDecimal(value, &text);
  return text;
}

std::optional<OptionProblem> CheckStopStrings(const std::vector<std::string>& stop) {
  if (stop.size() > kMaxStops) {
    const std::string count = absl::StrCat(stop.size());
    return OptionProblem{"stop", count, absl::StrCat("it has ", count, " strings"),
                         absl::StrCat("at most ", kMaxStops)};
  }
  for (size_t i = 0; i < stop.size(); ++i) {
    const size_t bytes = stop[i].size();
    const bool fits = bytes >= 1 && bytes <= kMaxStopBytes;
    if (fits && text::IsUtf8(stop[i])) continue;
    return OptionProblem{absl::StrCat("stop[", i, "]"), "",
                         fits ? "it is not UTF-8" : absl::StrCat("it has ", bytes, " bytes"),
                         "1 to 1,000 bytes of UTF-8"};
  }
  return std::nullopt;
}

}  // namespace

std::vector<OptionProblem> CheckSampleOptions(const SampleOptions& options) {
  const Range ranges[] = {
      {"count", static_cast<double>(options.count), 1, false, kMaxSamples, "1 to 1,000"},
      {"temperature", options.temperature, 0, false, kMaxTemperature, "0 to 100"},
      {"top_k", static_cast<double>(options.top_k), 0, false, kMaxTopK, "0 (all) to 10,000,000"},
      {"top_p", options.top_p, 0, true, 1, "above 0, at most 1"},
      {"max_tokens", static_cast<double>(options.max_tokens), 1, false, kMaxDrawnTokens,
       "1 to 10,000,000"}};
  std::vector<OptionProblem> problems;
  for (const Range& range : ranges) {
    if (range.Holds()) continue;
    const std::string value = DecimalOf(range.value);
    problems.push_back(
        {range.field, value, absl::StrCat(value, " is out of range"), range.allowed});
  }
  if (auto wrong = CheckStopStrings(options.stop); wrong.has_value()) problems.push_back(*wrong);
  if (!options.prompt.empty() && !options.prompt_ids.empty()) {
    problems.push_back(
        {"prompt_ids", "", "prompt and prompt_ids are both given", "either of them"});
  }
  return problems;
}

// The boundary token comes first, and one position is left to draw.
uint32_t LongestPrompt(const ModelConfig& model) {
  return static_cast<uint32_t>(std::max(model.context - 1, 0));
}

}  // namespace ablate::engine
