// What may be asked of GenerateSamples.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/engine/samples.h"
#include "text/decimal.h"

namespace ablate::engine {
namespace {

constexpr double kMostSamples = 1'000;
constexpr double kHighestTemperature = 100;
constexpr double kHighestTopK = 10'000'000;

struct Range {
  const char* field;
  double value;
  double low;
  bool open_low;  // low itself is not allowed
  double high;
  const char* allowed;

  // False for NaN.
  bool Holds() const { return (open_low ? value > low : value >= low) && value <= high; }
};

// The shortest decimal that reads back as the same number; counts without an exponent.
std::string TextOf(double value) {
  const bool whole = value >= 0 && value < 1e15 && value == std::floor(value);
  if (whole) return absl::StrCat(static_cast<uint64_t>(value));
  std::string text;
  text::AppendDecimal(value, &text);
  return text;
}

}  // namespace

std::vector<OptionProblem> CheckSampleOptions(const SampleOptions& options) {
  const Range ranges[] = {
      {"count", static_cast<double>(options.count), 1, false, kMostSamples, "1 to 1,000"},
      {"temperature", options.temperature, 0, false, kHighestTemperature, "0 to 100"},
      {"top_k", static_cast<double>(options.top_k), 0, false, kHighestTopK,
       "0 (all) to 10,000,000"},
      {"top_p", options.top_p, 0, true, 1, "above 0, at most 1"}};
  std::vector<OptionProblem> problems;
  for (const Range& range : ranges) {
    if (range.Holds()) continue;
    const std::string value = TextOf(range.value);
    problems.push_back(
        {range.field, value, absl::StrCat(value, " is out of range"), range.allowed});
  }
  return problems;
}

// The boundary token comes first, and one place is left to draw.
uint32_t LongestPrompt(const ModelConfig& model) {
  return static_cast<uint32_t>(std::max(model.context - 1, 0));
}

}  // namespace ablate::engine
