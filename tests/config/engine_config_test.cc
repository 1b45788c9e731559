// Tests that unknown parts of a spec are refused, never replaced. Pins the fields, their defaults
// and kConfigVersion.
#include "server/config/engine_config.h"

#include <set>

#include "ablate/v1/analysis_options.pb.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/reflect/read.h"
#include "server/config/fields.h"
#include "server/experiment/fingerprint.h"
#include "tests/experiment/specs.h"

namespace ablate::spec {
namespace {

using ::testing::HasSubstr;

v1::RunSpec ResolvedRun() { return Resolved(SmallSpec()).cells.at(0).run; }

absl::StatusOr<engine::RunConfig> Convert(const v1::RunSpec& run) {
  return ToEngineConfig(run, engine::LegacyRecallShape({}));
}

// Returns a run whose spec has the field if one of FilledBases() has it.
v1::RunSpec RunWith(const std::string& path, const std::vector<v1::BaseSpec>& bases) {
  v1::RunSpec run = ResolvedRun();
  for (const FieldRule& rule : FieldRules()) {
    if (rule.path != path) continue;
    for (const v1::BaseSpec& base : bases) {
      if (rule.Applies(base)) *run.mutable_spec() = base;
    }
  }
  return run;
}

void AddUnknown(google::protobuf::Message* message) {
  message->GetReflection()->MutableUnknownFields(message)->AddVarint(4711, 1);
}

// A field that the conversion forgets would get the engine's default.
TEST(EngineConfigTest, HasEveryFieldOfTheSpec) {
  std::set<std::string> checked;
  for (const v1::BaseSpec& base : FilledBases()) {
    v1::RunSpec run;
    *run.mutable_spec() = base;
    const absl::StatusOr<engine::RunConfig> config = Convert(run);
    ASSERT_TRUE(config.ok()) << config.status();
    for (const FieldRule& rule : FieldRules()) {
      if (!rule.Applies(run.spec())) continue;
      checked.insert(rule.path);
      if (rule.path == "model.feed_forward.match_parameters") continue;  // resolved into hidden
      v1::RunSpec changed = run;
      rule.field.Set(OtherValue(rule, rule.field.Get(run.spec())), changed.mutable_spec());
      FillFields(changed.mutable_spec());  // others may have to be set now
      const absl::StatusOr<engine::RunConfig> other = Convert(changed);
      ASSERT_TRUE(other.ok()) << rule.path << ": " << other.status();
      EXPECT_FALSE(*other == *config) << rule.path;
    }
  }
  EXPECT_EQ(checked.size(), FieldRules().size());
}

// Every enum value of a run has the engine's name.
TEST(EngineConfigTest, KnowsTheValuesOfEveryEnum) {
  size_t enums = 0;
  const std::vector<v1::BaseSpec> bases = FilledBases();
  for (const std::string& path : Leaves()) {
    const reflect::FieldPath field(v1::BaseSpec::descriptor(), path);
    const google::protobuf::EnumDescriptor* type = field.field()->enum_type();
    if (type == nullptr) continue;
    ++enums;
    std::vector<std::string> names;
    for (int i = 1; i < type->value_count(); ++i) {
      // The device and the trainer of a run are never auto.
      if (type->value(i)->name() != "auto") names.push_back(type->value(i)->name());
    }
    v1::RunSpec run = RunWith(path, bases);
    google::protobuf::Message* holder = field.MutableHolder(run.mutable_spec());
    if (field.field()->is_repeated()) {
      holder->GetReflection()->AddEnumValue(holder, field.field(), 77);
    } else {
      holder->GetReflection()->SetEnumValue(holder, field.field(), 77);
    }
    FillFields(run.mutable_spec());  // of another task
    EXPECT_EQ(Convert(run).status(),
              absl::InvalidArgumentError(absl::StrCat(path, ": 77 is unknown; expected one of ",
                                                      absl::StrJoin(names, ", "))));
  }
  EXPECT_GT(enums, 5u);
}

TEST(EngineConfigTest, SaysWhatIsAllowedInstead) {
  v1::RunSpec run = ResolvedRun();
  run.mutable_spec()->mutable_model()->mutable_norm()->set_kind(v1::NormKind::Value(9));
  EXPECT_EQ(Convert(run).status().message(),
            "model.norm.kind: 9 is unknown; expected one of layer, rms, batch, l2, dyt, derf");
  run = ResolvedRun();
  run.mutable_spec()->mutable_training()->set_device(v1::Device::auto_);
  EXPECT_EQ(Convert(run).status().message(),
            "training.device: auto is unknown; expected one of cpu, cuda");
  run = ResolvedRun();
  run.mutable_spec()->mutable_training()->set_trainer(v1::Trainer::auto_);
  EXPECT_EQ(Convert(run).status().message(),
            "training.trainer: auto is unknown; expected one of torch, native");
  run = ResolvedRun();
  run.mutable_spec()->mutable_training()->set_precision(v1::Precision::Value(9));
  EXPECT_EQ(Convert(run).status().message(),
            "training.precision: 9 is unknown; expected one of float32, tf32, bfloat16")
      << "float64 is for tests of the engine";
}

TEST(EngineConfigTest, HasThePrecision) {
  v1::RunSpec run = ResolvedRun();
  EXPECT_EQ(Convert(run)->precision, engine::Precision::kFloat32);
  run.mutable_spec()->mutable_training()->set_precision(v1::Precision::tf32);
  EXPECT_EQ(Convert(run)->precision, engine::Precision::kTf32);
  run.mutable_spec()->mutable_training()->set_precision(v1::Precision::bfloat16);
  EXPECT_EQ(Convert(run)->precision, engine::Precision::kBfloat16);
}

TEST(EngineConfigTest, NamesUnknownFieldsAtAnyDepth) {
  v1::RunSpec run = ResolvedRun();
  AddUnknown(run.mutable_spec()->mutable_model()->mutable_norm());
  EXPECT_EQ(
      Convert(run).status().message(),
      "model.norm: field number 4711 is unknown; expected the fields of this program's version");
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
  EXPECT_EQ(Convert(run).status().message(), "model.layers: missing");
  run = ResolvedRun();
  run.mutable_spec()->mutable_model()->mutable_norm()->clear_kind();
  EXPECT_EQ(Convert(run).status().message(), "model.norm.kind: missing");
  run = ResolvedRun();
  run.mutable_spec()->mutable_training()->clear_betas();
  EXPECT_EQ(Convert(run).status().message(), "training.betas: missing");
  run = ResolvedRun();
  run.mutable_spec()->clear_task();
  EXPECT_EQ(Convert(run).status().message(), "task: missing");
}

TEST(DefaultsTest, NeverChange) {
  const v1::BaseSpec base =
      Resolved(FromText(R"(name: "a" base { task { legacy_recall {} } })")).cells.at(0).run.spec();
  v1::BaseSpec expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    task { legacy_recall { keys: 400 draw: 40 } }
    model {
      layers: 4 width: 128 heads: 4 context: 41 positions: learned bias: true residual: true
      tied_head: false head_bias: true init { kind: pytorch streams: by_name outputs: drawn }
      attention {
        kind: softmax causal: false kv_heads: 4 head_size: 32 qk_norm { kind: none } score_cap: 0 window: 0
        full_every: 0 sink: false value_residual: none
      }
      norm {
        kind: layer deviation: population placement: pre attention: true feed_forward: true
        final: true eps: 1e-5 gain: true bias: true backward: exact gain_form: scale
      }
      feed_forward { hidden: 512 activation: gelu match_parameters: false }
      residual_scale: 1 dropout: 0 parallel: false update_gain: none embedding_scale: 1
      embedding_norm: false logit_cap: 0 base_width: 0
    }
    training {
      steps: 1000 batch: 32 optimizer: adamw learning_rate: 0.001 betas: [0.9, 0.999] eps: 1e-8
      weight_decay: 0.01 schedule: constant warmup: 0 clip: 0 checkpoints: [-1] device: cpu
      rule: backprop accumulation: 1 weight_decay_on: all ema: 0 label_smoothing: 0 trainer: native
      precision: float32 threads: 1 z_loss: 0 weight_decay_form: scaled
      rates { embeddings: 1 head: 1 vectors: 1 }
    }
    evaluation { every: 100 batches: 8 })",
                                                            &expected));
  EXPECT_EQ(base.DebugString(), expected.DebugString());
}

