// Tests entries of an experiment's `analyses` as requests; problems are in bad_input.
#include "server/experiment/experiment_analyses.h"

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "server/experiment/analysis.h"
#include "tests/experiment/specs.h"

namespace ablate::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ExperimentAnalysesTest, KnowEveryKindByItsOwnOptions) {
  const auto* kinds = v1::AnalysisKind::descriptor();
  for (int i = 0; i < kinds->field_count(); ++i) {
    const auto* entry = v1::AnalysisSpec::descriptor()->FindFieldByName(kinds->field(i)->name());
    ASSERT_NE(entry, nullptr) << kinds->field(i)->name();
    EXPECT_EQ(entry->message_type(), kinds->field(i)->message_type()) << entry->name();
    EXPECT_NE(entry->containing_oneof(), nullptr) << entry->name();
  }
  EXPECT_EQ(v1::AnalysisSpec::descriptor()->oneof_decl(0)->field_count(), kinds->field_count() + 1)
      << "samples and the kinds";
}

TEST(ExperimentAnalysesTest, AreRequestsWithTheirDefaults) {
  const std::vector<AskedAnalysis> asked = AskedAnalyses(FromText(R"(
    analyses { spectrum { site: "embedding" } }
    analyses { samples {} }
    analyses { name: "sharpness" hessian {} at: [0, -1] on: all seed: 3 inputs { tokens: 7 } }
    analyses { norm_response {} })"));
  ASSERT_THAT(asked, SizeIs(3));
  EXPECT_EQ(asked[0].label, "spectrum");
  EXPECT_EQ(asked[0].analysis.spectrum().site(), "embedding");
  EXPECT_THAT(asked[0].at, ElementsAre(-1));
  EXPECT_FALSE(asked[0].all);
  EXPECT_EQ(asked[1].label, "sharpness");
  EXPECT_TRUE(asked[1].analysis.has_hessian());
  EXPECT_THAT(asked[1].at, ElementsAre(0, -1));
  EXPECT_TRUE(asked[1].all);
  EXPECT_EQ(asked[1].seed, 3u);
  EXPECT_EQ(asked[1].inputs.tokens(), 7u);
  EXPECT_EQ(asked[2].label, "norm_response");
  EXPECT_THAT(asked[2].at, IsEmpty()) << "it is of no run";
}

TEST(ExperimentAnalysesTest, AreOneOfAllStepsWhereTheKindReadsThemTogether) {
  const std::vector<AskedAnalysis> asked =
      AskedAnalyses(FromText("analyses { trajectory {} } analyses { trajectory {} at: [0, 5] }"));
  ASSERT_THAT(asked, SizeIs(2));
  EXPECT_TRUE(asked[0].together);
  EXPECT_THAT(asked[0].at, IsEmpty()) << "every checkpoint";
  EXPECT_EQ(asked[0].analyses_of_a_run(), 1u);
  EXPECT_THAT(asked[1].at, ElementsAre(0, 5));
  const auto problem = [](const std::string& entry, const std::vector<int32_t>& checkpoints) {
    v1::ExperimentSpec spec = SmallSpec();
    spec.MergeFrom(FromText("analyses { trajectory {} " + entry + " }"));
    spec.mutable_base()->mutable_training()->set_steps(100);
    for (const int32_t step : checkpoints) {
      spec.mutable_base()->mutable_training()->add_checkpoints(step);
    }
    const std::vector<Problem> problems = Resolve(spec, {}, TestSurroundings()).problems;
    return problems.empty() ? "" : problems[0].message;
  };
  EXPECT_EQ(problem("", {0, 2, -1}), "");
  EXPECT_EQ(problem("at: [-1, 2, 0]", {0, 2, 4}), "");
  EXPECT_EQ(problem("", {2, -1}),
            "analyses[0].at: trajectory reads 2 checkpoints of a run; expected 3 to 64. Set "
            "training.checkpoints");
  EXPECT_EQ(problem("at: [0, -1, 100]", {0, -1}),
            "analyses[0].at: step 100 is also the last one (-1); expected each step once");
  EXPECT_EQ(
      problem("} analyses { name: 'late' trajectory { points: 21 } at: [0, 2, -1]", {0, 2, -1}),
      "analyses[1].trajectory: trajectory has the same options, inputs and seed; expected "
      "different ones, or a single entry");
  EXPECT_EQ(problem("} analyses { name: 'late' trajectory { points: 5 }", {0, 2, -1}), "");
  std::vector<int32_t> many;
  for (int32_t step = 0; step < 65; ++step) many.push_back(step);
  EXPECT_THAT(problem("", many), testing::HasSubstr("trajectory reads 65 checkpoints of a run"));
}

TEST(ExperimentAnalysesTest, AreCheckedAgainstTheModelsBesideWhatIsWrongElsewhere) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.MergeFrom(FromText("analyses { spectrum {} at: [7] } report { primary: 'eval/los' }"));
  EXPECT_THAT(Messages(Resolve(spec, {}, TestSurroundings())),
              ElementsAre(::testing::StartsWith("report.primary: \"eval/los\" isn't a metric"),
                          ::testing::StartsWith("analyses[0].at[0]: step 7 has no checkpoint")));
}

