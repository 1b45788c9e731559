#include "tests/worker/made_numbers.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/every_kind.h"

namespace ablate::engine {
namespace {

using Made = std::map<std::string, MadeNames>;

void Add(const AnalysisKind& kind, AnalysisRequest request, Made* made) {
  constexpr absl::string_view kBySequence = "by_sequence/";
  MadeNames& names = (*made)[std::string(kind.name)];
  AnalysisResult result = Analyzed(std::move(request));
  for (const AnalysisNumber& number : result.numbers) {
    names.numbers.insert(number.name);
    if (!number.undefined) names.defined.insert(number.name);
  }
  for (const AnalysisArray& array : result.arrays) {
    if (absl::StartsWith(array.name, kBySequence)) {
      names.by_sequence.insert(array.name.substr(kBySequence.size()));
    }
  }
}

}  // namespace

std::map<std::string, MadeNames> MadeNumbers() {
  constexpr uint64_t kSubjects = 24;
  Made made;
  for (uint64_t drawn = 0; drawn < kSubjects; ++drawn) {
    const AnalysisSubject subject = DrawnSubject(drawn);
    std::vector<AnalysisOptions> every = EveryKind();
    every.push_back(RemoveOptions{RemovedPart::kAttention});
    every.push_back(RobustnessOptions{{0.5}, {}, {}, {}});
    for (const AnalysisOptions& options : every) {
      const AnalysisKind& kind = KindOf(options);
      if (!Accepts(options, subject.config)) continue;
      Add(kind, {options, LeastSubjects(kind, subject), InputsOf(options, subject.config)}, &made);
    }
  }
  const CkaOptions cka = {{"embedding", "block.0.output"}};
  Add(KindOf(AnalysisOptions(cka)), {cka, {ModelM(), ModelM()}, {60, ""}}, &made);
  return made;
}

}  // namespace ablate::engine
