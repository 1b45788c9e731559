#include "tests/worker/made_numbers.h"

#include <utility>

#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/every_kind.h"

namespace ablate::engine {
namespace {

using Made = std::map<std::string, std::set<std::string>>;

void Add(const AnalysisKind& kind, AnalysisRequest request, Made* made) {
  std::set<std::string>& names = (*made)[std::string(kind.name)];
  for (AnalysisNumber& number : Analyzed(std::move(request)).numbers) {
    names.insert(std::move(number.name));
  }
}

}  // namespace

std::map<std::string, std::set<std::string>> MadeNumbers() {
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
