// Makes subjects with random settings of the whole model family, and computes a model's activations
// for each sequence separately.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_DRAWN_SUBJECTS_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_DRAWN_SUBJECTS_H_

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "server/engine/analysis.h"
#include "server/engine/analyze/analysis_context.h"
#include "server/engine/task.h"
#include "server/engine/torch/model/transformer.h"
#include "server/engine/trainer.h"
#include "tests/engine/analyze/small_models.h"
#include "tests/parity/grid.h"

namespace ablate::engine {

// Returns the task of a number: documents whose held-out ones have several lengths, a text, or
// recall, with the loss at the last position.
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

// Returns the settings that grid.h draws, except those fixed by the task; even numbers are float64.
inline RunConfig DrawnRun(uint64_t number) {
  const GridCase drawn = DrawCase(number, /*switched=*/false);
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

// Returns a subject whose parameters, running statistics and feedback are random.
inline AnalysisSubject SubjectOf(const RunConfig& run, uint64_t number) {
  const ParameterLayout layout = MakeLayout(run.model, run.training.rule);
  const at::Tensor values = 0.5 * R(number, {layout.size});
  AddOneToGains(layout, values);
  at::Tensor buffers;
  if (layout.buffer_size > 0) {
    buffers = 0.5 * R(number + 1000, {layout.buffer_size});
    for (const BufferInfo& buffer : layout.buffers) {
      if (buffer.role == BufferRole::kRunningVariance) {
        buffers.narrow(0, buffer.offset, buffer.size) += 1;
      }
    }
    buffers = buffers.to(TensorOptionsOf(at::kCPU, run.precision));
  }
  return {run, CheckpointOf(run, values.to(TensorOptionsOf(at::kCPU, run.precision)), buffers)};
}

// The same, from its number alone.
inline AnalysisSubject DrawnSubject(uint64_t number) { return SubjectOf(DrawnRun(number), number); }

// Returns the activations at a hook point, [n, features] in float64, in the order that the analysis
// reads them, with each sequence read separately; at attention hook points, whose sequences have
// one length, [sequences · heads, T, T].
inline at::Tensor RowsAlone(const AnalysisContext& analysis, const SubjectModel& subject,
                            const std::string& hook_point) {
  const at::NoGradGuard no_grad;
  ModelConfig everywhere = subject.config.model;
  everywhere.loss = LossPositions::kAll;
  std::vector<at::Tensor> rows;
  const Hooks hooks = *Hooks::Make(
      everywhere, {{hook_point, Observe([&](const at::Tensor& x) { rows.push_back(x); })}});
  for (const TokenBatch& batch : analysis.batches) {
    for (int64_t row = 0; row < batch.rows; ++row) {
      Logits(everywhere, subject.parameters, BatchOf(subject, batch.Rows(row, 1)),
             {.hooks = &hooks});
    }
  }
  return at::cat(rows).to(at::kDouble);
}

// Returns the context of an analysis of a drawn subject with one row per batch, of several lengths
// if its task has them, in a given precision.
inline AnalysisContext DrawnContext(uint64_t number, Precision precision) {
  RunConfig run = DrawnRun(number);
  run.precision = precision;
  AnalysisContext analysis = ContextOf(SubjectOf(run, number));
  std::vector<TokenBatch> rows;
  for (const TokenBatch& batch : analysis.batches) {
    for (int64_t row = 0; row < std::min<int64_t>(batch.rows, 2); ++row) {
      if (rows.size() < 3) rows.push_back(batch.Rows(row, 1));
    }
  }
  analysis.batches = std::move(rows);
  analysis.tokens = 0;
  for (const TokenBatch& batch : analysis.batches) analysis.tokens += batch.tokens();
  return analysis;
}

// Returns the subject with one NaN in a parameter.
inline AnalysisSubject WithNaNIn(const std::string& name, const AnalysisSubject& subject) {
  return Changed(subject, [&](const ParameterInfo& parameter, at::Tensor values) {
    if (parameter.name == name) values[0].fill_(std::numeric_limits<double>::quiet_NaN());
  });
}

// Returns a diverged model: one weight of its first block is NaN.
inline AnalysisSubject DivergedModelM() {
  return WithNaNIn("block.0.attention.qkv.weight", ModelM());
}

inline double ToleranceIn(Precision precision) {
  return precision == Precision::kFloat64 ? 1e-9 : 1e-5;
}

// Expects equality up to 1e-9 of `scale` in float64 and 1e-5 in float32.
inline void ExpectNearIn(Precision precision, double value, double expected, double scale) {
  EXPECT_NEAR(value, expected, ToleranceIn(precision) * std::max(scale, std::abs(expected)));
}

// Returns the model's evaluation, summed over all targets.
inline Score ScoreOfAll(const AnalysisContext& analysis) {
  Score sum;
  for (const TokenBatch& batch : analysis.batches) {
    const Score score = ScoreOf(analysis.subjects[0], batch, {});
    sum.loss += score.loss;
    sum.correct += score.correct;
    sum.targets += score.targets;
  }
  return sum;
}

// Returns the notes except those that less was read than asked for: the subjects have few data.
inline std::vector<std::string> OtherNotes(const AnalysisResult& result) {
  std::vector<std::string> notes;
  for (const std::string& note : result.notes) {
    if (!absl::StartsWith(note, "read ")) notes.push_back(note);
  }
  return notes;
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_DRAWN_SUBJECTS_H_
