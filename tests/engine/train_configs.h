// Makes small runs for the training tests.
#ifndef ABLATE_TESTS_ENGINE_TRAIN_CONFIGS_H_
#define ABLATE_TESTS_ENGINE_TRAIN_CONFIGS_H_

#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "server/engine/config.h"
#include "server/engine/task.h"

namespace ablate::engine {

// Returns a few dozen short documents over six letters in alphabetical order, starting anywhere.
inline std::string SmallText() {
  std::string text;
  for (int document = 0; document < 60; ++document) {
    const int length = 1 + document % 7, first = document * 5 / 7;
    for (int i = 0; i < length; ++i) text += static_cast<char>('a' + (first + i) % 6);
    text += '\n';
  }
  return text;
}

inline DocumentsTask SmallDocuments() { return *ReadDocumentsTask(SmallText(), 12); }

// Like the names experiment: RMSNorm, no biases, AdamW, linear schedule.
inline RunConfig SmallDocumentsRun(uint32_t seed) {
  RunConfig run;
  run.task = SmallDocuments();
  run.model.vocabulary = 7;
  run.model.layers = 2;
  run.model.width = 8;
  run.model.heads = 2;
  run.model.context = 6;
  run.model.hidden = 16;
  run.model.bias = false;
  run.model.activation = Activation::kRelu;
  run.model.norm.kind = NormKind::kRms;
  run.model.norm.bias = false;
  run.model.head_bias = false;
  run.training.steps = 30;
  run.training.batch = 2;
  run.training.optimizer.learning_rate = 0.01;
  run.training.optimizer.weight_decay = 0.01;
  run.training.schedule.kind = ScheduleKind::kLinear;
  run.evaluation.every = 10;
  run.seed = seed;
  return run;
}

// Like the recall experiment: post-LayerNorm, biases, no positions, loss at the last position.
inline RunConfig SmallRecallRun(uint32_t seed) {
  RunConfig run;
  run.task = LegacyRecallTask{20, 6};
  run.model.vocabulary = 22;
  run.model.layers = 1;
  run.model.width = 8;
  run.model.heads = 2;
  run.model.context = 7;
  run.model.hidden = 16;
  run.model.positions = Positions::kNone;
  run.model.attention.causal = false;
  run.model.norm.placement = NormPlacement::kPost;
  run.model.norm.final = false;
  run.model.init.kind = InitKind::kPytorchMha;
  run.model.loss = LossPositions::kLast;
  run.training.steps = 30;
  run.training.batch = 8;
  run.training.optimizer.kind = OptimizerKind::kAdam;
  run.evaluation.every = 10;
  run.evaluation.batches = 2;
  run.seed = seed;
  return run;
}

// The same with pairs of entities and attributes.
inline RunConfig SmallPairsRun(uint32_t seed) {
  RunConfig run = SmallRecallRun(seed);
  run.task = RecallTask{5, 3, 4};
  run.model.vocabulary = 23;
  run.model.context = 5;
  return run;
}

// The small documents as one text of six letters and the line feed.
inline RunConfig SmallTextRun(uint32_t seed) {
  RunConfig run = SmallDocumentsRun(seed);
  run.task = *ReadTextTask(SmallText(), 0.25);
  run.evaluation.batches = 0;
  return run;
}

// Returns the shipped names.
inline std::string NamesText() {
  std::ifstream file(ABLATE_EXAMPLES_DATA "/names.txt", std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The source experiment on names: 8 layers of width 16, one name per step.
inline RunConfig NamesRun(uint32_t seed, NormPlacement placement, bool final_norm) {
  RunConfig run = SmallDocumentsRun(seed);
  run.task = *ReadDocumentsTask(NamesText(), 2000);
  run.model.vocabulary = 27;
  run.model.layers = 8;
  run.model.width = 16;
  run.model.heads = 4;
  run.model.context = 16;
  run.model.hidden = 64;
  run.model.norm.placement = placement;
  run.model.norm.final = final_norm;
  run.model.init.streams = InitStreams::kSequential;
  run.training.steps = 1000;
  run.training.batch = 1;
  run.training.optimizer.beta1 = 0.85;
  run.training.optimizer.beta2 = 0.99;
  run.evaluation.every = 100;
  return run;
}

// The source experiment on recall: one block of width 128, one head, 128 sequences per step.
inline RunConfig RecallRun(uint32_t seed, NormPlacement placement) {
  RunConfig run = SmallRecallRun(seed);
  run.task = LegacyRecallTask{400, 40};
  run.model.vocabulary = 402;
  run.model.width = 128;
  run.model.heads = 1;
  run.model.context = 41;
  run.model.hidden = 512;
  run.model.norm.placement = placement;
  run.model.init.streams = InitStreams::kSequential;
  run.training.steps = 4000;
  run.training.batch = 128;
  run.training.optimizer.learning_rate = placement == NormPlacement::kPost ? 1e-4 : 5e-4;
  run.evaluation.every = 500;
  run.evaluation.batches = 8;
  return run;
}

// The source's model of 65 characters: 4 layers of width 128, 32 windows of 64 characters.
inline RunConfig CharactersRun(TaskConfig task) {
  RunConfig run;
  run.task = std::move(task);
  run.model.vocabulary = 65;
  run.model.layers = 4;
  run.model.width = 128;
  run.model.heads = 4;
  run.model.context = 64;
  run.model.hidden = 512;
  run.model.tied_head = true;
  run.model.head_bias = false;
  run.model.init.kind = InitKind::kGpt2;
  run.training.batch = 32;
  run.training.optimizer.weight_decay = 0.01;
  return run;
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_TRAIN_CONFIGS_H_
