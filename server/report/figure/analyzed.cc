#include "server/report/figure/analyzed.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/layout.h"

namespace ablate::figure {

std::string OptionOf(const Analyzed& analyzed, const std::string& option) {
  const auto found = analyzed.options.find(option);
  return found == analyzed.options.end() || found->second.empty() ? "" : found->second[0];
}

bool HasSeeds(const Analyzed& analyzed) {
  return std::any_of(analyzed.settings.begin(), analyzed.settings.end(),
                     [](const AnalyzedSetting& setting) { return !setting.seeds.empty(); });
}

std::string StepsText(const Analyzed& analyzed) {
  uint32_t first = UINT32_MAX, last = 0;
  for (const AnalyzedSetting& setting : analyzed.settings) {
    for (const AnalyzedSeed& seed : setting.seeds) {
      first = std::min(first, seed.step);
      last = std::max(last, seed.step);
    }
  }
  if (first >= last) return absl::StrCat("at step ", last);
  return absl::StrCat("at the last checkpoints that were analyzed, steps ", first, " to ", last);
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
