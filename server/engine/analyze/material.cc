#include "server/engine/analyze/material.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numbers>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/engine/data/random.h"
#include "server/engine/model/layers.h"
#include "server/engine/model/transformer.h"
#include "server/engine/train/checkpoint.h"

namespace ablate::engine {

absl::StatusOr<SubjectModel> ReadSubject(RunConfig config, absl::string_view checkpoint) {
  SubjectModel subject;
  subject.layout = MakeLayout(config.model, config.training.rule);
  const absl::StatusOr<CheckpointTensors> read = ReadCheckpoint(subject.layout, checkpoint);
  if (!read.ok()) return read.status();
  subject.config = std::move(config);
  subject.values = FlatTensor(read->type, read->parameters);
  const at::Tensor buffers = FlatTensor(read->type, read->buffers);
  if (buffers.numel() > 0) subject.buffers = buffers;
  subject.parameters =
      BindParameters(subject.config.model, subject.layout,
                     ParameterViews(subject.layout, subject.values), subject.buffers);
  return subject;
}

absl::StatusOr<Material> ReadMaterial(const AnalysisRequest& request) {
  Material material;
  material.seed = request.seed;
  std::vector<const RunConfig*> configs;
  for (const AnalysisSubject& from : request.subjects) {
    absl::StatusOr<SubjectModel> subject = ReadSubject(from.config, from.checkpoint);
    if (!subject.ok()) {
      return absl::Status(subject.status().code(), absl::StrCat("subjects[", configs.size(),
                                                                "]: ", subject.status().message()));
    }
    material.subjects.push_back(*std::move(subject));
    configs.push_back(&from.config);
  }
  if (KindOf(request.options).default_tokens == 0) return material;
  absl::StatusOr<SequencesRead> read = ReadSequences(request.options, request.inputs, configs);
  if (!read.ok()) return read.status();
  if (absl::Status refused = RefusalOf(read->problems); !refused.ok()) return refused;
  material.batches = std::move(read->batches);
  for (const TokenBatch& batch : material.batches) material.tokens += batch.tokens();
  return material;
}

std::string SiteOr(const std::string& site, const ModelConfig& model) {
  return site.empty() ? SiteName(Site::kBlockOutput, model.layers - 1) : site;
}

std::vector<std::string> SitesOr(const std::vector<std::string>& sites, const ModelConfig& model) {
  if (!sites.empty()) return sites;
  std::vector<std::string> states = {SiteName(Site::kEmbedding, 0)};
  for (int i = 0; i < model.layers; ++i) states.push_back(SiteName(Site::kBlockOutput, i));
  return states;
}

void CheckStop(const Material& material) {
  TORCH_CHECK(material.stop == nullptr || !material.stop->load(), "the analysis is to stop");
}

Taps TapsOf(const Material& material, const ModelConfig& model,
            std::vector<std::pair<std::string, Tap>> taps) {
  for (int i = 0; i < model.layers; ++i) {
    taps.emplace_back(SiteName(Site::kBlockOutput, i),
                      Observe([&material](const at::Tensor&) { CheckStop(material); }));
  }
  absl::StatusOr<Taps> made = Taps::Make(model, std::move(taps));
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

std::vector<at::Tensor> CaptureSites(const Material& material, const SubjectModel& subject,
                                     const TokenBatch& batch,
                                     const std::vector<std::string>& sites) {
  const at::NoGradGuard no_grad;
  ModelConfig everywhere = subject.config.model;
  everywhere.loss = LossPositions::kAll;  // otherwise the last block would compute last positions
                                          // only
  std::vector<at::Tensor> captured(sites.size());
  std::vector<std::pair<std::string, Tap>> observers;
  for (size_t i = 0; i < sites.size(); ++i) {
    observers.emplace_back(sites[i],
                           Observe([&captured, i](const at::Tensor& x) { captured[i] = x; }));
  }
  const Taps taps = TapsOf(material, everywhere, std::move(observers));
  Logits(everywhere, subject.parameters, BatchOf(subject, batch), {.taps = &taps});
  return captured;
}

std::vector<at::Tensor> CaptureRows(const Material& material, const SubjectModel& subject,
                                    const TokenBatch& batch,
                                    const std::vector<std::string>& sites) {
  std::vector<at::Tensor> rows = CaptureSites(material, subject, batch, sites);
  for (at::Tensor& of : rows) of = of.flatten(0, -2).to(at::kDouble);
  return rows;
}

Score ScoreOf(const SubjectModel& subject, const TokenBatch& batch, const Pass& pass) {
  const at::NoGradGuard no_grad;
  const BatchTensors tensors = BatchOf(subject, batch);
  const at::Tensor logits = Logits(subject.config.model, subject.parameters, tensors, pass);
  at::Tensor hit = logits.argmax(-1).eq(tensors.targets);  // [N]
  Score score;
  score.targets = static_cast<double>(tensors.targets.numel());
  if (tensors.counted.defined()) {
    hit = hit.logical_and(tensors.counted.to(at::kBool));
    score.targets = tensors.counted.sum(at::kDouble).item<double>();
  }
  score.loss = TokenLosses(logits, tensors).sum(at::kDouble).item<double>();
  score.hits = hit.sum().item<double>();
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
    const uint64_t word = SplitMix64::At(seed, static_cast<uint64_t>(first + i));
    out[i] = 2 * std::ldexp(static_cast<double>(word >> 11), -53) - 1;
  }
  return values;
}

uint64_t DrawSeed(const Material& material, absl::string_view name) {
  return StreamSeed(material.seed, absl::StrCat("analysis/", name));
}

at::Tensor NormalSequence(uint64_t seed, int64_t count) {
  at::Tensor values = at::empty({count}, at::kDouble);
  double* const out = values.mutable_data_ptr<double>();
  for (int64_t i = 0; i < count; i += 2) {
    const auto uniform = [&](int64_t n) {
      return std::ldexp(static_cast<double>(SplitMix64::At(seed, static_cast<uint64_t>(n)) >> 11),
                        -53);
    };
    // 1 − u is never 0, so that its logarithm is finite.
    const double radius = std::sqrt(-2 * std::log1p(-uniform(i)));
    const double angle = 2 * std::numbers::pi * uniform(i + 1);
    out[i] = radius * std::cos(angle);
    if (i + 1 < count) out[i + 1] = radius * std::sin(angle);
  }
  return values;
}

}  // namespace ablate::engine
