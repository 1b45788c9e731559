// Tests the table of fields: it has every field, its defaults hold, and complete old stored runs.
#include "server/config/fields.h"

#include <cmath>

#include "gmock/gmock.h"
#include "server/config/engine_config.h"
#include "server/experiment/field_values.h"
#include "tests/experiment/specs.h"

namespace ablate::spec {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

// A new field can't be forgotten: it is in the table or one of the few special ones.
TEST(FieldRulesTest, CoverBaseSpec) {
  std::vector<std::string> known = {"training.betas", "training.checkpoints", "training.device",
                                    "evaluation.record", "model_from"};
  for (const absl::string_view dataset : kDatasetPaths) known.emplace_back(dataset);
  for (const absl::string_view tokenizer : kTokenizerPaths) known.emplace_back(tokenizer);
  for (const FieldRule& rule : FieldRules()) known.push_back(rule.path);
  EXPECT_THAT(known, UnorderedElementsAreArray(Leaves()));
}

TEST(FieldRulesTest, DefaultsAreInRange) {
  for (const v1::BaseSpec& base : FilledBases()) {
    for (const FieldRule& rule : FieldRules()) {
      if (!rule.field.is_number() || !rule.Applies(base) || !rule.HasDefault(base)) continue;
      EXPECT_TRUE(reflect::InRange(*rule.info, rule.Default(base))) << rule.path;
      EXPECT_TRUE(rule.info->has_min() || rule.info->has_above()) << rule.path;
    }
  }
}

// A misspelt default would be none.
TEST(FieldRulesTest, HaveTheDeclaredDefaults) {
  for (const FieldRule& rule : FieldRules()) {
    EXPECT_EQ(std::isnan(rule.constant), rule.info->default_().empty()) << rule.path;
    EXPECT_TRUE(rule.computed != nullptr || !std::isnan(rule.constant)) << rule.path;
    EXPECT_THAT(rule.info->help(), Not(IsEmpty())) << rule.path;
  }
  FieldValues filled = ValuesOf(FilledBases().front());
  for (const char* list : {"training.betas", "training.checkpoints"}) {
    const reflect::FieldPath field(v1::BaseSpec::descriptor(), list);
    EXPECT_EQ(filled[list], reflect::OptionOf(field.field()).default_());
  }
}

v1::RunSpec ReadBack(const v1::RunSpec& stored) {
  v1::RunSpec run;
  EXPECT_TRUE(ReadStoredRun(stored.SerializeAsString(), &run));
  return run;
}

// As if each field in turn had been added after the run was stored.
TEST(StoredRunTest, HasTheDefaultsOfFieldsThatCameLater) {
  std::set<std::string> cleared;
  for (const v1::BaseSpec& base : FilledBases()) {
    v1::RunSpec run;
    *run.mutable_spec() = base;
    run.set_seed(7);
    for (const FieldRule& rule : FieldRules()) {
      if (!rule.Applies(base) || rule.field.Get(base) != rule.Default(base)) continue;
      v1::RunSpec older = run;
      google::protobuf::Value nothing;
      nothing.set_null_value(google::protobuf::NULL_VALUE);
      std::vector<Problem> problems;
      reflect::SetPath(rule.path, nothing, "", older.mutable_spec(), &problems);
      EXPECT_FALSE(rule.field.Has(older.spec())) << rule.path;
      EXPECT_FALSE(CheckKnown(older).ok()) << rule.path;
      EXPECT_EQ(ReadBack(older).DebugString(), run.DebugString()) << rule.path;
      cleared.insert(rule.path);
    }
  }
  EXPECT_EQ(cleared.size(), FieldRules().size() - 2)
      << "all but task.documents.held_out and evaluation.tokens";
}

TEST(StoredRunTest, KeepsWhatIsStored) {
  for (const v1::BaseSpec& base : FilledBases()) {
    for (const FieldRule& rule : FieldRules()) {
      if (!rule.Applies(base)) continue;
      v1::RunSpec run;
      *run.mutable_spec() = base;
      rule.field.Set(OtherValue(rule, rule.field.Get(base)), run.mutable_spec());
      v1::BaseSpec read = ReadBack(run).spec();
      EXPECT_EQ(rule.field.Get(read), rule.field.Get(run.spec())) << rule.path;
    }
  }
  v1::RunSpec newer;
  newer.mutable_spec()->mutable_task()->mutable_legacy_recall();
  newer.GetReflection()->MutableUnknownFields(&newer)->AddVarint(4711, 1);
  EXPECT_THAT(std::string(CheckKnown(ReadBack(newer)).message()),
              testing::HasSubstr("field number 4711"));
}

TEST(StoredRunTest, WasTrainedByTorchIfItDoesNotSay) {
  v1::RunSpec run = Resolved(SmallSpec()).cells.at(0).run;
  EXPECT_EQ(ReadBack(run).spec().training().trainer(), v1::Trainer::native);
  run.mutable_spec()->mutable_training()->clear_trainer();
  EXPECT_EQ(ReadBack(run).spec().training().trainer(), v1::Trainer::torch);
}

// Absence has a meaning of its own: all batches.
TEST(StoredRunTest, KeepsAbsentWhatHasNoDefault) {
  v1::RunSpec run;
  *run.mutable_spec() = Resolved(TextSpec()).cells.at(0).run.spec();
  EXPECT_FALSE(ReadBack(run).spec().evaluation().has_batches());
  EXPECT_TRUE(CheckKnown(ReadBack(run)).ok());
  run.mutable_spec()->mutable_evaluation()->set_batches(8);
  EXPECT_EQ(ReadBack(run).spec().evaluation().batches(), 8u);
}

TEST(DatasetOfTest, IsWhatTheTaskNames) {
  v1::TaskSpec task;
  EXPECT_EQ(DatasetOf(task).path, "");
  EXPECT_EQ(MutableDatasetOf(&task), nullptr);
  task.mutable_recall();
  EXPECT_EQ(DatasetOf(task).path, "");
  EXPECT_EQ(TaskName(task), "recall");
  task.mutable_text();
  EXPECT_EQ(DatasetOf(task).path, "task.text.dataset");
  EXPECT_EQ(DatasetOf(task).name, nullptr);
  EXPECT_EQ(MutableDatasetOf(&task), nullptr);
  task.mutable_text()->set_dataset("a");
  *MutableDatasetOf(&task) = "b";
  EXPECT_EQ(*DatasetOf(task).name, "b");
  task.mutable_documents()->set_dataset("c");
  EXPECT_EQ(DatasetOf(task).path, "task.documents.dataset");
  EXPECT_EQ(*DatasetOf(task).name, "c");
}

TEST(StoredRunTest, IsNotMadeOfDamage) {
  v1::RunSpec run;
  EXPECT_FALSE(ReadStoredRun("\xff\xff", &run));
}

}  // namespace
}  // namespace ablate::spec
