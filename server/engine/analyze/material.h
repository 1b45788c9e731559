// What analyses work on: models at their checkpoints, the tokens that they read, and the few things
// that most kinds do with both.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_MATERIAL_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_MATERIAL_H_

#include <ATen/ATen.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/analysis.h"
#include "server/engine/analyze/inputs.h"
#include "server/engine/config.h"
#include "server/engine/data/batches.h"
#include "server/engine/layout.h"
#include "server/engine/model/batch.h"
#include "server/engine/model/parameters.h"
#include "server/engine/model/pass.h"

namespace ablate::engine {

// A model with the parameters of a checkpoint, outside autograd.
struct SubjectModel {
  RunConfig config;
  ParameterLayout layout;
  at::Tensor values;           // [P], in the precision of the checkpoint
  at::Tensor buffers;          // undefined where the layout has none
  ModelParameters parameters;  // views of both
};

struct Material {
  std::vector<SubjectModel> subjects;
  // What all subjects read, as SequencesRead has it.
  std::vector<TokenBatch> batches;
  uint64_t tokens = 0;  // of all batches
  int64_t batch_count() const { return static_cast<int64_t>(batches.size()); }
  const TokenBatch& Batch(int64_t i) const { return batches[static_cast<size_t>(i)]; }
  uint32_t seed = 0;
  const std::atomic<bool>* stop = nullptr;  // null: nobody stops it
};

// Reads what a request names. Errors as MakeAnalysis's.
absl::StatusOr<Material> ReadMaterial(const AnalysisRequest& request);

// INVALID_ARGUMENT if the file is no checkpoint of such a run.
absl::StatusOr<SubjectModel> ReadSubject(RunConfig config, absl::string_view checkpoint);

// --- For kinds

// The site that options name: the last block's output if they name none.
std::string SiteOr(const std::string& site, const ModelConfig& model);
// Those that they name, or the embedding and every block's output.
std::vector<std::string> SitesOr(const std::vector<std::string>& sites, const ModelConfig& model);

// Throws c10::Error if the analysis is to stop.
void CheckStop(const Material& material);
// The taps, and at every block one that looks whether the analysis is to stop.
Taps TapsOf(const Material& material, const ModelConfig& model,
            std::vector<std::pair<std::string, Tap>> taps);

// How many targets count.
double TargetsIn(const std::vector<TokenBatch>& batches);

// The reason that a mean over so many targets does not exist; none if it does.
std::optional<Undefined> WithoutTargets(double targets);

// The batch as the model takes it.
BatchTensors BatchOf(const SubjectModel& subject, const TokenBatch& batch);
// The rows [n, …] of values [B·T, …] at positions of the batch that are no padding.
at::Tensor RealRows(const at::Tensor& values, const BatchTensors& batch);

// What comes to each of `sites`, as the model has it (model/sites.h), at all positions also where
// the loss reads the last ones only. An evaluation, outside autograd.
std::vector<at::Tensor> CaptureSites(const Material& material, const SubjectModel& subject,
                                     const TokenBatch& batch,
                                     const std::vector<std::string>& sites);
// The same of sites with features at each token, [n, features] in float64, in the order of the
// batch.
std::vector<at::Tensor> CaptureRows(const Material& material, const SubjectModel& subject,
                                    const TokenBatch& batch, const std::vector<std::string>& sites);

// Of an evaluation's scores, [N, V]: sums over the targets that count, in float64.
struct Score {
  double loss = 0;
  double hits = 0;
  double targets = 0;
};
Score ScoreOf(const SubjectModel& subject, const TokenBatch& batch, const Pass& pass);

// The model's parameters as leaves of autograd, for exact derivatives or those of its rule.
struct Leaves {
  explicit Leaves(const SubjectModel& subject);
  std::vector<at::Tensor> all;  // one a parameter of the layout, [shape…]
  ModelParameters parameters;
};

// Of float64, float32 and int64; throws c10::Error for others.
TensorType TensorTypeOf(const at::Tensor& values);
// A tensor's elements as an array of the result, an axis for each dimension.
AnalysisArray ArrayOf(std::string name, std::vector<std::string> axes, const at::Tensor& values);

// 2·uniform(seed, n) − 1 of docs/reference/random-streams.md for n = first … first + count − 1, float64.
at::Tensor UniformSequence(uint64_t seed, int64_t first, int64_t count);

// The seed of the draws of a tensor or a vector called `name`: a function of both, so that models
// that share a tensor share what is drawn for it.
uint64_t DrawSeed(const Material& material, absl::string_view name);
// The n-th standard normal of such draws, [count] from the beginning, float64 (Box–Muller).
at::Tensor NormalSequence(uint64_t seed, int64_t count);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_MATERIAL_H_
