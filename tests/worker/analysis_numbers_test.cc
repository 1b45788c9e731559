// Compares the forms of names in analysis_options.proto with the numbers that the engine makes.
#include "server/experiment/analysis_numbers.h"

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "tests/worker/made_numbers.h"

namespace ablate::spec {
namespace {

TEST(AnalysisNumbersTest, EachNumberHasOneFormAndEachFormIsMade) {
  const auto made = engine::MadeNumbers();
  const auto* kinds = v1::AnalysisKind::descriptor();
  for (int i = 0; i < kinds->field_count(); ++i) {
    SCOPED_TRACE(kinds->field(i)->name());
    v1::AnalysisKind analysis;
    analysis.GetReflection()->MutableMessage(&analysis, kinds->field(i));
    ASSERT_EQ(made.count(kinds->field(i)->name()), 1u);
    const engine::MadeNames& names = made.at(kinds->field(i)->name());
    std::map<std::string, int> uses;
    for (const std::string& form : NumberForms(analysis)) {
      EXPECT_EQ(uses.count(form), 0u) << form << " stands there twice";
      uses[form] = 0;
    }
    for (const std::string& number : names.numbers) {
      int forms = 0;
      for (auto& [form, count] : uses) {
        if (!HasNumberForm(number, form)) continue;
        ++forms;
        ++count;
      }
      EXPECT_EQ(forms, 1) << number;
      const bool has_array = names.by_sequence.count(number) > 0;
      const bool needs_array = names.defined.count(number) > 0 && !has_array;
      EXPECT_FALSE(IsStoredBySequence(analysis, number) ? needs_array : has_array) << number;
    }
    for (const auto& [form, count] : uses) EXPECT_GT(count, 0) << form << " is never made";
  }
}

}  // namespace
}  // namespace ablate::spec
