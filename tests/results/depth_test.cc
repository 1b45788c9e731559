// Tests stored metrics by block: runs, steps, and errors without data.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/lookup/cancelled.h"
#include "server/results/families.h"
#include "server/results/figures.h"
#include "tests/results/stored_grid.h"

namespace ablate::results {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr char kDepthSpec[] = R"(
  name: "small"
  base { task { legacy_recall { keys: 20 draw: 4 } } model { layers: 1 width: 8 heads: 2 }
         training { steps: 20 batch: 2 } }
  axes { name: "size"
         settings { label: "narrow" }
         settings { label: "wide" set { key: "model.width" value { number_value: 16 } } } }
  seeds { count: 2 }
)";

using Curve = std::map<uint32_t, double>;

class ReadFamilyTest : public ::testing::Test {
 protected:
  // Finishes a run with metrics by block at these steps: block + step / 100.
  void Finish(const std::string& cell, uint32_t blocks, const std::vector<uint32_t>& steps,
              bool diverged = false) {
    StoredGrid::Curves curves = {{"eval/loss", {{20, 2}}}};
    for (const uint32_t step : steps) {
      curves["gradient/embedding"][step] = .5;
      curves["parameter_gradient/block.0"][step] = 7;
      for (uint32_t i = 0; i < blocks; ++i) {
        curves[absl::StrCat("gradient/block.", i)][step] = i + step / 100.0;
      }
    }
    grid_.Finish(cell, curves, diverged);
  }

  ComparedGrid Compared() {
    v1::CompareRequest request;
    request.set_experiment(absl::StrCat("experiments/", grid_.experiment()));
    auto compared =
        CompareGrid({grid_.store(), storage::kServer}, request, {kNever, 0}, AnalysisNumbers::kAll);
    EXPECT_TRUE(compared.ok()) << compared.status();
    return *std::move(compared);
  }

  absl::StatusOr<std::vector<figure::FamilySetting>> Read(std::optional<uint32_t> step,
                                                          const std::string& family = "gradient") {
    return ReadFamily(grid_.store(), Compared(), figure::Along::kBlocks, family, step, kNever);
  }

  StoredGrid grid_{kDepthSpec};
};

TEST_F(ReadFamilyTest, TakesTheLastStepThatAllSeedsOfASettingHave) {
  Finish("narrow-s0", 2, {0, 10, 20});
  Finish("narrow-s1", 2, {0, 10});
  Finish("wide-s0", 11, {0, 20});
  Finish("wide-s1", 11, {0, 20});
  const auto settings = Read(std::nullopt);
  ASSERT_TRUE(settings.ok()) << settings.status();
  ASSERT_THAT(*settings, SizeIs(2));
  EXPECT_EQ((*settings)[0].label, "narrow");
  EXPECT_THAT((*settings)[0].step, Optional(10u));
  ASSERT_THAT((*settings)[0].seeds, SizeIs(2));
  EXPECT_EQ((*settings)[0].seeds[1].seed, 1u);
  EXPECT_THAT((*settings)[0].seeds[1].values, ElementsAre(Pair(0, .5), Pair(1, .1), Pair(2, 1.1)));
  EXPECT_THAT((*settings)[1].step, Optional(20u));
  EXPECT_THAT((*settings)[1].seeds[0].values, SizeIs(12));
}

TEST_F(ReadFamilyTest, LeavesOutRunsWithoutPointsAtTheStepAndThoseThatDiverged) {
  Finish("narrow-s0", 2, {0, 10, 20});
  Finish("narrow-s1", 2, {0, 10});
  Finish("wide-s0", 2, {0, 20}, true);
  Finish("wide-s1", 2, {0});
  const auto settings = Read(20);
  ASSERT_TRUE(settings.ok()) << settings.status();
  ASSERT_THAT((*settings)[0].seeds, SizeIs(1));
  EXPECT_EQ((*settings)[0].seeds[0].seed, 0u);
  EXPECT_EQ((*settings)[0].converged, 2u);
  EXPECT_THAT((*settings)[1].seeds, IsEmpty());
  EXPECT_EQ((*settings)[1].diverged, 1u);
  EXPECT_EQ((*settings)[1].step, std::nullopt);
}

TEST_F(ReadFamilyTest, NamesTheStepsThereAre) {
  Finish("narrow-s0", 2, {0, 10, 20});
  const auto settings = Read(7);
  EXPECT_TRUE(absl::IsInvalidArgument(settings.status()));
  EXPECT_THAT(
      std::string(settings.status().message()),
      AllOf(HasSubstr("step"), HasSubstr("gradient/block.0 at step 7"), HasSubstr("0, 10, 20")));
}

