#include "server/config/engine_config.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/reflect/read.h"
#include "server/config/fields.h"
#include "server/engine/names.h"

namespace ablate::spec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

absl::Status NotKnown(absl::string_view path, absl::string_view value, absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", value, " is unknown; expected ", allowed));
}

absl::Status CheckNumbers(const Message& message, const std::string& path) {
  const google::protobuf::UnknownFieldSet& unknown =
      message.GetReflection()->GetUnknownFields(message);
  if (unknown.empty()) return absl::OkStatus();
  return NotKnown(path.empty() ? "spec" : path,
                  absl::StrCat("field number ", unknown.field(0).number()),
                  "the fields of this program's version");
}

// Checks the message and everything below it; its lists hold numbers only, so messages are
// singular.
absl::Status CheckFields(const Message& message, const std::string& path) {
  RETURN_IF_ERROR(CheckNumbers(message, path));
  for (const FieldDescriptor* field : reflect::SetFields(message)) {
    if (field->message_type() == nullptr) continue;
    RETURN_IF_ERROR(CheckFields(message.GetReflection()->GetMessage(message, field),
                                reflect::Below(path, field->name())));
  }
  return absl::OkStatus();
}

absl::Status NotSet(absl::string_view path) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": missing"));
}

absl::Status CheckSet(const v1::BaseSpec& base) {
  for (const FieldRule& rule : FieldRules()) {
    const bool needed = rule.Applies(base) && rule.HasDefault(base);
    if (needed && !rule.field.Has(base)) return NotSet(rule.path);
  }
  if (base.training().optimizer() != v1::Optimizer::sgd && base.training().betas_size() != 2) {
    return NotSet("training.betas");
  }
  return absl::OkStatus();
}

// Returns the spec's values that the engine has; auto, for example, is resolved before.
template <typename Enum>
std::string Names(const google::protobuf::EnumDescriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) {
    const std::string& name = type->value(i)->name();
    if (engine::FindByName<Enum>(name).has_value()) names.push_back(name);
  }
  return absl::StrCat("one of ", absl::StrJoin(names, ", "));
}

// Sets `to` to the engine's value with the same name as the spec's.
template <typename Enum>
absl::Status Read(const google::protobuf::EnumDescriptor* type, int number, absl::string_view path,
                  Enum* to) {
  const google::protobuf::EnumValueDescriptor* value = type->FindValueByNumber(number);
  if (value == nullptr) return NotKnown(path, absl::StrCat(number), Names<Enum>(type));
  const std::optional<Enum> known = engine::FindByName<Enum>(value->name());
  if (!known.has_value()) return NotKnown(path, value->name(), Names<Enum>(type));
  *to = *known;
  return absl::OkStatus();
}

