#include "server/report/figure/analysed.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/layout.h"

namespace ablate::figure {

std::string OptionOf(const Analysed& analysed, const std::string& option) {
  const auto found = analysed.options.find(option);
  return found == analysed.options.end() || found->second.empty() ? "" : found->second[0];
}

bool HasSeeds(const Analysed& analysed) {
  return std::any_of(analysed.settings.begin(), analysed.settings.end(),
                     [](const AnalysedSetting& setting) { return !setting.seeds.empty(); });
}

std::string StepsText(const Analysed& analysed) {
  uint32_t first = UINT32_MAX, last = 0;
  for (const AnalysedSetting& setting : analysed.settings) {
    for (const AnalysedSeed& seed : setting.seeds) {
      first = std::min(first, seed.step);
      last = std::max(last, seed.step);
    }
  }
  if (first >= last) return absl::StrCat("at step ", last);
  return absl::StrCat("at the last checkpoints that were analysed, steps ", first, " to ", last);
}

std::string FootnoteName(absl::string_view label) {
  constexpr double kWidth = 1.2;  // inches
  return report::Listed(ElideMiddle(label, kWidth, kSmallSize));
}

std::string FootnoteOf(std::vector<std::string> statements,
                       const std::vector<LeftOutRuns>& settings, absl::string_view what) {
  constexpr size_t kNamed = 6;
  std::vector<std::string> without, diverged;
  for (const LeftOutRuns& setting : settings) {
    const std::string label = FootnoteName(setting.label);
    if (setting.without) without.push_back(label);
    if (setting.diverged == 0) continue;
    diverged.push_back(
        absl::StrCat(label, " ", setting.diverged, " of ", setting.diverged + setting.converged));
  }
  if (!without.empty()) {
    statements.push_back(absl::StrCat("without values: ", report::Enumerated(without, kNamed)));
  }
  if (!diverged.empty()) {
    statements.push_back(
        absl::StrCat("diverged, not ", what, ": ", report::Enumerated(diverged, kNamed)));
  }
  return absl::StrJoin(statements, "; ");
}

}  // namespace ablate::figure
