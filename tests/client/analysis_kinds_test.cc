// Tests the table of analysis kinds: a line and help for each option of each kind, and --set.
#include "client/analysis_kinds.h"

#include "ablate/v1/analysis.pb.h"
#include "gmock/gmock.h"

namespace ablate::client {
namespace {

using ::testing::HasSubstr;

const AnalysisKindRow& Row(const std::string& name) { return **FindAnalysisKind(name); }

TEST(AnalysisKindTableTest, HasARowForEveryKindInTheirOrder) {
  const auto* kinds = v1::AnalysisKind::descriptor()->FindOneofByName("kind");
  ASSERT_EQ(AnalysisKindTable().size(), static_cast<size_t>(kinds->field_count()));
  for (int i = 0; i < kinds->field_count(); ++i) {
    const AnalysisKindRow& row = AnalysisKindTable()[static_cast<size_t>(i)];
    EXPECT_EQ(row.name, kinds->field(i)->name());
    EXPECT_STRNE(row.help, "") << row.name;
    EXPECT_THAT(AnalysisKindsText(), HasSubstr(row.help));
  }
}

TEST(AnalysisKindTableTest, HasHelpForEveryOption) {
  for (const AnalysisKindRow& row : AnalysisKindTable()) {
    const auto* type = v1::AnalysisKind::descriptor()->FindFieldByName(row.name)->message_type();
    const std::string help = AnalysisOptionsText(row);
    for (int i = 0; i < type->field_count(); ++i) {
      const v1::OptionInfo& info = type->field(i)->options().GetExtension(v1::option);
      EXPECT_NE(info.help(), "") << row.name << "." << type->field(i)->name();
      EXPECT_THAT(help, HasSubstr(info.help()));
      EXPECT_THAT(help, HasSubstr("\n  " + type->field(i)->name() + " "));
    }
  }
}

TEST(AnalysisOptionsTextTest, SaysTypeRangeDefaultAndMeaning) {
  const std::string landscape = AnalysisOptionsText(Row("loss_landscape"));
  EXPECT_THAT(landscape, HasSubstr("\n  direction   raw, unit, filter or layer [filter]\n"
                                   "              Scaling of a direction: "));
  EXPECT_THAT(landscape, HasSubstr("\n  dims        whole number, 1 to 2 [1]\n"));
  EXPECT_THAT(landscape, HasSubstr("\n  radius      number, 1e-06 to 1,000\n"));
  EXPECT_THAT(AnalysisOptionsText(Row("norm_response")),
              HasSubstr("number, -1,000,000,000 to 1,000,000,000 [5]\n"));
  EXPECT_THAT(AnalysisOptionsText(Row("cka")), HasSubstr("list of text; at most 500\n"));
  EXPECT_THAT(AnalysisOptionsText(Row("weights")), HasSubstr("true or false [false]\n"));
  EXPECT_THAT(AnalysisOptionsText(Row("gradient_alignment")), HasSubstr("It has no options.\n"));
  EXPECT_THAT(AnalysisOptionsText(Row("gradient_alignment")),
              HasSubstr("LABEL/NUMBER:\n  cosine, cosine/{part}\n    Cosine of the run"));
  EXPECT_THAT(AnalysisOptionsText(Row("capture")), HasSubstr("It has no numbers, only arrays.\n"));
}

TEST(FindAnalysisKindTest, SaysWhichThereAre) {
  const std::string message(FindAnalysisKind("spectra").status().message());
  EXPECT_THAT(message,
              ::testing::StartsWith("KIND: \"spectra\" is unknown; expected spectrum, cka, "));
  EXPECT_THAT(message, ::testing::EndsWith("; did you mean spectrum?"));
}

TEST(MakeAnalysisKindTest, SetsOptionsOfTheKind) {
  const auto kind =
      MakeAnalysisKind(Row("cka"), {"sites=[block.0.output,embedding]", "estimator=biased"});
  ASSERT_TRUE(kind.ok()) << kind.status();
  EXPECT_THAT(kind->cka().sites(), ::testing::ElementsAre("block.0.output", "embedding"));
  EXPECT_EQ(kind->cka().estimator(), v1::CkaEstimator::biased);
  EXPECT_FALSE(kind->cka().has_block()) << "defaults are the server's";
}

TEST(MakeAnalysisKindTest, SetsTheKindWithoutOptions) {
  const auto kind = MakeAnalysisKind(Row("gradient_alignment"), {});
  ASSERT_TRUE(kind.ok());
  EXPECT_TRUE(kind->has_gradient_alignment());
  EXPECT_EQ(AnalysisKindName(*kind), "gradient_alignment");
  EXPECT_EQ(AnalysisKindName(v1::AnalysisKind()), "");
}

TEST(MakeAnalysisKindTest, SaysAllThatIsWrong) {
  const auto kind = MakeAnalysisKind(Row("hessian"), {"tops=1", "iterations=many"});
  const std::string message(kind.status().message());
  EXPECT_THAT(message, HasSubstr("--set iterations: "));
  EXPECT_THAT(message, HasSubstr("; --set tops: "));
  EXPECT_THAT(message, HasSubstr("did you mean top?"));
  EXPECT_EQ(MakeAnalysisKind(Row("gradient_flow"), {"signal"}).status().message(),
            "--set signal: write path=value, such as signal=rule");
}

}  // namespace
}  // namespace ablate::client