TEST(ExperimentAnalysesTest, MayBePrimary) {
  const v1::ExperimentSpec spec = FromText("analyses { name: 'ranks' spectrum {} }");
  EXPECT_TRUE(EntryWithNumbers(spec, "ranks").has_value());
  EXPECT_FALSE(EntryWithNumbers(spec, "spectrum").has_value());
  EXPECT_FALSE(EntryWithNumbers(spec, "").has_value());
  EXPECT_FALSE(EntryWithNumbers(FromText("analyses { norm_response {} }"), "norm_response"))
      << "it is of no run";
  EXPECT_FALSE(EntryWithNumbers(FromText("analyses { capture {} }"), "capture")) << "it has none";
  v1::ExperimentSpec small = SmallSpec();
  small.MergeFrom(spec);
  small.mutable_report()->set_primary("ranks/stable_rank");
  EXPECT_THAT(Resolved(small).problems, IsEmpty());
}

TEST(ExperimentAnalysesTest, TakeMoreWithMoreTokens) {
  const auto cost = [](const std::string& tokens) {
    v1::ExperimentSpec spec = SmallSpec();
    spec.MergeFrom(FromText("analyses { spectrum {} inputs { tokens: " + tokens + " } }"));
    return Resolved(spec).analyses.at(0);
  };
  const auto time = [&](const std::string& tokens) {
    const EntryCost of = cost(tokens);
    EXPECT_EQ(of.times.size(), 1u);
    return of.times.begin()->second.mean;
  };
  EXPECT_GT(time("100"), 0);
  EXPECT_DOUBLE_EQ(time("20000") - time("10000"), time("30000") - time("20000"));
  EXPECT_GT(time("20000"), time("10000"));
  EXPECT_GT(cost("100").array_bytes, 0u);
}

TEST(ExperimentAnalysesTest, TakeNoMoreThanTheTextsOfTaggedSentences) {
  v1::ExperimentSpec spec = TextSpec();
  spec.MergeFrom(FromText("analyses { spectrum {} inputs { dataset: 'tags' documents: 300 } }"));
  const auto cost = [&spec](uint64_t text_bytes) {
    Surroundings surroundings = TestSurroundings();
    const auto others = surroundings.find_dataset;
    surroundings.find_dataset = [=](absl::string_view name, bool as_text) {
      if (name != "tags") return others(name, as_text);
      return absl::StatusOr<DatasetFacts>(DatasetFacts{{300, 0, 0, text_bytes, 0, {}},
                                                       "tags-000000",
                                                       std::string(63, '0') + "9",
                                                       DatasetKind::kTagged});
    };
    return Resolve(spec, {}, surroundings).analyses.at(0).times.begin()->second.mean;
  };
  EXPECT_LT(cost(1'000), cost(2'000) * .9);
  EXPECT_EQ(cost(1'000'000), cost(2'000'000)) << "the contexts of 300 sequences";
}

TEST(ExperimentAnalysesTest, CountTheMeanOfAllSettings) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.MergeFrom(FromText(R"(
    axes { name: "depth" field: "model.layers" values { number_value: 1 }
           values { number_value: 9 } }
    analyses { spectrum {} })"));
  const auto time = [](const v1::ExperimentSpec& of) {
    return Resolved(of).analyses.at(0).times.begin()->second;
  };
  const GroupTime both = time(spec);
  spec.mutable_axes()->Mutable(spec.axes_size() - 1)->mutable_values()->DeleteSubrange(1, 1);
  const GroupTime shallow = time(spec);
  EXPECT_DOUBLE_EQ(both.mean, (shallow.largest + both.largest) / 2);
  EXPECT_GT(both.largest, shallow.largest);
}

TEST(ExperimentAnalysesTest, AreNotMadeOfModelsThatHaveNoUseForThem) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.MergeFrom(FromText(R"(
    axes {
      name: "norm"
      settings { label: "pre" }
      settings { label: "none" set { key: "model.norm" value { struct_value {
        fields { key: "placement" value { string_value: "none" } }
        fields { key: "final" value { bool_value: false } } } } } }
    }
    analyses { norm_statistics {} })"));
  const Resolution resolution = Resolved(spec);
  EXPECT_THAT(resolution.problems, IsEmpty());
  EXPECT_THAT(resolution.notes,
              testing::Contains("norm_statistics is not made of 1 of 2 settings: norm_statistics: "
                                "the model has no norm; expected a model with one (of setting "
                                "norm=none)"));
}

TEST(ExperimentAnalysesTest, AreNoPartOfARun) {
  v1::ExperimentSpec spec = SmallSpec();
  const std::string without = Resolved(spec).cells.at(0).fingerprint;
  spec.MergeFrom(FromText("analyses { spectrum {} }"));
  EXPECT_EQ(Resolved(spec).cells.at(0).fingerprint, without);
}

}  // namespace
}  // namespace ablate::spec
