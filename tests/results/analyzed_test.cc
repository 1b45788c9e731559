// Tests stored analyses that are drawn: runs and steps, trust in arrays, and errors without data.
#include "server/results/analyzed.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/engine/analysis.h"
#include "server/lookup/cancelled.h"
#include "server/results/families.h"
#include "server/results/figures.h"
#include "tests/results/stored_grid.h"
#include "tests/test_folder.h"

namespace ablate::results {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

engine::AnalysisArray Array(const std::string& name, const std::vector<std::string>& axes,
                            const std::vector<int64_t>& shape, const std::vector<double>& values) {
  engine::AnalysisArray array{name, axes, shape, TensorType::kF64, {}};
  array.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  return array;
}

class LabelledResultsTest : public ::testing::Test {
 protected:
  void Train() {
    for (const char* cell : {"pre-s1", "pre-s2", "post-s1"}) {
      grid_.Finish(cell, {{"eval/loss", {{10, 2}}}});
    }
    grid_.Finish("post-s2", {{"eval/loss", {{10, 9}}}}, true);
  }

  // Stores an analysis of a cell with these options, numbers and arrays. `told` are the arrays that
  // the result declares.
  void Analyze(const std::string& cell, const std::string& label, const std::string& kind,
               const std::map<std::string, double>& numbers,
               const std::vector<engine::AnalysisArray>& arrays,
               const std::vector<engine::AnalysisArray>& told) {
    v1::Analysis asked, result;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("analysis { ", kind, " } inputs { tokens: 2000 }"), &asked));
    for (const auto& [name, value] : numbers) (*result.mutable_numbers())[name].set_value(value);
    for (const engine::AnalysisArray& array : told) {
      v1::AnalysisArrayInfo* info = result.add_arrays();
      info->set_name(array.name);
      for (const std::string& axis : array.axes) info->add_axes(axis);
      for (const int64_t size : array.shape) info->add_shape(size);
    }
    grid_.Analyze(cell, label, result.SerializeAsString(), asked.SerializeAsString(),
                  arrays.empty() ? "" : *engine::WriteArrays(arrays));
  }
  void Analyze(const std::string& cell, const std::string& label, const std::string& kind,
               const std::map<std::string, double>& numbers,
               const std::vector<engine::AnalysisArray>& arrays) {
    Analyze(cell, label, kind, numbers, arrays, arrays);
  }

  void Landscape(const std::string& cell, const std::string& label, double ends) {
    Analyze(cell, label, "loss_landscape { direction: filter dims: 1 }", {{"loss", 2}},
            {Array("losses", {"direction", "alpha"}, {1, 3}, {ends, 2, ends}),
             Array("alphas", {"alpha"}, {3}, {-1, 0, 1})});
  }

  ComparedGrid Compared(const std::string& key = "") {
    v1::CompareRequest request;
    request.set_key(key);
    request.set_experiment(absl::StrCat("experiments/", grid_.experiment()));
    auto compared =
        CompareGrid({grid_.store(), storage::kServer}, request, {kNever, 0}, AnalysisNumbers::kAll);
    EXPECT_TRUE(compared.ok()) << compared.status();
    return *std::move(compared);
  }

  // Compares parts of the experiment.
  ComparedGrid ComparedParts(const std::vector<std::string>& parts) {
    v1::CompareRequest request;
    for (const std::string& part : parts) {
      const std::string name = absl::StrCat("experiments/", grid_.experiment(), "/", part);
      part == parts[0] ? request.set_experiment(name) : request.add_others(name);
    }
    auto compared =
        CompareGrid({grid_.store(), storage::kServer}, request, {kNever, 0}, AnalysisNumbers::kAll);
    EXPECT_TRUE(compared.ok()) << compared.status();
    return *std::move(compared);
  }

  absl::StatusOr<figure::Analyzed> Read(const ComparedGrid& compared, const std::string& kind,
                                        const std::string& label) {
    const auto results = LabelledResults::Load(grid_.store(), grid_.experiment());
    if (!results.ok()) return results.status();
    return results->Read(compared, *figure::FindKind(kind), label, std::nullopt, kNever);
  }

  absl::StatusOr<figure::Drawing> Draw(const std::string& kind, const std::string& key,
                                       std::optional<uint32_t> step = std::nullopt) {
    FigureOptions options;
    options.key = key;
    options.step = step;
    return DrawFigure(grid_.store(), Compared(), *figure::FindKind(kind), options, kNever);
  }

  std::string Error(const std::string& kind, const std::string& key,
                    std::optional<uint32_t> step = std::nullopt) {
    return std::string(Draw(kind, key, step).status().message());
  }

  const TestFolder folder_;
  StoredGrid grid_{absl::StrCat(SmallGrid(2), kPlacementAxis), folder_.path()};
};

