// Trained-looking models of random settings of the whole family, and what analyses of them read.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_RANDOM_SUBJECTS_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_RANDOM_SUBJECTS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "server/engine/data/random.h"
#include "tests/engine/analyze/small_models.h"
#include "tests/parity/grid.h"

namespace ablate::engine {

// A text, documents of several lengths, or either task of recall, which a loss at the last position
// alone belongs to.
inline TaskConfig DrawTask(uint64_t number) {
  std::vector<int> held_out;
  std::string lines;
  SplitMix64 generator(number);
  switch (number / 2 % 4) {
    case 0:
      for (int i = 0; i < 120; ++i) held_out.push_back(static_cast<int>(generator.Below(5)));
      return LettersTask(5, held_out);
    case 1:
      for (int line = 0; line < 60; ++line)
        lines += std::string("fadecbade").substr(line % 9) + '\n';
      return *ReadDocumentsTask(lines, 12);
    case 2:
      return RecallTask{3, 3, 3};
    default:
      return LegacyRecallTask{9, 4};
  }
}

// The subject of a number: its precision is float64 if that is even.
inline AnalysisSubject DrawSubject(uint64_t number) {
  PrepareLaneThread();  // or threads of operations would wait for each other
  const GridCase drawn = DrawCase(number);
  RunConfig run = ConfigOf(drawn);
  run.task = DrawTask(number);
  run.precision = drawn.precision;
  run.evaluation.batches = 2;
  const TaskShape shape = *KindOf(run.task).shape(run.task);
  run.model.vocabulary = shape.vocabulary;
  run.model.context = std::max(run.model.context, shape.sequence);
  run.model.loss = shape.loss;
  const ParameterLayout layout = MakeLayout(run.model, run.training.rule);
  const at::TensorOptions options = TensorOptionsOf(Device::kCpu, run.precision);
  at::Tensor values = R(number, {layout.size}) * 0.6;
  for (const ParameterInfo& parameter : layout.parameters) {
    if (parameter.role == ParameterRole::kGain) {
      values.narrow(0, parameter.offset, parameter.size) += 1;
    }
  }
  at::Tensor buffers;
  if (layout.buffer_size > 0) {
    buffers = R(number + 1000, {layout.buffer_size}) * 0.6;
    for (const BufferInfo& buffer : layout.buffers) {
      if (buffer.role == BufferRole::kRunningVariance) {
        buffers.narrow(0, buffer.offset, buffer.size) += 1;
      }
    }
    buffers = buffers.to(options);
  }
  return {run, CheckpointOf(run, values.to(options), buffers)};
}

// A model that has diverged: one weight of its first block is no number.
inline AnalysisSubject DivergedModelM() {
  const RunConfig run = ModelM().config;
  const SubjectModel model = *ReadSubject(run, ModelM().checkpoint);
  for (const ParameterInfo& parameter : model.layout.parameters) {
    if (parameter.name != "block.0.attention.qkv.weight") continue;
    model.values[0][parameter.offset].fill_(std::numeric_limits<double>::quiet_NaN());
  }
  return {run, CheckpointOf(run, model.values[0])};
}

// Equal up to 1e-9 of it in float64 and 1e-5 in float32, where values about 1 are no smaller.
inline void ExpectNearIn(Precision precision, double value, double expected, double scale) {
  const double share = precision == Precision::kFloat64 ? 1e-9 : 1e-5;
  EXPECT_NEAR(value, expected, share * std::max(scale, std::abs(expected)));
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_RANDOM_SUBJECTS_H_
