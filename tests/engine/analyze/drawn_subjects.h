// Subjects of random settings of the whole family, what a model computes for each sequence by
// itself, and analyses that are made with a state saved after every piece.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_DRAWN_SUBJECTS_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_DRAWN_SUBJECTS_H_

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "server/engine/analysis.h"
#include "server/engine/analyze/material.h"
#include "server/engine/model/transformer.h"
#include "server/engine/task.h"
#include "server/engine/trainer.h"
#include "tests/engine/analyze/small_models.h"
#include "tests/parity/grid.h"

namespace ablate::engine {

// A task of a number: documents whose held-out ones have several lengths, a text, or recall, where
// the loss is at the last position.
inline TaskConfig DrawnTask(uint64_t number) {
  std::string documents, text;
  for (uint64_t i = 0; i < 40; ++i) {
    for (uint64_t j = 0; j <= (i * i + number) % 9; ++j) {
      documents += static_cast<char>('a' + (i + j * j + number) % 7);
    }
    documents += '\n';
  }
  for (uint64_t i = 0; i < 400; ++i) text += static_cast<char>('a' + (i * i + i / 7) % 11);
  switch (number % 4) {
    case 0:
      return *ReadDocumentsTask(documents, 12);
    case 1:
      return *ReadTextTask(text, 0.3);
    case 2:
      return RecallTask{3, 3, 3};
    default:
      return LegacyRecallTask{9, 5};
  }
}

// The settings that grid.h draws, but for what the task says of the model; even numbers are
// float64.
inline RunConfig DrawnRun(uint64_t number) {
  const GridCase drawn = DrawCase(number);
  RunConfig run = ConfigOf(drawn);
  run.precision = drawn.precision;
  run.task = DrawnTask(number / 2);
  const TaskShape shape = *KindOf(run.task).shape(run.task);
  run.model.vocabulary = shape.vocabulary;
  run.model.loss = shape.loss;
  run.model.context = std::max(run.model.context, shape.sequence);
  run.evaluation.batches = 1;
  run.training.batch = 3;
  return run;
}

// With parameters, running statistics and feedback that are random, too.
inline AnalysisSubject SubjectOf(const RunConfig& run, uint64_t number) {
  const ParameterLayout layout = MakeLayout(run.model, run.training.rule);
  at::Tensor values = 0.5 * R(number, {layout.size});
  for (const ParameterInfo& parameter : layout.parameters) {
    if (parameter.role == ParameterRole::kGain) {
      values.narrow(0, parameter.offset, parameter.size) += 1;
    }
  }
  at::Tensor buffers;
  if (layout.buffer_size > 0) {
    buffers = 0.5 * R(number + 1000, {layout.buffer_size});
    for (const BufferInfo& buffer : layout.buffers) {
      if (buffer.role == BufferRole::kRunningVariance) {
        buffers.narrow(0, buffer.offset, buffer.size) += 1;
      }
    }
    buffers = buffers.to(TensorOptionsOf(Device::kCpu, run.precision));
  }
  return {run, CheckpointOf(run, values.to(TensorOptionsOf(Device::kCpu, run.precision)), buffers)};
}

// The same by its number alone.
inline AnalysisSubject DrawnSubject(uint64_t number) {
  PrepareLaneThread();  // or threads of operations would wait for each other
  return SubjectOf(DrawnRun(number), number);
}

// What comes to a site, [n, features] in float64, in the order of the material, each sequence read
// by itself; at sites of attention, whose sequences have one length, [sequences · heads, T, T].
inline at::Tensor RowsAlone(const Material& material, const SubjectModel& subject,
                            const std::string& site) {
  PrepareLaneThread();
  const at::NoGradGuard no_grad;
  ModelConfig everywhere = subject.config.model;
  everywhere.loss = LossPositions::kAll;
  std::vector<at::Tensor> rows;
  const Taps taps =
      *Taps::Make(everywhere, {{site, Observe([&](const at::Tensor& x) { rows.push_back(x); })}});
  for (const TokenBatch& batch : material.batches) {
    for (int64_t row = 0; row < batch.rows; ++row) {
      Logits(everywhere, subject.parameters, BatchOf(subject, batch.Rows(row, 1)), {.taps = &taps});
    }
  }
  const bool matrices = absl::EndsWith(site, ".scores") || absl::EndsWith(site, ".weights");
  return (matrices ? at::cat(rows, 0) : at::cat(rows, 1).squeeze(0)).to(at::kDouble);
}

// What an analysis gives of which every piece is made by another one, from the state that the one
// before has saved.
inline AnalysisResult AnalyzedInParts(const AnalysisRequest& request) {
  PrepareLaneThread();
  const std::atomic<bool> stop{false};
  std::string state;
  for (int64_t made = 0;; ++made) {
    auto analysis = MakeAnalysis(request);
    EXPECT_TRUE(analysis.ok()) << analysis.status();
    if (!analysis.ok()) return {};
    if (made > 0) {
      const absl::Status restored = (*analysis)->Restore(state);
      EXPECT_TRUE(restored.ok()) << restored;
    }
    EXPECT_EQ((*analysis)->made(), made);
    if (made == (*analysis)->pieces()) return *(*analysis)->Finish();
    const absl::Status advanced = (*analysis)->Advance(stop);
    EXPECT_TRUE(advanced.ok()) << advanced;
    if (!advanced.ok()) return {};
    state = *(*analysis)->Save();
  }
}

// The same bits everywhere.
inline void ExpectSameResults(const AnalysisResult& a, const AnalysisResult& b) {
  ASSERT_EQ(a.numbers.size(), b.numbers.size());
  for (size_t i = 0; i < a.numbers.size(); ++i) {
    EXPECT_EQ(a.numbers[i].name, b.numbers[i].name);
    EXPECT_EQ(a.numbers[i].value, b.numbers[i].value) << a.numbers[i].name;
    EXPECT_EQ(a.numbers[i].undefined, b.numbers[i].undefined) << a.numbers[i].name;
  }
  ASSERT_EQ(a.arrays.size(), b.arrays.size());
  for (size_t i = 0; i < a.arrays.size(); ++i) {
    EXPECT_EQ(a.arrays[i].name, b.arrays[i].name);
    EXPECT_EQ(a.arrays[i].axes, b.arrays[i].axes);
    EXPECT_EQ(a.arrays[i].shape, b.arrays[i].shape);
    EXPECT_EQ(a.arrays[i].bytes, b.arrays[i].bytes) << a.arrays[i].name;
  }
  EXPECT_EQ(a.notes, b.notes);
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

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_DRAWN_SUBJECTS_H_