TEST_F(LabelledResultsTest, AreReadOfConvergedRuns) {
  Train();
  Landscape("pre-s1", "sharp", 3);
  Landscape("pre-s2", "sharp", 5);
  Landscape("post-s2", "sharp", 99);
  const auto analyzed = Read(Compared(), "landscape", "sharp");
  ASSERT_TRUE(analyzed.ok()) << analyzed.status();
  ASSERT_THAT(analyzed->settings, SizeIs(2));
  ASSERT_THAT(analyzed->settings[0].seeds, SizeIs(2));
  const figure::AnalyzedSeed& seed = analyzed->settings[0].seeds[1];
  EXPECT_EQ(seed.seed, 2u);
  EXPECT_EQ(seed.step, 10u);
  EXPECT_EQ(seed.number, 2);
  EXPECT_THAT(seed.shape, ElementsAre(1, 3));
  EXPECT_THAT(seed.values, ElementsAre(5, 2, 5));
  EXPECT_THAT(seed.places, ElementsAre(-1, 0, 1));
  EXPECT_THAT(analyzed->settings[1].seeds, IsEmpty());
  EXPECT_EQ(analyzed->settings[1].converged, 1u);
  EXPECT_EQ(analyzed->settings[1].diverged, 1u);
  EXPECT_EQ(figure::OptionOf(*analyzed, "direction"), "filter");
  EXPECT_EQ(analyzed->inputs, "at most 2,000 held-out tokens");
  EXPECT_THAT(Draw("landscape", "sharp", 10)->csv, HasSubstr("sharp,pre,,,1,2,"));
}

TEST_F(LabelledResultsTest, AreReadOfRunsWithoutTheComparedNumber) {
  Train();
  Landscape("pre-s1", "sharp", 3);
  Landscape("pre-s2", "sharp", 5);
  Analyze("pre-s2", "spectrum", "spectrum {}", {{"stable_rank", 4}}, {});
  const ComparedGrid compared = Compared("spectrum/stable_rank");
  ASSERT_THAT(compared.comparison.rows[0].runs, SizeIs(1));
  const auto analyzed = Read(compared, "landscape", "sharp");
  ASSERT_TRUE(analyzed.ok()) << analyzed.status();
  ASSERT_THAT(analyzed->settings[0].seeds, SizeIs(2));
  EXPECT_EQ(analyzed->settings[0].seeds[0].seed, 1u);
  EXPECT_EQ(analyzed->settings[0].converged, 2u);
}

TEST_F(LabelledResultsTest, AreTheLowestSeedsWhereOneIsDrawn) {
  Train();
  for (const char* cell : {"pre-s1", "pre-s2"}) {
    Analyze(cell, "cka", "cka {}", {},
            {Array("cka", {"representation", "other"}, {2, 2}, {1, .5, .5, 1})});
  }
  const auto drawing = Draw("matrix", "");
  ASSERT_TRUE(drawing.ok()) << drawing.status();
  EXPECT_THAT(drawing->csv, AllOf(HasSubstr("cka,pre,10,1,,embedding,block.0.output,0.5\n"),
                                  Not(HasSubstr("cka,pre,10,2,"))));
}

