// Tests the names of analyses' numbers. That the engine uses them is tested with the worker.
#include "server/experiment/analysis_numbers.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"

namespace ablate::spec {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(HasNumberFormTest, ALetterIsAWholeNumberAndAWordANameWithoutASlash) {
  EXPECT_TRUE(HasNumberForm("range", "range"));
  EXPECT_FALSE(HasNumberForm("ranges", "range"));
  EXPECT_FALSE(HasNumberForm("rang", "range"));
  EXPECT_TRUE(HasNumberForm("entropy/block.12.head.0", "entropy/block.{i}.head.{h}"));
  EXPECT_FALSE(HasNumberForm("entropy/block.x.head.0", "entropy/block.{i}.head.{h}"));
  EXPECT_FALSE(HasNumberForm("entropy/block..head.0", "entropy/block.{i}.head.{h}"));
  EXPECT_FALSE(HasNumberForm("entropy/block.1", "entropy/block.{i}.head.{h}"));
  EXPECT_TRUE(HasNumberForm("r_mean/block.0.attention_norm", "r_mean/{norm}"));
  EXPECT_FALSE(HasNumberForm("r_mean/", "r_mean/{norm}"));
  EXPECT_FALSE(HasNumberForm("r_mean/a/b", "r_mean/{norm}"));
  EXPECT_TRUE(HasNumberForm("input_rms/final_norm/batch.8", "input_rms/{norm}/batch.{b}"));
}

TEST(NumberFormsTest, AreOfEveryKindButCapture) {
  const auto* kinds = v1::AnalysisKind::descriptor();
  for (int i = 0; i < kinds->field_count(); ++i) {
    v1::AnalysisKind analysis;
    analysis.GetReflection()->MutableMessage(&analysis, kinds->field(i));
    EXPECT_EQ(NumberForms(analysis).empty(), analysis.has_capture()) << kinds->field(i)->name();
  }
  EXPECT_THAT(NumberForms({}), IsEmpty());
}

TEST(HeadlineFormsTest, AreFormsOfTheKind) {
  const auto* kinds = v1::AnalysisKind::descriptor();
  for (int i = 0; i < kinds->field_count(); ++i) {
    v1::AnalysisKind analysis;
    analysis.GetReflection()->MutableMessage(&analysis, kinds->field(i));
    const std::vector<std::string> headline = HeadlineForms(analysis);
    const std::vector<std::string> forms = NumberForms(analysis);
    for (const std::string& name : headline) {
      const auto fits = [&name](const std::string& form) {
        return form == name || HasNumberForm(name, form);
      };
      EXPECT_TRUE(std::any_of(forms.begin(), forms.end(), fits)) << kinds->field(i)->name() << name;
    }
    // Kinds of which a figure shows all numbers alike.
    const bool none = analysis.has_capture() || analysis.has_cka() || analysis.has_weights() ||
                      analysis.has_norm_response();
    EXPECT_EQ(headline.empty(), none) << kinds->field(i)->name();
  }
  EXPECT_THAT(HeadlineForms({}), IsEmpty());
}

TEST(IsStoredBySequenceTest, IsOfTheKind) {
  v1::AnalysisKind predictions, robustness;
  predictions.mutable_predictions();
  robustness.mutable_robustness();
  EXPECT_TRUE(IsStoredBySequence(predictions, "loss"));
  EXPECT_FALSE(IsStoredBySequence(predictions, "entropy"));
  EXPECT_TRUE(IsStoredBySequence(robustness, "fgsm@0.1/increase"));
  EXPECT_FALSE(IsStoredBySequence(robustness, "accuracy"));
}

TEST(NumberComplaintTest, SaysWhatTheKindHas) {
  v1::AnalysisKind spectrum;
  spectrum.mutable_spectrum();
  EXPECT_EQ(NumberComplaint(spectrum, "ranks", "uncentred_stable_rank"), std::nullopt);
  const auto complaint = NumberComplaint(spectrum, "ranks", "stabel_rank");
  ASSERT_TRUE(complaint.has_value());
  EXPECT_EQ(complaint->first,
            "\"ranks/stabel_rank\" isn't a number of spectrum (did you mean ranks/stable_rank?)");
  EXPECT_THAT(complaint->second, HasSubstr("ranks/ followed by participation_ratio, "));
  EXPECT_THAT(NumberComplaint(spectrum, "ranks", "")->first, Not(HasSubstr("/")));
}

}  // namespace
}  // namespace ablate::spec