// Describes everything a spec can contain: every field's path and type, every enum value's name.
void Describe(const google::protobuf::Descriptor* type, const std::string& path,
              std::string* text) {
  for (int i = 0; i < type->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = type->field(i);
    const std::string below = absl::StrCat(path, ".", field->name());
    absl::StrAppend(text, below, " ", field->type_name(), "\n");
    const bool ours = field->message_type() != nullptr &&
                      field->message_type()->file()->package() != "google.protobuf";
    if (ours) Describe(field->message_type(), below, text);
    if (field->enum_type() == nullptr) continue;
    for (int j = 0; j < field->enum_type()->value_count(); ++j) {
      absl::StrAppend(text, below, "=", field->enum_type()->value(j)->name(), "\n");
    }
  }
}

TEST(ConfigVersionTest, RisesWithTheSpec) {
  std::string text;
  Describe(v1::RunSpec::descriptor(), "", &text);
  Describe(v1::AnalysisKind::descriptor(), "", &text);
  Describe(v1::AnalysisInputs::descriptor(), "", &text);
  EXPECT_EQ(engine::kConfigVersion, 17u);
  EXPECT_EQ(ShortHash(text), "ltvxhbk47zmy")
      << "A spec or an analysis can say something else than before. Raise engine::kConfigVersion, "
         "so that workers which don't know it are not granted runs that say it, and note both "
         "here.";
}

}  // namespace
}  // namespace ablate::spec