TEST_F(LabelledResultsTest, HaveTheArraysThatAreReadBeside) {
  Train();
  const auto arrays = [](const std::string& way) {
    return std::vector<engine::AnalysisArray>{
        Array("losses", {"alpha", "beta"}, {2, 2}, {1, 2, 3, 4}),
        Array("alphas", {"alpha"}, {2}, {0, 1}),
        Array("betas", {"beta"}, {2}, {5, 6}),
        Array(way, {"subject", "axis"}, {1, 2}, {7, 8}),
        Array("way_losses", {"subject"}, {1}, {9}),
        Array("explained_shares", {"axis"}, {2}, {.5, .25})};
  };
  Analyze("pre-s1", "way", "trajectory {}", {}, arrays("way"));
  const auto analyzed = Read(Compared(), "trajectory", "way");
  ASSERT_TRUE(analyzed.ok()) << analyzed.status();
  const figure::AnalyzedSeed& seed = analyzed->settings[0].seeds[0];
  EXPECT_THAT(seed.places, ElementsAre(5, 6));
  EXPECT_THAT(seed.beside.at("way"), ElementsAre(7, 8));
  EXPECT_THAT(seed.beside.at("explained_shares"), ElementsAre(.5, .25));
  Analyze("pre-s2", "lost", "trajectory { points: 3 }", {}, arrays("lost"));
  EXPECT_THAT(Error("trajectory", "lost"), HasSubstr("there is no way"));
}

TEST_F(LabelledResultsTest, MayHaveWholeNumbersBeside) {
  Train();
  engine::AnalysisArray targets{"bin_targets", {"bin"}, {2}, TensorType::kI64, {}};
  const int64_t counts[] = {30, 10};
  targets.bytes.assign(reinterpret_cast<const char*>(counts), sizeof(counts));
  Analyze("pre-s1", "predictions", "predictions {}", {{"calibration_error", .25}},
          {Array("bin_accuracy", {"bin"}, {2}, {.5, .75}),
           Array("bin_confidence", {"bin"}, {2}, {.25, 1}), targets});
  const auto drawing = Draw("reliability", "");
  ASSERT_TRUE(drawing.ok()) << drawing.status();
  EXPECT_THAT(drawing->csv, AllOf(HasSubstr("predictions,pre,10,1,0,0.25,0.5,30\n"),
                                  HasSubstr("predictions,pre,10,1,1,1,0.75,10\n")));
}

TEST_F(LabelledResultsTest, AreDrawnOfPartsOfTheExperiment) {
  Train();
  for (const char* cell : {"pre-s1", "pre-s2", "post-s1"}) Landscape(cell, "sharp", 3);
  const figure::Kind& kind = *figure::FindKind("landscape");
  const auto csv_of = [&](const std::vector<std::string>& parts) {
    const auto drawing = DrawFigure(grid_.store(), ComparedParts(parts), kind, {}, kNever);
    EXPECT_TRUE(drawing.ok()) << drawing.status();
    return drawing->csv;
  };
  EXPECT_THAT(csv_of({"post"}), AllOf(HasSubstr("sharp,post,"), Not(HasSubstr("sharp,pre"))));
  EXPECT_THAT(csv_of({"pre-s2"}), AllOf(HasSubstr("sharp,pre-s2,"), Not(HasSubstr("sharp,post"))));
  EXPECT_THAT(csv_of({"post", "pre"}), AllOf(HasSubstr("sharp,post,"), HasSubstr("sharp,pre,")));
}

TEST_F(LabelledResultsTest, AreMissingInPartsWithoutThem) {
  Train();
  Landscape("pre-s1", "sharp", 3);
  Analyze("pre-s1", "attention", "attention {}", {}, {});
  const auto error = [&](const std::string& kind, const std::string& key) {
    FigureOptions options;
    options.key = key;
    return std::string(
        DrawFigure(grid_.store(), ComparedParts({"post"}), *figure::FindKind(kind), options, kNever)
            .status()
            .message());
  };
  EXPECT_THAT(error("landscape", "sharp"),
              HasSubstr("the analysis sharp doesn't exist for these runs; expected converged"));
  EXPECT_THAT(error("matrix", "attention"),
              HasSubstr(absl::StrCat("analyze attention ", grid_.experiment(), "/post-s1 ")));
}

