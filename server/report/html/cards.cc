// Findings as cards: a card per setting and, if axes are crossed, a card per effect.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/report/compare/finding.h"
#include "server/report/compare/verdict.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/style.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

using report::Comparison;
using report::Finding;

constexpr size_t kMaxCards = 8;    // with more settings, those with the strongest evidence
constexpr size_t kMaxEffects = 6;  // with more, those of the least p

// Adds the setting's colour in every figure; the words say the same.
void Chip(size_t colour, Markup* out) {
  out->Open("svg", {{"class", "chip"}, {"viewBox", "0 0 10 10"}, {"aria-hidden", "true"}});
  out->Open("rect", {{"class", absl::StrCat("c", colour % figure::kHues)},
                     {"width", "10"},
                     {"height", "10"},
                     {"rx", "2"}})
      .Close();
  out->Close();
}

void Card(const Finding& finding, std::optional<size_t> colour, const std::string& shared,
          Markup* out) {
  const bool told = finding.decision.grade >= report::Grade::kEquivalent;
  out->Open("li", {{"class", absl::StrCat("card ", told ? finding.words.what : "open")}});
  out->Open("p", {{"class", colour.has_value() ? "who" : "who effect"}});
  if (colour.has_value()) Chip(*colour, out);
  out->Text(finding.who).Close();
  out->Open("div").Open("p").Element("strong", finding.lead);
  out->Text(absl::StrCat(" ", finding.evidence)).Close();
  const std::string facts = report::Together({absl::StrJoin(finding.facts, " · "), shared}, " · ");
  if (!facts.empty()) out->Element("p", {{"class", "facts"}}, facts);
  out->Close().Close();
}

}  // namespace

void Cards(const Experiment& experiment, Markup* out) {
  const Comparison& comparison = experiment.comparison;
  std::vector<Finding> findings = report::FindingsOf(comparison);
  if (findings.size() > kMaxCards) {
    out->Element(
        "p", {{"class", "measured"}},
        absl::StrCat("Of ", findings.size(), " settings, ", report::CountsText(findings), ". The ",
                     kMaxCards, " clearest are shown; the table below has all."));
    const auto known = [&comparison](const Finding& finding) {
      const report::Number& mean = comparison.rows[finding.row].difference.mean;
      return std::make_pair(static_cast<int>(finding.decision.grade),
                            mean.defined() ? std::abs(mean.value) : 0);
    };
    std::stable_sort(findings.begin(), findings.end(),
                     [&known](const Finding& a, const Finding& b) { return known(a) > known(b); });
    findings.resize(kMaxCards);
  }
  out->Open("ul", {{"class", "cards"}});
  for (const Finding& finding : findings) {
    const std::vector<size_t>& colours = experiment.colours;
    const bool judged = finding.decision.grade != report::Grade::kNoVerdict;
    const std::string shared = report::SharedDifference(comparison, finding);
    Card(finding, finding.row < colours.size() ? colours[finding.row] : finding.row,
         judged && !shared.empty() ? absl::StrCat(report::SharedPlace(comparison), shared) : "",
         out);
  }
  out->Close();
}

// Writes main effects and interactions if the grid crosses axes. Effects with tuned values are only
// in the table.
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
  out->Text("Main effects, averaged over the other axes, and two-way interactions (×): ");
  out->Element("a", {{"href", absl::StrCat("#", place.prefix, "results")}},
               all > effects.size() ? absl::StrCat("all ", all, " effects") : "table");
  out->Close();
  if (!comparison.tuned_axes.empty()) return;
  out->Open("ul", {{"class", "cards"}});
  for (const auto& [effect, family] : effects) {
    Card(report::EffectFinding(comparison, *effect, family), {}, {}, out);
  }
  out->Close();
  out->Element("p", {{"class", "measured"}}, "Each combination against the baseline:");
}

}  // namespace ablate::html
