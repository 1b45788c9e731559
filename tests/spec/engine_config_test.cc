// What a spec says that this program does not know is refused, never replaced.
#include "server/spec/engine_config.h"

#include <functional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/unknown_field_set.h"
#include "server/engine/names.h"
#include "server/spec/fields.h"
#include "server/spec/fingerprint.h"
#include "tests/spec/specs.h"

namespace ablate::spec {
namespace {

using ::testing::HasSubstr;

v1::RunSpec ResolvedRun() { return Resolved(SmallSpec()).cells.at(0).run; }

absl::StatusOr<engine::RunConfig> Convert(const v1::RunSpec& run) {
  return ToEngineConfig(run, engine::LegacyRecallShape({}));
}

void AddUnknown(google::protobuf::Message* message) {
  message->GetReflection()->MutableUnknownFields(message)->AddVarint(4711, 1);
}

// Another value than `value` that the field may have.
double OtherValue(const FieldRule& rule, double value) {
  if (rule.field.is_number()) return rule.InRange(value + 1) ? value + 1 : value / 2 + 0.25;
  for (int number = 2; number >= 0; --number) {
    const std::string name = rule.field.Text(number);
    const bool known = absl::ascii_isalpha(name[0]) && name != "unspecified";
    if (known && name != rule.field.Text(value)) return number;
  }
  ADD_FAILURE() << rule.path << " has no other value";
  return value;
}

// A field that the conversion forgets would train the engine's default.
TEST(EngineConfigTest, HasEveryFieldOfTheSpec) {
  v1::ExperimentSpec sgd = SmallSpec();
  sgd.mutable_base()->mutable_training()->set_optimizer(v1::Optimizer::sgd);
  std::set<std::string> checked;
  for (const v1::ExperimentSpec& spec : {SmallSpec(), sgd, NamesNorm()}) {
    const v1::RunSpec run = Resolved(spec).cells.at(0).run;
    const absl::StatusOr<engine::RunConfig> config = Convert(run);
    ASSERT_TRUE(config.ok()) << config.status();
    for (const FieldRule& rule : FieldRules()) {
      if (!rule.Applies(run.spec())) continue;
      v1::RunSpec changed = run;
      rule.field.Set(OtherValue(rule, rule.field.Get(run.spec())), changed.mutable_spec());
      const absl::StatusOr<engine::RunConfig> other = Convert(changed);
      // With another optimizer other fields have to be set.
      if (rule.path != "training.optimizer") {
        ASSERT_TRUE(other.ok()) << rule.path << ": " << other.status();
        EXPECT_FALSE(*other == *config) << rule.path;
      }
      checked.insert(rule.path);
    }
  }
  EXPECT_EQ(checked.size(), FieldRules().size());
}

TEST(EngineConfigTest, NamesUnknownEnumValues) {
  using Change = std::function<void(v1::BaseSpec*)>;
  const struct {
    const char* field;
    Change change;
  } cases[] = {
      {"model.positions: 77",
       [](auto* s) { s->mutable_model()->set_positions(v1::Positions::Value(77)); }},
      {"model.norm.kind: 77",
       [](auto* s) { s->mutable_model()->mutable_norm()->set_kind(v1::NormKind::Value(77)); }},
      {"model.norm.placement: 77",
       [](auto* s) {
         s->mutable_model()->mutable_norm()->set_placement(v1::NormPlacement::Value(77));
       }},
      {"model.feed_forward.activation: 77",
       [](auto* s) {
         s->mutable_model()->mutable_feed_forward()->set_activation(v1::Activation::Value(77));
       }},
      {"model.init.kind: 77",
       [](auto* s) { s->mutable_model()->mutable_init()->set_kind(v1::InitKind::Value(77)); }},
      {"model.init.streams: 77",
       [](auto* s) {
         s->mutable_model()->mutable_init()->set_streams(v1::InitStreams::Value(77));
       }},
      {"training.optimizer: 77",
       [](auto* s) { s->mutable_training()->set_optimizer(v1::Optimizer::Value(77)); }},
      {"training.schedule: 77",
       [](auto* s) { s->mutable_training()->set_schedule(v1::Schedule::Value(77)); }},
      {"training.device: auto",
       [](auto* s) { s->mutable_training()->set_device(v1::Device::auto_); }},
      {"training.device: 77",
       [](auto* s) { s->mutable_training()->set_device(v1::Device::Value(77)); }},
  };
  for (const auto& item : cases) {
    v1::RunSpec run = ResolvedRun();
    item.change(run.mutable_spec());
    const auto config = Convert(run);
    ASSERT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << item.field;
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(item.field));
  }
}

TEST(EngineConfigTest, SaysWhatIsAllowedInstead) {
  v1::RunSpec run = ResolvedRun();
  run.mutable_spec()->mutable_model()->mutable_norm()->set_kind(v1::NormKind::Value(9));
  EXPECT_EQ(Convert(run).status().message(), "model.norm.kind: 9 is unknown; allowed: layer, rms");
}

TEST(EngineConfigTest, NamesUnknownFieldsAtAnyDepth) {
  v1::RunSpec run = ResolvedRun();
  AddUnknown(run.mutable_spec()->mutable_model()->mutable_norm());
  EXPECT_EQ(
      Convert(run).status().message(),
      "model.norm: field number 4711 is unknown; allowed: the fields that this program knows");
  run = ResolvedRun();
  AddUnknown(run.mutable_spec());
  EXPECT_THAT(std::string(Convert(run).status().message()), HasSubstr("spec: field number 4711"));
  run = ResolvedRun();
  AddUnknown(&run);
  EXPECT_THAT(std::string(Convert(run).status().message()), HasSubstr("run: field number 4711"));
  run = ResolvedRun();
  run.mutable_spec()->clear_task();
  AddUnknown(run.mutable_spec()->mutable_task());
  EXPECT_THAT(std::string(CheckKnown(run).message()), HasSubstr("task: field number 4711"))
      << "a kind of task that came later";
}

TEST(EngineConfigTest, RefusesWhatAppliesAndIsNotSet) {
  v1::RunSpec run = ResolvedRun();
  run.mutable_spec()->mutable_model()->clear_layers();
  EXPECT_EQ(Convert(run).status().message(), "model.layers: it is not set");
  run = ResolvedRun();
  run.mutable_spec()->mutable_model()->mutable_norm()->clear_kind();
  EXPECT_EQ(Convert(run).status().message(), "model.norm.kind: it is not set");
  run = ResolvedRun();
  run.mutable_spec()->mutable_training()->clear_betas();
  EXPECT_EQ(Convert(run).status().message(), "training.betas: it is not set");
  run = ResolvedRun();
  run.mutable_spec()->clear_task();
  EXPECT_EQ(Convert(run).status().message(), "task: it is not set");
}

// Every value of the spec's enum has the engine's, and the other way round.
template <typename Enum>
void ExpectSameNames(const google::protobuf::EnumDescriptor* type) {
  for (int i = 0; i < type->value_count(); ++i) {
    const std::string& name = type->value(i)->name();
    if (type->value(i)->number() == 0 || name == "auto") continue;
    const std::optional<Enum> value = engine::FindByName<Enum>(name);
    ASSERT_TRUE(value.has_value()) << type->full_name() << " " << name;
    EXPECT_EQ(engine::NameOf(*value), name);
  }
  for (const engine::Named<Enum>& entry : engine::kNames<Enum>) {
    EXPECT_NE(type->FindValueByName(std::string(entry.name)), nullptr)
        << type->full_name() << " " << entry.name;
  }
}

TEST(EngineConfigTest, EnumsHaveTheSpecsNames) {
  ExpectSameNames<engine::NormKind>(v1::NormKind::Value_descriptor());
  ExpectSameNames<engine::NormPlacement>(v1::NormPlacement::Value_descriptor());
  ExpectSameNames<engine::Activation>(v1::Activation::Value_descriptor());
  ExpectSameNames<engine::Positions>(v1::Positions::Value_descriptor());
  ExpectSameNames<engine::InitKind>(v1::InitKind::Value_descriptor());
  ExpectSameNames<engine::InitStreams>(v1::InitStreams::Value_descriptor());
  ExpectSameNames<engine::OptimizerKind>(v1::Optimizer::Value_descriptor());
  ExpectSameNames<engine::ScheduleKind>(v1::Schedule::Value_descriptor());
  ExpectSameNames<engine::Device>(v1::Device::Value_descriptor());
}

// All that a spec can say: every field's path and type, every enum value's name.
void Describe(const google::protobuf::Descriptor* type, const std::string& path,
              std::string* text) {
  for (int i = 0; i < type->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = type->field(i);
    const std::string below = absl::StrCat(path, ".", field->name());
    absl::StrAppend(text, below, " ", field->type_name(), "\n");
    if (field->message_type() != nullptr) Describe(field->message_type(), below, text);
    if (field->enum_type() == nullptr) continue;
    for (int j = 0; j < field->enum_type()->value_count(); ++j) {
      absl::StrAppend(text, below, "=", field->enum_type()->value(j)->name(), "\n");
    }
  }
}

TEST(ConfigVersionTest, RisesWithTheSpec) {
  std::string text;
  Describe(v1::RunSpec::descriptor(), "", &text);
  EXPECT_EQ(engine::kConfigVersion, 1u);
  EXPECT_EQ(ShortHash(text), "66gk6uaf4mmo")
      << "A spec can say something else than before. Raise engine::kConfigVersion, so that workers "
         "which don't know it are not granted runs that say it, and note both here.";
}

}  // namespace
}  // namespace ablate::spec