TEST_F(LabelledResultsTest, AreDrawnOfOneExperiment) {
  Train();
  Landscape("pre-s1", "sharp", 3);
  const std::string first = grid_.experiment();
  grid_.Submit(absl::StrCat(SmallGrid(1), kPlacementAxis));
  v1::CompareRequest request;
  request.set_experiment(absl::StrCat("experiments/", first, "/pre"));
  request.add_others(absl::StrCat("experiments/", grid_.experiment(), "/post"));
  const auto compared =
      CompareGrid({grid_.store(), storage::kServer}, request, {kNever, 0}, AnalysisNumbers::kAll);
  ASSERT_TRUE(compared.ok()) << compared.status();
  for (const char* kind : {"landscape", "depth", "levels"}) {
    EXPECT_THAT(DrawFigure(grid_.store(), *compared, *figure::FindKind(kind), {}, kNever)
                    .status()
                    .message(),
                HasSubstr("draws one experiment; expected none, or other parts of that"));
  }
}

TEST_F(LabelledResultsTest, HaveTheArrayThatTheKeyNames) {
  Train();
  Analyze("pre-s1", "maps", "attention { maps: model maps: heads }", {},
          {Array("model_map", {"query", "key"}, {1, 1}, {1}),
           Array("head_maps", {"block", "head", "query", "key"}, {1, 2, 1, 1}, {1, .5})});
  EXPECT_THAT(Draw("matrix", "maps")->csv, HasSubstr("maps,pre,10,1,,0,0,1\n"));
  EXPECT_THAT(Draw("matrix", "maps/head_maps")->csv,
              HasSubstr("maps/head_maps,pre,10,1,block.0.head.1,0,0,0.5\n"));
  EXPECT_THAT(Error("matrix", "maps/layer_maps"),
              HasSubstr("key: the figure can't draw \"layer_maps\" of \"maps\"; expected "
                        "maps/model_map or maps/head_maps"));
}

TEST_F(LabelledResultsTest, HaveTheTextOfTokensIfThereIsAny) {
  Train();
  engine::AnalysisArray text{"token_text", {"byte"}, {3}, TensorType::kU8, "a\xC3\xA9"};
  engine::AnalysisArray ends{"token_ends", {"token"}, {2}, TensorType::kI64, {}};
  const int64_t places[] = {1, 3};
  ends.bytes.assign(reinterpret_cast<const char*>(places), sizeof(places));
  const auto map = Array("model_map", {"query", "key"}, {2, 2}, {1, 0, .5, .5});
  Analyze("pre-s1", "maps", "attention { maps: model }", {}, {map, text, ends});
  const auto maps = Read(Compared(), "matrix", "maps");
  ASSERT_TRUE(maps.ok()) << maps.status();
  const auto& beside = maps->settings[0].seeds[0].beside;
  EXPECT_THAT(beside.at("token_text"), ElementsAre('a', 0xC3, 0xA9));
  EXPECT_THAT(beside.at("token_ends"), ElementsAre(1, 3));
  Analyze("pre-s1", "old", "attention { maps: layers }", {}, {map});
  const auto old = Read(Compared(), "matrix", "old");
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_THAT(old->settings[0].seeds[0].beside, IsEmpty());
}

TEST_F(LabelledResultsTest, NameTheLabelsThatThereAre) {
  Train();
  EXPECT_THAT(
      Error("landscape", ""),
      AllOf(HasSubstr("key: "), HasSubstr("\"loss_landscape\""),
            HasSubstr(
                "expected an analysis of kind loss_landscape. Make one with `ablate analyze`")));
  Landscape("pre-s1", "sharp", 3);
  Analyze("pre-s1", "spec", "spectrum {}", {},
          {Array("singular_values", {"direction"}, {2}, {2, 1})});
  EXPECT_THAT(Error("landscape", "sharper"),
              AllOf(HasSubstr("key: "), HasSubstr("no run has an analysis"),
                    HasSubstr("; expected sharp")));
  EXPECT_THAT(
      Error("landscape", "spec"),
      HasSubstr("\"spec\" is an analysis of kind spectrum, which figure kind landscape can't"));
  EXPECT_THAT(Error("matrix", "spec"),
              HasSubstr("expected an analysis of kind cka, attention (with --prompt TEXT --set "
                        "'maps=[model]'), patch or remove. Make one"));
  EXPECT_THAT(Error("landscape", "sharp", 7), AllOf(HasSubstr("step: "), HasSubstr("10")));
}

