#include "server/experiment/trainer_choice.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace ablate::spec {
namespace {

bool HasAll(const Labels& labels, const Labels& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&labels](const auto& label) {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
  });
}

// Returns the fewest labels of `first` that no combination without its reason has; none of them can
// be left out.
Labels FewestLabels(const NativeCandidate& first,
                    const std::vector<NativeCandidate>& combinations) {
  Labels fewest = *first.labels;
  for (const auto& label : *first.labels) {
    Labels fewer = fewest;
    fewer.erase(std::find(fewer.begin(), fewer.end(), label));
    const bool says_it =
        std::all_of(combinations.begin(), combinations.end(), [&](const NativeCandidate& other) {
          return other.why_not_native == first.why_not_native || !HasAll(*other.labels, fewer);
        });
    if (says_it) fewest = std::move(fewer);
  }
  return fewest;
}

}  // namespace

std::string WhyNotAllNative(const std::vector<NativeCandidate>& combinations) {
  std::set<absl::string_view> known = {""};
  std::vector<std::string> reasons;
  for (const NativeCandidate& combination : combinations) {
    if (!known.insert(combination.why_not_native).second) continue;
    const std::string labels =
        absl::StrJoin(FewestLabels(combination, combinations), ", ", absl::PairFormatter("="));
    reasons.push_back(absl::StrCat(combination.why_not_native, labels.empty() ? "" : " (", labels,
                                   labels.empty() ? "" : ")"));
  }
  return absl::StrJoin(reasons, " and ");
}

void CheckNative(const Source& asked, const std::vector<NativeCandidate>& combinations,
                 Problems* problems) {
  const std::string why_not = WhyNotAllNative(combinations);
  if (why_not.empty()) return;
  const bool some = std::any_of(
      combinations.begin(), combinations.end(),
      [](const NativeCandidate& combination) { return combination.why_not_native.empty(); });
  std::string allowed = "auto or torch";
  if (some) absl::StrAppend(&allowed, ", or exclude those cells");
  // No other axis may write a field of an axis, and no axis one of an override.
  if (some && asked.rank != Rank::kAxis) {
    absl::StrAppend(&allowed, ", or have native in base and training.trainer: torch in the setting",
                    " of those cells");
  }
  problems->Add(asked.reported_as, "native",
                absl::StrCat("native doesn't support ", some ? "all of these runs" : "this run",
                             ": ", why_not),
                allowed);
}

}  // namespace ablate::spec
