// The table of fields: it has every field, its defaults hold.
#include "server/spec/fields.h"

#include "gmock/gmock.h"
#include "tests/spec/specs.h"

namespace ablate::spec {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

// A new field can't be forgotten: it is in the table or one of the few that are handled apart.
TEST(FieldRulesTest, CoverBaseSpec) {
  std::vector<std::string> known = {"task.documents.dataset", "training.betas",
                                    "training.checkpoints", "training.device"};
  for (const FieldRule& rule : FieldRules()) known.push_back(rule.path);
  EXPECT_THAT(known, UnorderedElementsAreArray(Leaves()));
}

TEST(FieldRulesTest, DefaultsAreInRange) {
  for (const v1::BaseSpec& base : FilledBases()) {
    for (const FieldRule& rule : FieldRules()) {
      if (!rule.field.is_number() || !rule.Applies(base)) continue;
      EXPECT_TRUE(rule.InRange(rule.default_value(base))) << rule.path;
      EXPECT_THAT(rule.allowed, Not(IsEmpty())) << rule.path;
    }
  }
}

}  // namespace
}  // namespace ablate::spec