TEST_F(LabelledResultsTest, SayWhichMapsAttentionNeeds) {
  Train();
  EXPECT_THAT(
      Error("matrix", ""),
      HasSubstr(
          "of kind cka, attention (with --prompt TEXT --set 'maps=[model]'), patch or remove"));
  Analyze("pre-s1", "attention", "attention {}", {{"entropy", .5}},
          {Array("entropy", {"block", "head"}, {1, 2}, {.5, .5})});
  for (const char* key : {"", "attention"}) {
    EXPECT_THAT(
        Error("matrix", key),
        HasSubstr(absl::StrCat("Make some with `ablate analyze attention ", grid_.experiment(),
                               "/pre-s1 --prompt TEXT --set 'maps=[model]' --label "
                               "attention-maps`")));
  }
}

TEST_F(LabelledResultsTest, SayWhichPromptsAMapOfPatchNeeds) {
  Train();
  Analyze("pre-s1", "presidual", "patch {}", {{"recovered/block.0", .5}},
          {Array("recovered", {"block"}, {1}, {.5})});
  EXPECT_THAT(Error("matrix", "presidual"),
              HasSubstr("\"presidual\" has no array that figure kind matrix draws: it has no map; "
                        "expected prompts of equal length, or part: head"));
}

TEST_F(LabelledResultsTest, AreDrawnUnderOtherLabelsIfTheKindsOwnIsNotThere) {
  Train();
  Landscape("pre-s1", "slice-source", 3);
  EXPECT_THAT(Draw("landscape", "")->csv, HasSubstr("slice-source,pre,,,1,1,"));
  Analyze("pre-s1", "slice-filter", "loss_landscape { direction: filter directions: 4 }",
          {{"loss", 2}},
          {Array("losses", {"direction", "alpha"}, {1, 3}, {4, 2, 4}),
           Array("alphas", {"alpha"}, {3}, {-1, 0, 1})});
  const auto both = Draw("landscape", "");
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_THAT(both->csv,
              AllOf(HasSubstr("slice-filter,pre,,,1,2,"), HasSubstr("slice-source,pre,,,1,1,")));
  Landscape("pre-s1", "loss_landscape", 5);
  EXPECT_THAT(Draw("landscape", "")->csv, Not(HasSubstr("slice")));
}

TEST_F(LabelledResultsTest, SayWhichRunsHaveThemIfNoneOfTheseIsDrawn) {
  Train();
  Landscape("post-s2", "sharp", 3);
  constexpr char kWhy[] =
      "the analysis sharp exists for post-s2 only; expected converged runs. Run the analysis for "
      "these";
  EXPECT_THAT(Error("landscape", "sharp"), HasSubstr(kWhy));
  const auto figures = ReportFigures(grid_.store(), Compared(), "e1-", kNever);
  ASSERT_TRUE(figures.ok()) << figures.status();
  std::vector<std::string> missing;
  for (const html::Figure& figure : *figures) {
    if (figure.name.rfind("landscape", 0) == 0) missing.push_back(figure.missing);
  }
  EXPECT_THAT(missing, ElementsAre(absl::StrCat("Not drawn: ", kWhy, ".")));
}

