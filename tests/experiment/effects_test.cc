// Tests fields that have an effect only with some values of another: cleared with other values, and
// refused unless some combination uses them.
#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/experiment/resolve.h"
#include "tests/experiment/specs.h"

namespace ablate::spec {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Value;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Returns the conditions for files of any task: a field of a task is below its kind.
std::vector<Condition> SharedConditions() {
  std::vector<Condition> shared;
  for (const Condition& condition : Conditions()) {
    if (!absl::StartsWith(condition.path, "task.")) shared.push_back(condition);
  }
  return shared;
}

// Returns every value of the other field, by its name.
std::map<std::string, Value> SwitchValues(const Condition& condition) {
  if (condition.switch_path == "task") {
    return {{"legacy_recall", Json(R"({"legacy_recall": {}})")},
            {"recall", Json(R"({"recall": {}})")},
            {"documents", Json(R"({"documents": {"dataset": "names"}})")},
            {"text", Json(R"({"text": {"dataset": "shakespeare"}})")}};
  }
  const google::protobuf::EnumDescriptor* type = condition.switch_field.field()->enum_type();
  if (type == nullptr) return {{"true", Json("true")}, {"false", Json("false")}};
  std::map<std::string, Value> values;
  for (int i = 1; i < type->value_count(); ++i) {
    values[type->value(i)->name()].set_string_value(type->value(i)->name());
  }
  return values;
}

// Returns a value of the field that is valid by itself.
Value SomeValue(const FieldDescriptor* field) {
  if (field->is_repeated()) return Json("[0.5, 0.75]");
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) return Json("true");
  if (const google::protobuf::EnumDescriptor* type = field->enum_type(); type != nullptr) {
    Value last;
    last.set_string_value(type->value(type->value_count() - 1)->name());
    return last;
  }
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_DOUBLE) return Json("1");
  return Json(reflect::InRange(reflect::OptionOf(field), 0.5) ? "0.5" : "2");
}

v1::ExperimentSpec WithBase(const Overrides& values) {
  v1::ExperimentSpec spec = SmallSpec();
  std::vector<Problem> problems;
  for (const auto& [path, value] : values) {
    reflect::SetPath(path, value, path, spec.mutable_base(), &problems);
  }
  EXPECT_THAT(problems, IsEmpty());
  return spec;
}

std::vector<std::string> Refused(const v1::ExperimentSpec& spec, const Overrides& overrides = {}) {
  return Messages(Resolve(spec, overrides, TestSurroundings()));
}

bool HasUse(const Condition& condition, const std::string& value) {
  return std::find(condition.values.begin(), condition.values.end(), value) !=
         condition.values.end();
}

TEST(ConditionsTest, NameValuesOfTheOtherField) {
  for (const Condition& condition : SharedConditions()) {
    const std::map<std::string, Value> values = SwitchValues(condition);
    for (const std::string& value : condition.values) {
      EXPECT_EQ(values.count(value), 1u) << condition.path << ": " << value;
    }
    EXPECT_LT(condition.values.size(), values.size()) << condition.path;
  }
}

TEST(EffectTest, IsAskedOfBaseAndOverrides) {
  for (const Condition& condition : SharedConditions()) {
    const std::string& path = condition.path;
    const Value field = SomeValue(condition.field.field());
    for (const auto& [name, value] : SwitchValues(condition)) {
      SCOPED_TRACE(absl::StrCat(path, " with ", name));
      const Overrides both = {{path, field}, {condition.switch_path, value}};
      const std::vector<std::string> of_base = Refused(WithBase(both));
      const std::vector<std::string> of_overrides = Refused(SmallSpec(), both);
      EXPECT_THAT(Refused(WithBase({{path, field}}), {{condition.switch_path, value}}), IsEmpty())
          << "an override may switch off what the base sets";
      if (HasUse(condition, name)) {
        EXPECT_THAT(of_base, IsEmpty());
        EXPECT_THAT(of_overrides, IsEmpty());
        continue;
      }
      EXPECT_THAT(of_base, ElementsAre(AllOf(StartsWith(absl::StrCat("base.", path, ": ")),
                                             HasSubstr("has no effect with"))));
      EXPECT_THAT(of_overrides,
                  ElementsAre(StartsWith(absl::StrCat("overrides[\"", path, "\"]: "))));
    }
  }
}

