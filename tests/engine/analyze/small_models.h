// Makes models for tests of analyses: the reference's model M, and models whose embeddings are a
// given matrix, with checkpoints in either precision.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_SMALL_MODELS_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_SMALL_MODELS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/analysis.h"
#include "server/engine/analyze/analysis_context.h"
#include "server/engine/core/checkpoint.h"
#include "server/engine/core/data/whole_text.h"
#include "server/engine/task.h"
#include "server/engine/torch/model/init.h"
#include "server/engine/trainer.h"

namespace ablate::engine {

// Makes each test run on a thread that is prepared as a lane; otherwise threads of operations would
// wait for each other.
class LaneEnvironment : public testing::Environment {
  void SetUp() override { PrepareLaneThread(); }
};
inline testing::Environment* const kLaneEnvironment =
    testing::AddGlobalTestEnvironment(new LaneEnvironment);

// Returns R(seed, shape): uniform in [−1, 1), row-major.
inline at::Tensor R(uint64_t seed, std::vector<int64_t> shape) {
  int64_t size = 1;
  for (const int64_t dimension : shape) size *= dimension;
  return UniformSequence(seed, 0, size).view(shape);
}

// Returns a text task whose tokens are `letters` letters from `a` on. The training part has each
// once, repeated; then follows `held_out` as windows to evaluate. The training part must be longer
// than the held-out part.
inline TextTask LettersTask(int letters, const std::vector<int>& held_out) {
  const size_t training = 9 * held_out.size() + static_cast<size_t>(letters);
  std::string text;
  for (size_t i = 0; i < training; ++i) text += static_cast<char>('a' + i % letters);
  for (const int token : held_out) text += static_cast<char>('a' + token);
  const double fraction = static_cast<double>(held_out.size()) / static_cast<double>(text.size());
  return *ReadTextTask(text, fraction);
}

// Adds 1 to each gain in the parameters [P].
inline void AddOneToGains(const ParameterLayout& layout, const at::Tensor& values) {
  for (const ParameterInfo& parameter : layout.parameters) {
    if (parameter.role != ParameterRole::kGain) continue;
    values.narrow(0, parameter.offset, parameter.size) += 1;
  }
}

// Returns the checkpoint of a run's model with these parameters [P], in their precision.
inline std::string CheckpointOf(const RunConfig& config, const at::Tensor& values,
                                const at::Tensor& buffers = {}) {
  const ParameterLayout layout = MakeLayout(config.model, config.training.rule);
  const auto bytes = [](const at::Tensor& tensor) {
    return absl::string_view(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  };
  RunTensors tensors;
  tensors.type = values.scalar_type() == at::kDouble ? TensorType::kF64 : TensorType::kF32;
  tensors.parameters = bytes(values);
  if (buffers.defined()) tensors.buffers = bytes(buffers);
  const BackendIdentity backend = {"torch", "test", "torch_version", TorchVersion()};
  return *WriteCheckpoint({config.model, backend, 0, ""}, layout, tensors);
}

// Returns the initial model of a run, in the precision of its config.
inline AnalysisSubject UntrainedSubject(const RunConfig& config) {
  const ParameterLayout layout = MakeLayout(config.model, config.training.rule);
  const at::TensorOptions options = TensorOptionsOf(at::kCPU, config.precision);
  const at::Tensor buffers = InitialBuffers(layout, config.seed);
  return {config,
          CheckpointOf(config, InitialParameters(config.model, layout, config.seed).to(options),
                       buffers.defined() ? buffers.to(options) : buffers)};
}

// Returns model M of the reference, float64: vocabulary 7, width 4, 2 heads, 2 layers, context 8.
// It holds out tokens 1 4 2 6 1 4 2 6 with targets 4 2 6 1 4 2 6 1.
inline AnalysisSubject ModelM() {
  RunConfig run;
  run.task = LettersTask(7, {1, 4, 2, 6, 1, 4, 2, 6, 1});
  run.model.vocabulary = 7;
  run.model.layers = 2;
  run.model.width = 4;
  run.model.heads = 2;
  run.model.context = 8;
  run.model.hidden = 8;
  run.model.head_bias = false;
  run.evaluation.batches = 0;
  run.precision = Precision::kFloat64;
  const ParameterLayout layout = MakeLayout(run.model);
  EXPECT_EQ(layout.size, 440);
  const at::Tensor values = R(42, {440});
  AddOneToGains(layout, values);
  return {run, CheckpointOf(run, values)};
}

// Returns the subject after `change(parameter, values)` of each parameter, whose values are [size].
template <typename Change>
AnalysisSubject Changed(const AnalysisSubject& subject, const Change& change) {
  const SubjectModel model = *ReadSubject(subject.config, subject.checkpoint);
  for (const ParameterInfo& parameter : model.layout.parameters) {
    change(parameter, model.values.narrow(0, parameter.offset, parameter.size));
  }
  return {subject.config, CheckpointOf(subject.config, model.values, model.buffers)};
}

// Returns the subject after `change(config)`, with the same parameters in its new precision.
template <typename Change>
AnalysisSubject WithSettings(AnalysisSubject subject, const Change& change) {
  const at::Tensor values = (*ReadSubject(subject.config, subject.checkpoint)).values;
  change(subject.config);
  const at::TensorOptions options = TensorOptionsOf(at::kCPU, subject.config.precision);
  subject.checkpoint = CheckpointOf(subject.config, values.to(options));
  return subject;
}

// Returns a model without positions whose embeddings are the rows of `rows` [n, d], float64, and
// the prompt that reads them in order: at most 26 rows.
inline std::pair<AnalysisSubject, std::string> ModelOfRows(const at::Tensor& rows) {
  const auto n = static_cast<int>(rows.size(0));
  std::string prompt;
  for (int i = 0; i < n; ++i) prompt += static_cast<char>('a' + i);
  RunConfig run;
  run.task = *ReadTextTask(prompt + prompt, 0.5);
  run.model.vocabulary = n;
  run.model.layers = 1;
  run.model.width = static_cast<int>(rows.size(1));
  run.model.heads = 1;
  run.model.context = n + 1;
  run.model.hidden = 4;
  run.model.positions = Positions::kNone;
  run.precision = Precision::kFloat64;
  const ParameterLayout layout = MakeLayout(run.model);
  at::Tensor values = R(1, {layout.size});
  values.narrow(0, 0, rows.numel()).copy_(rows.flatten());
  return {{run, CheckpointOf(run, values)}, prompt};
}

// Returns what an analysis of a subject reads of its held-out tokens.
inline AnalysisContext ContextOf(const AnalysisSubject& subject, uint64_t tokens = 1000) {
  return *ReadAnalysisContext({SpectrumOptions{}, {subject}, {tokens, ""}});
}

// Returns the result of an analysis that runs to its end.
inline AnalysisResult Analyzed(AnalysisRequest request) {
  auto analysis = MakeAnalysis(std::move(request));
  EXPECT_TRUE(analysis.ok()) << analysis.status();
  if (!analysis.ok()) return {};
  const std::atomic<bool> stop{false};
  while ((*analysis)->made() < (*analysis)->pieces()) {
    const absl::Status advanced = (*analysis)->Advance(stop);
    EXPECT_TRUE(advanced.ok()) << advanced;
    if (!advanced.ok()) return {};
  }
  auto result = (*analysis)->Finish();
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : AnalysisResult();
}

// Returns the number of a name, which must be there.
inline const AnalysisNumber& NumberNamed(const AnalysisResult& result, const std::string& name) {
  static const AnalysisNumber none;
  for (const AnalysisNumber& number : result.numbers) {
    if (number.name == name) return number;
  }
  ADD_FAILURE() << "no number " << name;
  return none;
}

// Returns the value of a number that must be defined.
inline double NumberIn(const AnalysisResult& result, const std::string& name) {
  const AnalysisNumber& number = NumberNamed(result, name);
  EXPECT_FALSE(number.undefined.has_value()) << "undefined: " << name;
  return number.undefined.has_value() ? std::numeric_limits<double>::quiet_NaN() : number.value;
}

// Returns why a number is undefined; nullopt if it isn't.
inline std::optional<Undefined> ReasonIn(const AnalysisResult& result, const std::string& name) {
  return NumberNamed(result, name).undefined;
}

// Returns the array of a name, which must be there.
inline const AnalysisArray& ArrayNamed(const AnalysisResult& result, const std::string& name) {
  static const AnalysisArray none;
  for (const AnalysisArray& array : result.arrays) {
    if (array.name == name) return array;
  }
  ADD_FAILURE() << "no array " << name;
  return none;
}

// Returns an array as a float64 tensor.
inline at::Tensor ArrayIn(const AnalysisResult& result, const std::string& name) {
  const AnalysisArray& array = ArrayNamed(result, name);
  const at::ScalarType type = array.type == TensorType::kF64   ? at::kDouble
                              : array.type == TensorType::kF32 ? at::kFloat
                                                               : at::kLong;
  at::Tensor values = at::empty(array.shape, type);
  if (!array.bytes.empty()) {
    std::memcpy(values.mutable_data_ptr(), array.bytes.data(), array.bytes.size());
  }
  return values.to(at::kDouble);
}

// Returns the bytes of all arrays together.
inline uint64_t BytesOfArrays(const AnalysisResult& result) {
  uint64_t bytes = 0;
  for (const AnalysisArray& array : result.arrays) bytes += array.bytes.size();
  return bytes;
}

// Returns what an analysis of one subject should cost.
inline AnalysisCost CostOf(const AnalysisRequest& request, uint64_t tokens) {
  return KindOf(request.options).cost(request.options, request.subjects[0].config, tokens, 1);
}

// Expects equality up to 1e-9 of the expected value, because the references print ten digits.
inline void ExpectOracle(double value, double expected) {
  EXPECT_NEAR(value, expected, 1e-9 * std::max(1.0, std::abs(expected)));
}

// Expects numbers by name, without `suffix`.
inline void ExpectOracles(const AnalysisResult& result,
                          const std::vector<std::pair<std::string, double>>& expected,
                          const std::string& suffix = "") {
  for (const auto& [name, value] : expected) {
    SCOPED_TRACE(name + suffix);
    ExpectOracle(NumberIn(result, name + suffix), value);
  }
}

// Expects these numbers to be undefined; all of them if no name is given.
inline void ExpectUndefined(const AnalysisResult& result, Undefined reason,
                            const std::vector<std::string>& names = {}) {
  for (const std::string& name : names) EXPECT_EQ(ReasonIn(result, name), reason) << name;
  for (const AnalysisNumber& number : result.numbers) {
    if (!names.empty()) break;
    EXPECT_EQ(number.undefined, reason) << number.name;
  }
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_SMALL_MODELS_H_