TEST_F(ReadFamilyTest, HasNothingOfAFamilyThatNoRunHas) {
  Finish("narrow-s0", 2, {0, 10});
  for (const std::optional<uint32_t> step : {std::optional<uint32_t>(), std::optional(10u)}) {
    const auto settings = Read(step, "alignment");
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_THAT((*settings)[0].seeds, IsEmpty());
  }
}

TEST_F(ReadFamilyTest, StopsWhenNobodyWantsIt) {
  Finish("narrow-s0", 2, {0, 10});
  const auto settings = ReadFamily(grid_.store(), Compared(), figure::Along::kBlocks, "gradient",
                                   std::nullopt, [] { return true; });
  EXPECT_TRUE(absl::IsCancelled(settings.status()));
}

TEST_F(ReadFamilyTest, DrawsOnRequestAndInReports) {
  Finish("narrow-s0", 2, {0, 10, 20});
  Finish("wide-s0", 2, {0, 10});
  const ComparedGrid compared = Compared();
  FigureOptions options;
  options.step = 10;
  const auto drawing =
      DrawFigure(grid_.store(), compared, *figure::FindKind("depth"), options, kNever);
  ASSERT_TRUE(drawing.ok()) << drawing.status();
  EXPECT_THAT(drawing->csv, HasSubstr("gradient/block.1,wide,10,2,,1.1,"));
  options.key = "parameter_gradient";
  const auto parameters =
      DrawFigure(grid_.store(), compared, *figure::FindKind("depth"), options, kNever);
  ASSERT_TRUE(parameters.ok()) << parameters.status();
  EXPECT_THAT(parameters->csv, HasSubstr("parameter_gradient/block.0,wide,10,1,,7,"));
  const auto figures = ReportFigures(grid_.store(), compared, "e1-", kNever);
  ASSERT_TRUE(figures.ok()) << figures.status();
  size_t drawn = 0;
  for (const html::Figure& figure : *figures) {
    if (figure.name != "depth") continue;
    ++drawn;
    EXPECT_EQ(figure.missing, "");
    EXPECT_THAT(figure.csv, HasSubstr("gradient/block.1,narrow,20,2,,1.2,"));
  }
  EXPECT_EQ(drawn, 1u);
}

TEST_F(ReadFamilyTest, DrawsAFamilyThatExistsByDefault) {
  const auto drawn = [&](const std::string& kind) {
    const auto drawing = DrawFigure(grid_.store(), Compared(), *figure::FindKind(kind), {}, kNever);
    return drawing.ok() ? drawing->csv : std::string(drawing.status().message());
  };
  const StoredGrid::Curves loss = {{"eval/loss", {{20, 2}}}};
  grid_.Finish("narrow-s0", loss);
  EXPECT_THAT(drawn("depth"), HasSubstr("no converged run has points of gradient/block.0"));
  StoredGrid::Curves curves = loss;
  curves["alignment_ratio/block.0"] = curves["alignment/block.0"] = {{20, .5}};
  curves["noise/fgsm@0.1/loss"] = {{20, .25}};
  grid_.Finish("narrow-s1", curves);
  EXPECT_THAT(drawn("depth"), HasSubstr("alignment/block.0,narrow,20,1,,0.5,"));
  EXPECT_THAT(drawn("levels"), HasSubstr("noise/fgsm@0.1/loss,narrow,20,0.1,,0.25,"));
}

TEST_F(ReadFamilyTest, GivesEachFamilyOfAReportAFigure) {
  StoredGrid::Curves curves = {{"eval/loss", {{20, 2}}}};
  for (const char* key : {"gradient/block.0", "alignment/block.0", "alignment_ratio/block.0"}) {
    curves[key] = {{0, 1}, {20, .5}};
  }
  grid_.Finish("narrow-s0", curves);
  const auto figures = ReportFigures(grid_.store(), Compared(), "e1-", kNever);
  ASSERT_TRUE(figures.ok()) << figures.status();
  std::vector<std::string> names;
  for (const html::Figure& figure : *figures) {
    if (figure.name.rfind("depth", 0) == 0) names.push_back(figure.name);
  }
  EXPECT_THAT(names, ElementsAre("depth", "depth-alignment"));
}

}  // namespace
}  // namespace ablate::results