absl::Status FirstError(absl::Span<const absl::Status> read) {
  for (const absl::Status& status : read) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadModelEnums(const v1::ModelSpec& model, engine::ModelConfig* config) {
  engine::ModelConfig& to = *config;
  return FirstError({
      Read(v1::Positions::Value_descriptor(), model.positions(), "model.positions", &to.positions),
      Read(v1::NormKind::Value_descriptor(), model.norm().kind(), "model.norm.kind", &to.norm.kind),
      Read(v1::NormDeviation::Value_descriptor(), model.norm().deviation(), "model.norm.deviation",
           &to.norm.deviation),
      Read(v1::NormBackward::Value_descriptor(), model.norm().backward(), "model.norm.backward",
           &to.norm.backward),
      Read(v1::AttentionKind::Value_descriptor(), model.attention().kind(), "model.attention.kind",
           &to.attention.kind),
      Read(v1::NormPlacement::Value_descriptor(), model.norm().placement(), "model.norm.placement",
           &to.norm.placement),
      Read(v1::Activation::Value_descriptor(), model.feed_forward().activation(),
           "model.feed_forward.activation", &to.activation),
      Read(v1::InitKind::Value_descriptor(), model.init().kind(), "model.init.kind", &to.init.kind),
      Read(v1::InitStreams::Value_descriptor(), model.init().streams(), "model.init.streams",
           &to.init.streams),
  });
}

absl::Status ReadEnums(const v1::BaseSpec& spec, engine::RunConfig* config) {
  RETURN_IF_ERROR(ReadModelEnums(spec.model(), &config->model));
  const v1::TrainingSpec& training = spec.training();
  RETURN_IF_ERROR(FirstError({
      Read(v1::LearningRule::Value_descriptor(), training.rule(), "training.rule",
           &config->training.rule),
      Read(v1::Trainer::Value_descriptor(), training.trainer(), "training.trainer",
           &config->training.trainer),
      Read(v1::Optimizer::Value_descriptor(), training.optimizer(), "training.optimizer",
           &config->training.optimizer.kind),
      Read(v1::Schedule::Value_descriptor(), training.schedule(), "training.schedule",
           &config->training.schedule.kind),
      Read(v1::WeightDecayOn::Value_descriptor(), training.weight_decay_on(),
           "training.weight_decay_on", &config->training.optimizer.weight_decay_on),
      Read(v1::Device::Value_descriptor(), training.device(), "training.device", &config->device),
      Read(v1::Precision::Value_descriptor(), training.precision(), "training.precision",
           &config->precision),
  }));
  for (int i = 0; i < spec.evaluation().record_size(); ++i) {
    RETURN_IF_ERROR(Read(v1::Record::Value_descriptor(), spec.evaluation().record(i),
                         "evaluation.record", &config->evaluation.record.emplace_back()));
  }
  return absl::OkStatus();
}

engine::NormConfig Norm(const v1::NormSpec& spec) {
  engine::NormConfig norm;
  norm.attention = spec.attention();
  norm.feed_forward = spec.feed_forward();
  norm.final = spec.final();
  norm.eps = spec.eps();
  norm.gain = spec.gain();
  norm.bias = spec.bias();
  return norm;
}

engine::ModelConfig Model(const v1::ModelSpec& spec, const engine::TaskShape& shape) {
  engine::ModelConfig model;
  model.vocabulary = shape.vocabulary;
  model.layers = static_cast<int>(spec.layers());
  model.width = static_cast<int>(spec.width());
  // Without attention no heads divide the width.
  model.heads = spec.has_heads() ? static_cast<int>(spec.heads()) : 1;
  model.context = static_cast<int>(spec.context());
  model.bias = spec.bias();
  model.residual = spec.residual();
  model.tied_head = spec.tied_head();
  model.head_bias = spec.head_bias();
  // Both stay unset if they have no effect.
  if (spec.has_residual_scale()) model.residual_scale = spec.residual_scale();
  if (spec.attention().has_score_bias()) model.attention.score_bias = spec.attention().score_bias();
  model.dropout = spec.dropout();
  model.attention.causal = spec.attention().causal();
  model.hidden = static_cast<int>(spec.feed_forward().hidden());
  model.norm = Norm(spec.norm());
  model.loss = shape.loss;
  return model;
}

// Betas, eps and momentum are set only if the optimizer has them.
engine::OptimizerConfig Optimizer(const v1::TrainingSpec& spec) {
  engine::OptimizerConfig optimizer;
  optimizer.learning_rate = spec.learning_rate();
  if (spec.betas_size() == 2) {
    optimizer.beta1 = spec.betas(0);
    optimizer.beta2 = spec.betas(1);
  }
  if (spec.has_eps()) optimizer.eps = spec.eps();
  optimizer.momentum = spec.momentum();
  optimizer.weight_decay = spec.weight_decay();
  return optimizer;
}

engine::TrainingConfig Training(const v1::TrainingSpec& spec) {
  engine::TrainingConfig training;
  training.steps = spec.steps();
  training.batch = spec.batch();
  training.optimizer = Optimizer(spec);
  training.schedule.warmup = spec.warmup();
  training.clip = spec.clip();
  training.accumulation = spec.accumulation();
  if (spec.has_threads()) training.threads = spec.threads();
  training.ema = spec.ema();
  training.label_smoothing = spec.label_smoothing();
  training.final_checkpoint = false;
  for (const int32_t step : spec.checkpoints()) {
    if (step < 0) {
      training.final_checkpoint = true;
    } else {
      training.checkpoints.push_back(static_cast<uint32_t>(step));
    }
  }
  return training;
}

// Does CheckKnown's checks except those of enums, which ReadEnums does.
absl::Status CheckFieldsOf(const v1::RunSpec& run) {
  const v1::BaseSpec& spec = run.spec();
  absl::Status known = CheckNumbers(run, "run");
  if (known.ok()) known = CheckFields(spec, "");
  if (!known.ok()) return known;
  if (spec.task().kind_case() == v1::TaskSpec::KIND_NOT_SET) return NotSet("task");
  return CheckSet(spec);
}

}  // namespace

