// The `analyses` of an experiment: checks, and the engine's terms for them.
#include "server/spec/samples.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "text/decimal.h"

namespace ablate::spec {
namespace {

constexpr int kMostAnalyses = 100;

void CheckSamples(const v1::SamplesSpec& samples, const std::string& path, Problems* problems) {
  for (const engine::OptionProblem& problem :
       engine::CheckSampleOptions(ToSampleOptions(samples))) {
    problems->Add(absl::StrCat(path, ".", problem.field), problem.value, problem.complaint,
                  problem.allowed);
  }
}

}  // namespace

engine::SampleOptions ToSampleOptions(const v1::SamplesSpec& spec) {
  engine::SampleOptions options;
  if (spec.has_count()) options.count = spec.count();
  if (spec.has_temperature()) options.temperature = spec.temperature();
  if (spec.has_top_k()) options.top_k = spec.top_k();
  if (spec.has_top_p()) options.top_p = spec.top_p();
  if (spec.has_seed()) options.seed = spec.seed();
  return options;
}

void CheckAnalyses(const v1::ExperimentSpec& spec, Problems* problems) {
  if (spec.analyses_size() > kMostAnalyses) {
    problems->Add("analyses", "", absl::StrCat("there are ", text::Grouped(spec.analyses_size())),
                  "at most 100");
    return;
  }
  int with_samples = 0;
  for (int i = 0; i < spec.analyses_size(); ++i) {
    const std::string path = absl::StrCat("analyses[", i, "]");
    if (!spec.analyses(i).has_samples()) {
      problems->Add(path, "", "no kind is given", "samples");
      continue;
    }
    const std::string samples = absl::StrCat(path, ".samples");
    if (++with_samples == 2) problems->Add(samples, "", "it is given twice", "one such entry");
    if (spec.base().task().has_legacy_recall()) {
      problems->Add(samples, "", "the tokens of legacy_recall are numbers, not text",
                    "only with a documents task");
    }
    CheckSamples(spec.analyses(i).samples(), samples, problems);
  }
}

}  // namespace ablate::spec
