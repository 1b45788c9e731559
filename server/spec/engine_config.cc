#include "server/spec/engine_config.h"

namespace ablate::spec {
namespace {

engine::NormKind ToEngine(v1::NormKind::Value kind) {
  return kind == v1::NormKind::rms ? engine::NormKind::kRms : engine::NormKind::kLayer;
}

engine::NormPlacement ToEngine(v1::NormPlacement::Value placement) {
  if (placement == v1::NormPlacement::none) return engine::NormPlacement::kNone;
  return placement == v1::NormPlacement::post ? engine::NormPlacement::kPost
                                              : engine::NormPlacement::kPre;
}

engine::Activation ToEngine(v1::Activation::Value activation) {
  if (activation == v1::Activation::relu) return engine::Activation::kRelu;
  return activation == v1::Activation::gelu_tanh ? engine::Activation::kGeluTanh
                                                 : engine::Activation::kGelu;
}

engine::InitKind ToEngine(v1::InitKind::Value kind) {
  switch (kind) {
    case v1::InitKind::pytorch_mha:
      return engine::InitKind::kPytorchMha;
    case v1::InitKind::xavier:
      return engine::InitKind::kXavier;
    case v1::InitKind::gpt2:
      return engine::InitKind::kGpt2;
    default:
      return engine::InitKind::kPytorch;
  }
}

engine::OptimizerKind ToEngine(v1::Optimizer::Value kind) {
  if (kind == v1::Optimizer::sgd) return engine::OptimizerKind::kSgd;
  return kind == v1::Optimizer::adam ? engine::OptimizerKind::kAdam : engine::OptimizerKind::kAdamW;
}

engine::ScheduleKind ToEngine(v1::Schedule::Value kind) {
  if (kind == v1::Schedule::linear) return engine::ScheduleKind::kLinear;
  return kind == v1::Schedule::cosine ? engine::ScheduleKind::kCosine
                                      : engine::ScheduleKind::kConstant;
}

engine::TaskConfig Task(const v1::TaskSpec& task) {
  if (task.has_documents()) {
    engine::DocumentsTask documents;
    documents.held_out = task.documents().held_out();
    return documents;
  }
  return engine::LegacyRecallTask{static_cast<int>(task.legacy_recall().keys()),
                                  static_cast<int>(task.legacy_recall().draw())};
}

engine::NormConfig Norm(const v1::NormSpec& spec) {
  engine::NormConfig norm;
  norm.kind = ToEngine(spec.kind());
  norm.placement = ToEngine(spec.placement());
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
  model.heads = static_cast<int>(spec.heads());
  model.context = static_cast<int>(spec.context());
  model.positions = spec.positions() == v1::Positions::none ? engine::Positions::kNone
                                                            : engine::Positions::kLearned;
  model.bias = spec.bias();
  model.residual = spec.residual();
  model.tied_head = spec.tied_head();
  model.head_bias = spec.head_bias();
  model.causal = spec.attention().causal();
  model.activation = ToEngine(spec.feed_forward().activation());
  model.hidden = static_cast<int>(spec.feed_forward().hidden());
  model.norm = Norm(spec.norm());
  model.init.kind = ToEngine(spec.init().kind());
  model.init.streams = spec.init().streams() == v1::InitStreams::sequential
                           ? engine::InitStreams::kSequential
                           : engine::InitStreams::kByName;
  model.loss = shape.loss;
  return model;
}

// Betas, eps and momentum are set only where the optimizer has them.
engine::OptimizerConfig Optimizer(const v1::TrainingSpec& spec) {
  engine::OptimizerConfig optimizer;
  optimizer.kind = ToEngine(spec.optimizer());
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
  training.schedule.kind = ToEngine(spec.schedule());
  training.schedule.warmup = spec.warmup();
  training.clip = spec.clip();
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

engine::RunConfig ToEngineConfig(const v1::RunSpec& run, const engine::TaskShape& shape) {
  engine::RunConfig config;
  config.task = Task(run.spec().task());
  config.model = Model(run.spec().model(), shape);
  config.training = Training(run.spec().training());
  config.evaluation.every = run.spec().evaluation().every();
  if (run.spec().evaluation().has_batches()) {
    config.evaluation.batches = run.spec().evaluation().batches();
  }
  config.seed = run.seed();
  config.device = run.spec().training().device() == v1::Device::cuda ? engine::Device::kCuda
                                                                     : engine::Device::kCpu;
  return config;
}

}  // namespace ablate::spec
