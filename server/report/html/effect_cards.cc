// What crossed axes do on average and together, a card an effect.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/report/compare/factorial.h"
#include "server/report/compare/scale.h"
#include "server/report/compare/wording.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

using report::Comparison;

constexpr size_t kMaxEffects = 6;  // of more those of the least p

// "on average over 3 combinations, 8 seeds".
std::string OverText(const report::Effect& effect) {
  const std::string seeds = report::Counted(effect.difference.n, "seed");
  if (effect.combinations < 2) return absl::StrCat("over ", seeds);
  return absl::StrCat("on average over ", effect.combinations, " combinations, ", seeds);
}

// Its lead and what stands behind it: "Higher by .100", "[.078, .123]".
std::pair<std::string, std::string> SizeTexts(const Comparison& comparison,
                                              const report::Effect& effect, bool found) {
  const report::Number& mean = effect.difference.mean;
  const report::Interval& interval = effect.difference.interval;
  if (!mean.defined()) {
    return {"Inconclusive:", std::string(report::PairReasonText(mean.undefined))};
  }
  if (!found) return {"Inconclusive:", report::ShownDifference(comparison.scale, mean, interval)};
  const std::string size = report::DirectedSize(comparison.scale, mean.value, interval);
  return {effect.levels.size() > 1 ? absl::StrCat("Together ", size) : report::Capitalized(size),
          interval.defined()
              ? report::BeforeInterval(report::DirectedDifference(comparison.scale, mean, interval))
                    .second
              : "the same on every seed"};
}

void EffectCard(const Comparison& comparison, const report::Effect& effect, size_t family,
                Markup* out) {
  const bool together = effect.levels.size() > 1;
  const report::Number& mean = effect.difference.mean;
  const bool found = effect.p_holm.defined() && effect.p_holm.value <= report::kAlpha;
  const int toward = (mean.value < 0) == (comparison.better == report::Better::kLower) ? 1 : -1;
  const bool judged = found && comparison.better != report::Better::kNeither && !together;
  out->Open("li", {{"class", absl::StrCat("card ", !judged      ? "open"
                                                   : toward > 0 ? "better"
                                                                : "worse")}});
  out->Element("p", {{"class", "who effect"}}, report::EffectText(effect));
  out->Open("div").Open("p");
  const auto [lead, rest] = SizeTexts(comparison, effect, found);
  out->Element("strong", lead);
  out->Text(absl::StrCat(" ", rest,
                         !together || !found ? ", "
                         : comparison.scale == report::Scale::kRatio
                             ? " than the product of the two by themselves, "
                             : " than the sum of the two by themselves, ",
                         OverText(effect)))
      .Close();
  if (effect.p_holm.defined()) {
    out->Element("p", {{"class", "facts"}},
                 absl::StrCat(report::PText(effect.p_holm.value), " with Holm over ",
                              report::Counted(family, together ? "interaction" : "main effect")));
  }
  out->Close().Close();
}

}  // namespace

// What axes do by themselves and together, where the grid crosses them: what such a grid is for.
// Tuned values are described in the table alone.
void EffectCards(const Place& place, const Comparison& comparison, Markup* out) {
  const report::Factorial& factorial = comparison.factorial;
  if (factorial.main.empty()) return;
  std::vector<std::pair<const report::Effect*, size_t>> effects;  // with its family's size
  for (const auto* of : {&factorial.main, &factorial.interactions}) {
    for (const report::Effect& effect : *of) effects.emplace_back(&effect, of->size());
  }
  const size_t all = effects.size();
  if (all > kMaxEffects) {
    std::stable_sort(effects.begin(), effects.end(), [](const auto& a, const auto& b) {
      const auto p = [](const auto& of) {
        return of.first->p_holm.defined() ? of.first->p_holm.value : 2;
      };
      return p(a) < p(b);
    });
    effects.resize(kMaxEffects);
  }
  out->Open("p", {{"class", "measured"}});
  out->Text("What each axis does on average over the others, and two together (×): ");
  out->Element("a", {{"href", absl::StrCat("#", place.prefix, "results")}},
               all > effects.size() ? absl::StrCat("all ", all, " effects") : "table");
  out->Close();
  if (!comparison.tuned_axes.empty()) return;
  out->Open("ul", {{"class", "cards"}});
  for (const auto& [effect, family] : effects) EffectCard(comparison, *effect, family, out);
  out->Close();
  out->Element("p", {{"class", "measured"}}, "Each combination against the baseline:");
}

}  // namespace ablate::html
