#include "server/engine/analyze/analysis_context.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numbers>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/engine/analyze/large_vectors.h"
#include "server/engine/core/checkpoint.h"
#include "server/engine/core/data/random.h"
#include "server/engine/torch/model/layers.h"
#include "server/engine/torch/model/transformer.h"

namespace ablate::engine {
namespace {

// Returns activations [..., features] as rows [n, features] in float64.
std::vector<at::Tensor> DoubleRowsOf(std::vector<at::Tensor> captured) {
  for (at::Tensor& of : captured) of = of.flatten(0, -2).to(at::kDouble);
  return captured;
}

double StreamUniform(uint64_t seed, int64_t n) {
  return SplitMix64::UniformAt(seed, static_cast<uint64_t>(n));
}

// Returns true if the pieces follow each other in memory, in order, as elements of a type.
bool AreOneVector(TensorType type, const std::vector<absl::string_view>& pieces) {
  if (pieces.empty()) return false;
  const auto width = static_cast<size_t>(WidthOf(type));
  if (reinterpret_cast<uintptr_t>(pieces[0].data()) % width != 0) return false;
  for (size_t i = 1; i < pieces.size(); ++i) {
    if (pieces[i].data() != pieces[i - 1].data() + pieces[i - 1].size()) return false;
  }
  return true;
}

// Returns the flat vector of a checkpoint's parameters: in the memory of its file, or copied.
at::Tensor ParametersOf(const CheckpointTensors& read, const SharedBytes& checkpoint) {
  if (!checkpoint.of_file() || !AreOneVector(read.type, read.parameters)) {
    return FlatTensor(read.type, read.parameters);
  }
  const absl::string_view first = read.parameters.front(), last = read.parameters.back();
  const auto bytes = static_cast<int64_t>(last.data() + last.size() - first.data());
  return at::from_blob(
      const_cast<char*>(first.data()), {bytes / WidthOf(read.type)},
      [owner = checkpoint.owner()](void*) mutable { owner.reset(); },
      read.type == TensorType::kF64 ? at::kDouble : at::kFloat);
}

}  // namespace

absl::StatusOr<SubjectModel> ReadSubject(RunConfig config, const SharedBytes& checkpoint,
                                         at::Device device) {
  SubjectModel subject;
  subject.layout = MakeLayout(config.model, config.training.rule);
  ASSIGN_OR_RETURN(const CheckpointTensors read, ReadCheckpoint(subject.layout, checkpoint.view()));
  subject.config = std::move(config);
  subject.values = ParametersOf(read, checkpoint).to(device);
  const at::Tensor buffers = FlatTensor(read.type, read.buffers);
  if (buffers.numel() > 0) subject.buffers = buffers.to(device);
  subject.parameters =
      BindParameters(subject.config.model, subject.layout,
                     ParameterViews(subject.layout, subject.values), subject.buffers);
  return subject;
}

absl::StatusOr<AnalysisContext> ReadAnalysisContext(AnalysisRequest request, at::Device device) {
  AnalysisContext analysis;
  analysis.seed = request.seed;
  std::vector<const RunConfig*> configs;
  for (AnalysisSubject& from : request.subjects) {
    absl::StatusOr<SubjectModel> subject = ReadSubject(from.config, from.checkpoint, device);
    from.checkpoint = SharedBytes();  // frees it before the next model is read
    if (!subject.ok()) {
      return absl::Status(subject.status().code(), absl::StrCat("subjects[", configs.size(),
                                                                "]: ", subject.status().message()));
    }
    analysis.subjects.push_back(*std::move(subject));
    configs.push_back(&from.config);
  }
  if (KindOf(request.options).default_tokens == 0) return analysis;
  ASSIGN_OR_RETURN(SequencesRead read, ReadSequences(request.options, request.inputs, configs));
  RETURN_IF_ERROR(RefusalOf(read.problems));
  analysis.batches = std::move(read.batches);
  analysis.tagged = std::move(read.tagged);
  for (const TokenBatch& batch : analysis.batches) analysis.tokens += batch.tokens();
  return analysis;
}

std::string HookPointOr(const std::string& hook_point, const ModelConfig& model) {
  return hook_point.empty() ? HookPointName(HookPoint::kBlockOutput, model.layers - 1) : hook_point;
}

std::vector<std::string> HookPointsOr(const std::vector<std::string>& hook_points,
                                      const ModelConfig& model) {
  if (!hook_points.empty()) return hook_points;
  std::vector<std::string> states = {HookPointName(HookPoint::kEmbedding, 0)};
  for (int i = 0; i < model.layers; ++i)
    states.push_back(HookPointName(HookPoint::kBlockOutput, i));
  return states;
}

void CheckStop(const AnalysisContext& analysis) {
  TORCH_CHECK(analysis.stop == nullptr || !analysis.stop->load(), "the analysis is to stop");
}

Hooks HooksOf(const AnalysisContext& analysis, const ModelConfig& model,
              std::vector<std::pair<std::string, Hook>> hooks) {
  for (int i = 0; i < model.layers; ++i) {
    hooks.emplace_back(HookPointName(HookPoint::kBlockOutput, i),
                       Observe([&analysis](const at::Tensor&) { CheckStop(analysis); }));
  }
  absl::StatusOr<Hooks> made = Hooks::Make(model, std::move(hooks));
  TORCH_CHECK(made.ok(), made.status().message());
  return *std::move(made);
}

double TargetsIn(const std::vector<TokenBatch>& batches) {
  int64_t targets = 0;
  for (const TokenBatch& batch : batches) {
    targets += static_cast<int64_t>(batch.targets.size()) -
               std::count(batch.targets.begin(), batch.targets.end(), TokenBatch::kIgnored);
  }
  return static_cast<double>(targets);
}

std::optional<Undefined> WithoutTargets(double targets) {
  return targets > 0 ? std::nullopt : std::optional(Undefined::kTooFewTokens);
}

BatchTensors BatchOf(const SubjectModel& subject, const TokenBatch& batch) {
  return TensorsOf(batch, subject.values.options());
}

at::Tensor RealRows(const at::Tensor& values, const BatchTensors& batch) {
  if (!batch.lengths.defined()) return values;
  const at::Tensor position = at::arange(batch.length, batch.lengths.options());
  const at::Tensor real = position.lt(batch.lengths.unsqueeze(1)).flatten();
  return values.index_select(0, real.nonzero().squeeze(1));
}

std::vector<at::Tensor> CaptureHookPoints(const AnalysisContext& analysis,
                                          const SubjectModel& subject, const TokenBatch& batch,
                                          const std::vector<std::string>& hook_points) {
  const at::NoGradGuard no_grad;
  ModelConfig everywhere = subject.config.model;
  everywhere.loss = LossPositions::kAll;  // otherwise the last block would compute last positions
                                          // only
  std::vector<at::Tensor> captured(hook_points.size());
  std::vector<std::pair<std::string, Hook>> observers;
  for (size_t i = 0; i < hook_points.size(); ++i) {
    observers.emplace_back(hook_points[i],
                           Observe([&captured, i](const at::Tensor& x) { captured[i] = x; }));
  }
  const Hooks hooks = HooksOf(analysis, everywhere, std::move(observers));
  const std::string logits = HookPointName(HookPoint::kLogits, 0);
  const bool needs_head =
      std::find(hook_points.begin(), hook_points.end(), logits) != hook_points.end();
  (needs_head ? Logits : HeadInput)(everywhere, subject.parameters, BatchOf(subject, batch),
                                    {.hooks = &hooks});
  return captured;
}

std::vector<at::Tensor> CaptureRows(const AnalysisContext& analysis, const SubjectModel& subject,
                                    const TokenBatch& batch,
                                    const std::vector<std::string>& hook_points) {
  return DoubleRowsOf(CaptureHookPoints(analysis, subject, batch, hook_points));
}

CapturedBatches::CapturedBatches(const AnalysisContext& analysis, const SubjectModel& subject,
                                 std::vector<std::string> hook_points)
    : analysis_(analysis),
      subject_(subject),
      hook_points_(std::move(hook_points)),
      first_(CaptureHookPoints(analysis_, subject_, analysis_.Batch(0), hook_points_)) {}

std::vector<at::Tensor> CapturedBatches::FirstRows() const { return DoubleRowsOf(first_); }

std::vector<at::Tensor> CapturedBatches::Take(int64_t batch) {
  std::vector<at::Tensor> first = std::exchange(first_, {});
  if (batch == 0 && !first.empty()) return first;
  return CaptureHookPoints(analysis_, subject_, analysis_.Batch(batch), hook_points_);
}

std::vector<at::Tensor> CapturedBatches::TakeRows(int64_t batch) {
  return DoubleRowsOf(Take(batch));
}

Score ScoreOf(const SubjectModel& subject, const TokenBatch& batch, const Pass& pass) {
  const at::NoGradGuard no_grad;
  const BatchTensors tensors = BatchOf(subject, batch);
  const at::Tensor logits = Logits(subject.config.model, subject.parameters, tensors, pass);
  at::Tensor is_correct = logits.argmax(-1).eq(tensors.targets);  // [N]
  Score score;
  score.targets = static_cast<double>(tensors.targets.numel());
  if (tensors.counted.defined()) {
    is_correct = is_correct.logical_and(tensors.counted.to(at::kBool));
    score.targets = tensors.counted.sum(at::kDouble).item<double>();
  }
  score.loss = TokenLosses(logits, tensors).sum(at::kDouble).item<double>();
  score.correct = is_correct.sum().item<double>();
  return score;
}

Leaves::Leaves(const SubjectModel& subject) {
  for (const at::Tensor& view : ParameterViews(subject.layout, subject.values)) {
    all.push_back(view.detach().requires_grad_());
  }
  parameters = BindParameters(subject.config.model, subject.layout, all, subject.buffers);
}

TensorType TensorTypeOf(const at::Tensor& values) {
  switch (values.scalar_type()) {
    case at::kDouble:
      return TensorType::kF64;
    case at::kFloat:
      return TensorType::kF32;
    case at::kLong:
      return TensorType::kI64;
    default:
      TORCH_CHECK(false, "an array has elements of type ", values.scalar_type());
  }
}

AnalysisArray ArrayOf(std::string name, std::vector<std::string> axes, const at::Tensor& values) {
  const at::Tensor host = values.detach().to(at::kCPU).contiguous();
  TORCH_CHECK(static_cast<size_t>(host.dim()) == axes.size(), name, " has ", host.dim(),
              " dimensions, not ", axes.size());
  return {std::move(name), std::move(axes), host.sizes().vec(), TensorTypeOf(host),
          std::string(static_cast<const char*>(host.const_data_ptr()), host.nbytes())};
}

at::Tensor UniformSequence(uint64_t seed, int64_t first, int64_t count) {
  at::Tensor values = at::empty({count}, at::kDouble);
  double* const out = values.mutable_data_ptr<double>();
  for (int64_t i = 0; i < count; ++i) {
    out[i] = 2 * StreamUniform(seed, first + i) - 1;
  }
  return values;
}

uint64_t DrawSeed(const AnalysisContext& analysis, absl::string_view name) {
  return StreamSeed(analysis.seed, absl::StrCat("analysis/", name));
}

void FillWithNormals(uint64_t seed, const at::Tensor& to) {
  constexpr int64_t kPart = 1 << 14;  // small enough for the caches
  ForEachPart(to.size(0), kPart, [&](int64_t first, int64_t count) {
    const int64_t pairs = (count + 1) / 2;
    const at::Tensor radius = at::empty({pairs}, at::kDouble), angle = at::empty_like(radius);
    double* const radii = radius.mutable_data_ptr<double>();
    double* const angles = angle.mutable_data_ptr<double>();
    for (int64_t i = 0; i < pairs; ++i) {
      radii[i] = -StreamUniform(seed, first + 2 * i);
      angles[i] = StreamUniform(seed, first + 2 * i + 1);
    }
    // 1 − u is never 0, so that its logarithm is finite.
    radius.log1p_().mul_(-2).sqrt_();
    angle.mul_(2 * std::numbers::pi);
    const at::Tensor normals = at::stack({radius * angle.cos(), radius * angle.sin()}, 1);
    to.narrow(0, first, count).copy_(normals.flatten().narrow(0, 0, count));
  });
}

at::Tensor NormalSequence(uint64_t seed, int64_t count) {
  at::Tensor values = at::empty({count}, at::kDouble);
  FillWithNormals(seed, values);
  return values;
}

}  // namespace ablate::engine