// A worker may write anything.
TEST_F(LabelledResultsTest, AreNotTrusted) {
  Train();
  const auto losses = Array("losses", {"direction", "alpha"}, {1, 3}, {3, 2, 3});
  const auto alphas = Array("alphas", {"alpha"}, {3}, {-1, 0, 1});
  engine::AnalysisArray whole = alphas;
  whole.name = "losses";
  whole.axes = losses.axes;
  whole.shape = {1, 3};
  whole.type = TensorType::kI64;
  const struct {
    std::string why;
    std::vector<engine::AnalysisArray> arrays;
  } cases[] = {
      {"there are none", {}},
      {"there is no losses", {alphas}},
      {"there is no alphas", {losses}},
      {"the axes of losses are not direction,alpha",
       {Array("losses", {"plane", "alpha", "beta"}, {1, 3, 1}, {3, 2, 3}), alphas}},
      {"the axes of losses are not direction,alpha",
       {Array("losses", {"direction", "alpha"}, {3}, {3, 2, 3}), alphas}},
      {"losses has no floating-point numbers", {whole, alphas}},
      {"losses is empty", {Array("losses", {"direction", "alpha"}, {0, 3}, {}), alphas}},
      {"alphas are not 3 ascending numbers", {losses, Array("alphas", {"alpha"}, {2}, {0, 1})}},
      {"alphas are not 3 ascending numbers",
       {losses, Array("alphas", {"alpha"}, {3}, {0, 1, std::nan("")})}},
      {"alphas are not 3 ascending numbers", {losses, Array("alphas", {"alpha"}, {3}, {0, 1, 1})}},
  };
  int i = 0;
  for (const auto& [why, arrays] : cases) {
    const std::string label = absl::StrCat("l", i++);
    Analyze("pre-s1", label, absl::StrCat("loss_landscape { directions: ", i, " }"), {}, arrays,
            {losses, alphas});
    const auto drawing = Draw("landscape", label);
    EXPECT_TRUE(absl::IsDataLoss(drawing.status())) << drawing.status();
    EXPECT_THAT(std::string(drawing.status().message()), HasSubstr(why));
  }
  const auto figures = ReportFigures(grid_.store(), Compared(), "e1-", kNever);
  ASSERT_TRUE(figures.ok()) << figures.status();
  size_t missing = 0;
  for (const html::Figure& figure : *figures) {
    if (figure.name.rfind("landscape", 0) != 0) continue;
    ++missing;
    EXPECT_THAT(figure.missing, HasSubstr("Not drawn: "));
    EXPECT_EQ(figure.caption, "");
  }
  EXPECT_EQ(missing, std::size(cases));
}

TEST_F(LabelledResultsTest, StandInReports) {
  Train();
  Landscape("pre-s1", "loss_landscape", 3);
  Analyze("pre-s1", "a_b", "loss_landscape { directions: 2 }", {{"loss", 2}},
          {Array("losses", {"direction", "alpha"}, {1, 2}, {3, 2}),
           Array("alphas", {"alpha"}, {2}, {-1, 0})});
  Analyze("pre-s1", "a-b", "loss_landscape { directions: 3 }", {{"loss", 2}},
          {Array("losses", {"direction", "alpha"}, {1, 2}, {3, 2}),
           Array("alphas", {"alpha"}, {2}, {-1, 0})});
  Analyze("pre-s1", "flow", "gradient_flow {}",
          {{"gradient/embedding", .1}, {"gradient/block.0", .5}}, {});
  Analyze("pre-s1", "attention", "attention {}", {{"entropy", .5}},
          {Array("entropy", {"block", "head"}, {1, 2}, {.5, .5})});
  const auto figures = ReportFigures(grid_.store(), Compared(), "e1-", kNever);
  ASSERT_TRUE(figures.ok()) << figures.status();
  std::vector<std::string> drawn;
  for (const html::Figure& figure : *figures) {
    if (figure.title.find(':') == std::string::npos) continue;
    EXPECT_EQ(figure.missing, "") << figure.name;
    drawn.push_back(absl::StrCat(figure.name, " ", figure.title));
  }
  EXPECT_THAT(
      drawn, ElementsAre("depth-flow-gradient Over depth: gradient norm (flow)",
                         "landscape-a-b Loss landscape: a-b", "landscape-a-b-2 Loss landscape: a_b",
                         "landscape Loss landscape: loss_landscape"));
}

