#include "server/config/engine_config.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/reflect/read.h"
#include "server/config/field_reader.h"
#include "server/config/fields.h"
#include "server/config/program.h"

namespace ablate::spec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

absl::Status CheckNumbers(const Message& message, const std::string& path) {
  const google::protobuf::UnknownFieldSet& unknown =
      message.GetReflection()->GetUnknownFields(message);
  if (unknown.empty()) return absl::OkStatus();
  return NotKnown(path.empty() ? "spec" : path,
                  absl::StrCat("field number ", unknown.field(0).number()),
                  "the fields of this program's version");
}

// Checks the message and every message below it. Lists hold numbers, and maps what programs have.
absl::Status CheckFields(const Message& message, const std::string& path) {
  RETURN_IF_ERROR(CheckNumbers(message, path));
  for (const FieldDescriptor* field : reflect::SetFields(message)) {
    if (field->message_type() == nullptr || field->is_repeated()) continue;
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

absl::Status ReadModel(const v1::ModelSpec& spec, const engine::TaskShape& shape,
                       engine::ModelConfig* model) {
  model->vocabulary = shape.vocabulary;
  model->loss = shape.loss;
  // Without attention these are unset, and no heads divide the width.
  model->heads = 1;
  model->attention.causal = false;
  RETURN_IF_ERROR(ReadFields(spec, "model", model));
  // The defaults.
  if (model->attention.kv_heads == model->heads) model->attention.kv_heads = 0;
  if (model->attention.head_size * model->heads == model->width) model->attention.head_size = 0;
  return absl::OkStatus();
}

absl::Status ReadTraining(const v1::TrainingSpec& spec, engine::TrainingConfig* training) {
  if (spec.betas_size() == 2) {  // unset if the optimizer has none
    training->optimizer.beta1 = spec.betas(0);
    training->optimizer.beta2 = spec.betas(1);
  }
  training->final_checkpoint = false;
  for (const int32_t step : spec.checkpoints()) {
    if (step < 0) {
      training->final_checkpoint = true;
    } else {
      training->checkpoints.push_back(static_cast<uint32_t>(step));
    }
  }
  return ReadFields(spec, "training", training);
}

// Reads everything except the task and the seed.
absl::Status ReadConfig(const v1::BaseSpec& spec, const engine::TaskShape& shape,
                        engine::RunConfig* config) {
  RETURN_IF_ERROR(ReadModel(spec.model(), shape, &config->model));
  RETURN_IF_ERROR(ReadTraining(spec.training(), &config->training));
  absl::Status error;
  const FieldReader training(spec.training(), "training", &error);
  training("device", config->device);
  training("precision", config->precision);
  RETURN_IF_ERROR(error);
  config->evaluation.batches = 0;  // if it isn't set: all
  return ReadFields(spec.evaluation(), "evaluation", &config->evaluation);
}

// Does CheckKnown's checks except those of enums, which ReadConfig does.
absl::Status CheckFieldsOf(const v1::RunSpec& run) {
  const v1::BaseSpec& spec = run.spec();
  if (!IsModel(spec) || spec.has_settings()) {
    return absl::InvalidArgumentError("program: a run of a program has no model");
  }
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
  return ReadConfig(run.spec(), {}, &ignored);
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
  engine::ModelConfig model;
  RETURN_IF_ERROR(ReadModel(spec, shape, &model));
  return model;
}

absl::StatusOr<engine::RunConfig> ToEngineConfig(const v1::RunSpec& run,
                                                 const engine::TaskShape& shape) {
  RETURN_IF_ERROR(CheckFieldsOf(run));
  engine::RunConfig config;
  RETURN_IF_ERROR(ReadConfig(run.spec(), shape, &config));
  config.task = ToEngineTask(run.spec().task());
  config.model.vocabulary = std::max(config.model.vocabulary, static_cast<int>(run.vocabulary()));
  config.seed = run.seed();
  return config;
}

}  // namespace ablate::spec
