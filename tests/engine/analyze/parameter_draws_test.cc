// Tests the draws of analyses against docs/reference/random-streams.md, and the names of their
// streams.
#include "server/engine/analyze/parameter_draws.h"

#include <string>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tests/docs_page.h"
#include "tests/engine/analyze/pieces.h"

namespace ablate::engine {
namespace {

AnalysisContext ContextOfSeed(uint32_t seed) {
  AnalysisContext analysis;
  analysis.seed = seed;
  return analysis;
}

std::string FirstFour(const at::Tensor& values, int decimals) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < 4; ++i) {
    texts.push_back(absl::StrFormat("%.*f", decimals, values[i].item<double>()));
  }
  return absl::StrJoin(texts, " ");
}

TEST(ParameterDrawsTest, AreThoseOfThePage) {
  const AnalysisContext analysis = ContextOfSeed(3);
  const ParameterLayout layout = MakeLayout(ModelM().config.model);
  const ParameterInfo& head = layout.parameters.back();
  ASSERT_EQ(head.name, "head.weight");
  const auto expect = [&](const char* drawn, const at::Tensor& vector, int decimals) {
    ExpectRow("random-streams.md", drawn,
              FirstFour(vector.narrow(0, head.offset, head.size), decimals));
  };
  expect("`head.weight` of direction 0 of a loss landscape",
         NormalVector(analysis, layout, "loss_landscape/0"), 10);
  expect("signs of `head.weight`, start of Lanczos run 0",
         SignVector(analysis, layout, "hessian/start.0"), 0);
  expect("signs of `head.weight`, trace vector 0", SignVector(analysis, layout, "hessian/trace.0"),
         0);
}

TEST(ParameterDrawsTest, OfNormResponseAreThoseOfThePage) {
  const AnalysisResult response = Analyzed({NormResponseOptions{0, 1, 4}, {}, {}, 3});
  ExpectRow("random-streams.md", "`norm_response`, mean 0, deviation 1",
            FirstFour(ArrayIn(response, "input"), 10));
}

TEST(ParameterDrawsTest, OfALandscapeAreNumberedAxisByAxis) {
  const AnalysisSubject subject = ModelM();
  LossLandscapeOptions options;
  options.direction = Direction::kRaw;
  options.dims = 2;
  options.directions = 2;
  options.points = 2;
  const at::Tensor norms = ArrayIn(Analyzed({options, {subject}, {}, 3}), "norms");
  const ParameterLayout layout = MakeLayout(subject.config.model);
  for (int64_t number = 0; number < 4; ++number) {
    const at::Tensor drawn =
        NormalVector(ContextOfSeed(3), layout, absl::StrCat("loss_landscape/", number));
    EXPECT_NEAR(norms.view(-1)[number].item<double>(), drawn.norm().item<double>(), 1e-12)
        << number;
  }
}

}  // namespace
}  // namespace ablate::engine