engine::SampleOptions ToSampleOptions(const v1::SamplesSpec& spec) {
  engine::SampleOptions options;
  if (spec.has_count()) options.count = spec.count();
  if (spec.has_temperature()) options.temperature = spec.temperature();
  if (spec.has_top_k()) options.top_k = spec.top_k();
  if (spec.has_top_p()) options.top_p = spec.top_p();
  if (spec.has_seed()) options.seed = spec.seed();
  return options;
}

absl::Status CheckKnown(const v1::RunSpec& run) {
  RETURN_IF_ERROR(CheckFieldsOf(run));
  engine::RunConfig ignored;
  return ReadEnums(run.spec(), &ignored);
}

absl::StatusOr<engine::TaskShape> ShapeOf(const v1::TaskSpec& task,
                                          const engine::DocumentFacts& facts) {
  if (task.has_documents()) {
    const bool characters = task.documents().tokenizer() == kCharacters;
    return engine::DocumentsShape(facts.characters + (characters ? 1 : 0));
  }
  if (task.has_text()) return engine::TextShape(engine::FactsOfText(facts));
  const engine::TaskConfig generated = ToEngineTask(task);
  return engine::KindOf(generated).shape(generated);
}

engine::TaskConfig ToEngineTask(const v1::TaskSpec& task) {
  switch (task.kind_case()) {
    case v1::TaskSpec::kDocuments: {
      engine::DocumentsTask documents;
      documents.stored = task.documents().tokenizer() == kStoredTokens;
      documents.held_out = task.documents().held_out();
      return documents;
    }
    case v1::TaskSpec::kLegacyRecall:
      return engine::LegacyRecallTask{static_cast<int>(task.legacy_recall().keys()),
                                      static_cast<int>(task.legacy_recall().draw())};
    case v1::TaskSpec::kRecall:
      return engine::RecallTask{static_cast<int>(task.recall().entities()),
                                static_cast<int>(task.recall().attributes()),
                                static_cast<int>(task.recall().pairs())};
    case v1::TaskSpec::kText: {
      engine::TextTask text;
      text.stored = task.text().tokenizer() == kStoredTokens;
      text.validation = task.text().validation();
      return text;
    }
    case v1::TaskSpec::KIND_NOT_SET:
      break;
  }
  return {};  // CheckKnown has refused it
}

absl::StatusOr<engine::ModelConfig> ToEngineModel(const v1::ModelSpec& spec,
                                                  const engine::TaskShape& shape) {
  engine::ModelConfig model = Model(spec, shape);
  RETURN_IF_ERROR(ReadModelEnums(spec, &model));
  return model;
}

absl::StatusOr<engine::RunConfig> ToEngineConfig(const v1::RunSpec& run,
                                                 const engine::TaskShape& shape) {
  RETURN_IF_ERROR(CheckFieldsOf(run));
  engine::RunConfig config;
  config.task = ToEngineTask(run.spec().task());
  config.model = Model(run.spec().model(), shape);
  config.model.vocabulary = std::max(config.model.vocabulary, static_cast<int>(run.vocabulary()));
  config.training = Training(run.spec().training());
  config.evaluation.every = run.spec().evaluation().every();
  config.evaluation.batches = run.spec().evaluation().batches();  // 0 if it isn't set: all
  config.evaluation.tokens = run.spec().evaluation().tokens();    // as well
  config.seed = run.seed();
  RETURN_IF_ERROR(ReadEnums(run.spec(), &config));
  return config;
}

}  // namespace ablate::spec
