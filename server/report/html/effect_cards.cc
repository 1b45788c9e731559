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

void EffectCard(const Comparison& comparison, const report::Effect& effect, size_t family,
                Markup* out) {
  const bool together = effect.levels.size() > 1;
  const report::Number& mean = effect.difference.mean;
  const report::Interval& interval = effect.difference.interval;
  const bool found = effect.p_holm.defined() && effect.p_holm.value <= report::kAlpha;
  const int toward = (mean.value < 0) == (comparison.better == report::Better::kLower) ? 1 : -1;
  const bool judged = found && comparison.better != report::Better::kNeither && !together;
  out->Open("li", {{"class", absl::StrCat("card ", !judged      ? "open"
                                                   : toward > 0 ? "better"
                                                                : "worse")}});
  out->Element("p", {{"class", "who effect"}}, report::EffectText(effect));
  out->Open("div").Open("p");
  const std::string size = report::DirectedSize(comparison.scale, mean.value, interval);
  const auto shown =
      report::BeforeInterval(found ? report::DirectedDifference(comparison.scale, mean, interval)
                                   : report::ShownDifference(comparison.scale, mean, interval));
  out->Element("strong", !found     ? "Inconclusive:"
                         : together ? absl::StrCat("Together ", size)
                                    : report::Capitalized(size));
  out->Text(absl::StrCat(" ", found ? "" : absl::StrCat(shown.first, " "),
                         interval.defined() ? shown.second : "on every seed",
                         !together ? ", "
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