// One axis with a setting for every value of the other field.
TEST(EffectTest, OfOneSettingIsEnoughForTheBase) {
  for (const Condition& condition : SharedConditions()) {
    SCOPED_TRACE(condition.path);
    const Value field = SomeValue(condition.field.field());
    v1::ExperimentSpec spec = WithBase({{condition.path, field}});
    v1::Axis* axis = spec.add_axes();
    axis->set_name("a");
    std::vector<std::string> names, without;
    for (const auto& [name, value] : SwitchValues(condition)) {
      if (!HasUse(condition, name)) {
        without.push_back(absl::StrCat("axes[0].settings[", names.size(), "].set"));
      }
      names.push_back(name);
      v1::Setting* setting = axis->add_settings();
      setting->set_label(absl::StrCat("s", names.size()));
      (*setting->mutable_set())[condition.switch_path] = value;
    }
    const Resolution resolution = Resolved(spec);
    ASSERT_EQ(resolution.cells.size(), names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(condition.field.IsSet(resolution.cells[i].run.spec()), HasUse(condition, names[i]));
    }

    for (v1::Setting& setting : *axis->mutable_settings()) {
      (*setting.mutable_set())[condition.path] = field;
    }
    const std::vector<std::string> refused = Refused(spec);
    ASSERT_EQ(refused.size(), without.size());
    for (size_t i = 0; i < without.size(); ++i) EXPECT_THAT(refused[i], StartsWith(without[i]));
  }
}

TEST(EffectTest, IsNotAskedIfASettingIsBroken) {
  v1::ExperimentSpec spec = FromText(R"(
    name: "broken" base { task { recall {} } model { heads: 2 attention { kind: none } } }
    axes { name: "a" settings { label: "x" } settings {
      label: "y" set { key: "model.attention.kind" value { string_value: "sofmax" } } } })");
  EXPECT_THAT(Refused(spec), ElementsAre(HasSubstr("sofmax")));
}

// Fields of a part that a setting switches off are cleared, and don't affect the run's identity.
TEST(SwitchedOffTest, LeavesNothingOfThePart) {
  v1::ExperimentSpec spec = FromText(R"(
    name: "off"
    base {
      task { recall {} }
      model {
        width: 10 heads: 2 residual_scale: 0.5
        attention { kind: sigmoid score_bias: -1 causal: true }
      }
    }
    axes {
      name: "part"
      settings { label: "all" }
      settings {
        label: "no-attention"
        set { key: "model.attention.kind" value { string_value: "none" } }
      }
      settings { label: "no-residual" set { key: "model.residual" value { bool_value: false } } }
    })");
  const Resolution resolution = Resolved(spec);
  ASSERT_EQ(resolution.cells.size(), 3u);
  const v1::ModelSpec& without = resolution.cells[1].run.spec().model();
  EXPECT_FALSE(without.has_heads() || without.attention().has_causal() ||
               without.attention().has_score_bias());
  EXPECT_FALSE(resolution.cells[2].run.spec().model().has_residual_scale());

  spec.mutable_base()->mutable_model()->set_heads(5);
  spec.mutable_base()->mutable_model()->clear_residual_scale();
  const Resolution other = Resolved(spec);
  EXPECT_NE(other.cells[0].fingerprint, resolution.cells[0].fingerprint);
  EXPECT_EQ(other.cells[2].run.spec().model().heads(), 5u);
  spec.mutable_base()->mutable_model()->set_residual_scale(0.5);
  EXPECT_EQ(Resolved(spec).cells[1].fingerprint, resolution.cells[1].fingerprint)
      << "heads are of attention";
}

TEST(SwitchedOffTest, AllowsAWidthThatNoHeadsDivide) {
  const Resolution resolution = Resolved(FromText(R"(
    name: "odd" base { task { recall {} } model { width: 10 attention { kind: none } } })"));
  EXPECT_EQ(resolution.cells[0].run.spec().model().width(), 10u);
}

}  // namespace
}  // namespace ablate::spec