TEST_F(LabelledResultsTest, HaveNumbersByBlockOverDepth) {
  Train();
  Analyze("pre-s1", "flow", "gradient_flow {}",
          {{"gradient/embedding", .1}, {"gradient/block.0", .5}, {"log_slope", 1}}, {});
  Analyze("pre-s1", "jacobian", "norm_jacobian {}", {{"r_mean/block.0.attention_norm", .25}}, {});
  const auto flow = Draw("depth", "flow/gradient");
  ASSERT_TRUE(flow.ok()) << flow.status();
  EXPECT_THAT(flow->csv, AllOf(HasSubstr("flow/gradient/embedding,pre,10,0,1,0.1,"),
                               HasSubstr("flow/gradient/block.0,pre,10,1,1,0.5,")));
  const auto jacobian = Draw("depth", "jacobian/r_mean/block.*.attention_norm");
  ASSERT_TRUE(jacobian.ok()) << jacobian.status();
  EXPECT_THAT(jacobian->csv, HasSubstr("jacobian/r_mean/block.0.attention_norm,pre,10,1,1,0.25,"));
  EXPECT_THAT(Error("depth", "flow/slope"),
              AllOf(HasSubstr("key: no converged run has metrics by block of \"flow/slope\""),
                    HasSubstr("expected flow/gradient")));
  EXPECT_THAT(Error("depth", "slope"),
              HasSubstr("flow/gradient and jacobian/r_mean/block.*.attention_norm"));
  const auto existing = Draw("depth", "");
  ASSERT_TRUE(existing.ok()) << existing.status();
  EXPECT_EQ(existing->csv, flow->csv) << "no run has the default family";
}

TEST_F(LabelledResultsTest, HaveNumbersByLevelOverLevels) {
  Train();
  const auto numbers = [](double steep) {
    return std::map<std::string, double>{{"loss", 2},
                                         {"replace_words@0.1/increase", steep * .1},
                                         {"replace_words@0.4/increase", steep * .4},
                                         {"fgsm@0.01/increase", steep},
                                         {"fgsm@0.01/loss", steep + 2}};
  };
  Analyze("pre-s1", "robustness", "robustness { fgsm: 0.01 }", numbers(1), {});
  Analyze("pre-s2", "robustness", "robustness { fgsm: 0.01 }", numbers(3), {});
  const auto words = Draw("levels", "");
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_THAT(words->csv, AllOf(HasSubstr("replace_words@0.4/increase,pre,10,0.4,,0.8,"),
                                HasSubstr("replace_words@0.1/increase,pre,10,0.1,1,0.1,")));
  const auto fgsm = Draw("levels", "robustness/fgsm@*/loss", 10);
  ASSERT_TRUE(fgsm.ok()) << fgsm.status();
  EXPECT_THAT(fgsm->csv, HasSubstr("robustness/fgsm@0.01/loss,pre,10,0.01,,4,"));
  EXPECT_THAT(Error("levels", "robustness/fgsm"),
              AllOf(HasSubstr("key: no converged run has metrics by level of \"robustness/fgsm\""),
                    HasSubstr("expected robustness/fgsm@*/increase, robustness/fgsm@*/loss and "
                              "robustness/replace_words@*/increase")));
  EXPECT_THAT(Error("levels", "robustness/fgsm@*/loss", 7),
              AllOf(HasSubstr("step: no converged run has robustness/fgsm@*/loss at step 7"),
                    HasSubstr("10")));
  const auto figures = ReportFigures(grid_.store(), Compared(), "e1-", kNever);
  ASSERT_TRUE(figures.ok()) << figures.status();
  std::vector<std::string> drawn;
  for (const html::Figure& figure : *figures) {
    if (figure.name.rfind("levels", 0) != 0) continue;
    EXPECT_EQ(figure.missing, "") << figure.name;
    drawn.push_back(figure.title);
  }
  EXPECT_THAT(drawn, ElementsAre("Over levels: increase of loss under fgsm (robustness)",
                                 "Over levels: increase of loss under replace_words (robustness)"));
}

TEST_F(LabelledResultsTest, SayWhatHasLevels) {
  Train();
  EXPECT_THAT(Error("levels", ""), HasSubstr("Compute it with `ablate analyze robustness`"));
  EXPECT_THAT(Error("levels", "robustness/fgsm@*/loss"),
              HasSubstr("expected LABEL/PERTURBATION@*/NUMBER of an analysis of kind robustness"));
}

}  // namespace
}  // namespace ablate::results
