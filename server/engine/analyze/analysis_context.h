// Holds the context of an analysis (`AnalysisContext`), models at their checkpoints and the tokens
// that they read, and the operations on it that most kinds share.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_ANALYSIS_CONTEXT_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_ANALYSIS_CONTEXT_H_

#include <ATen/ATen.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/analysis.h"
#include "server/engine/config.h"
#include "server/engine/core/analyses/inputs.h"
#include "server/engine/core/data/batches.h"
#include "server/engine/core/layout.h"
#include "server/engine/torch/model/batch.h"
#include "server/engine/torch/model/parameters.h"
#include "server/engine/torch/model/pass.h"

namespace ablate::engine {

// A model with the parameters of a checkpoint, without autograd.
struct SubjectModel {
  RunConfig config;
  ParameterLayout layout;
  at::Tensor values;           // [P], in the precision of the checkpoint
  at::Tensor buffers;          // undefined if the layout has none
  ModelParameters parameters;  // views of both
};

// The context of an analysis.
struct AnalysisContext {
  std::vector<SubjectModel> subjects;
  // The batches that all subjects read, as in SequencesRead.
  std::vector<TokenBatch> batches;
  std::shared_ptr<const TaggedRows> tagged;  // likewise
  uint64_t tokens = 0;                       // of all batches
  int64_t batch_count() const { return static_cast<int64_t>(batches.size()); }
  const TokenBatch& Batch(int64_t i) const { return batches[static_cast<size_t>(i)]; }
  uint32_t seed = 0;
  const std::atomic<bool>* stop = nullptr;  // null: never stopped
};

// Loads the models and data that a request names. Errors as MakeAnalysis's.
absl::StatusOr<AnalysisContext> ReadAnalysisContext(AnalysisRequest request,
                                                    at::Device device = at::kCPU);

// Returns INVALID_ARGUMENT if the bytes aren't a checkpoint of such a run. On the CPU the
// parameters stay in the memory of a mapped file.
absl::StatusOr<SubjectModel> ReadSubject(RunConfig config, const SharedBytes& checkpoint,
                                         at::Device device = at::kCPU);

// --- Shared by kinds
//
// Models, batches, activations and vectors of all parameters are on the device of the subjects.
// Small tables, such as sums over targets, are the host's on every device.

// Returns the values in the host's memory: the tensor itself, or a copy of a device's.
inline at::Tensor OnHost(const at::Tensor& values) { return values.to(at::kCPU); }

// Returns the requested hook point; the last block's output if the options name none.
std::string HookPointOr(const std::string& hook_point, const ModelConfig& model);
// Returns the requested hook points; the embedding and every block's output if the options name
// none.
std::vector<std::string> HookPointsOr(const std::vector<std::string>& hook_points,
                                      const ModelConfig& model);

// Throws c10::Error if the analysis must stop.
void CheckStop(const AnalysisContext& analysis);
// Returns the hooks, plus one in every block that checks whether the analysis must stop.
Hooks HooksOf(const AnalysisContext& analysis, const ModelConfig& model,
              std::vector<std::pair<std::string, Hook>> hooks);

// Returns the number of targets that count.
double TargetsIn(const std::vector<TokenBatch>& batches);

// Returns why a mean over so many targets is undefined; nullopt if it is defined.
std::optional<Undefined> WithoutTargets(double targets);

// Returns the batch as tensors for the model.
BatchTensors BatchOf(const SubjectModel& subject, const TokenBatch& batch);
// Returns the rows [n, …] of values [B·T, …] at positions that aren't padding.
at::Tensor RealRows(const at::Tensor& values, const BatchTensors& batch);

// Returns the activation at each of `hook_points` as the model computes it (core/hook_points.h),
// at all positions, also if the loss reads only the last ones. An evaluation pass, without
// autograd.
std::vector<at::Tensor> CaptureHookPoints(const AnalysisContext& analysis,
                                          const SubjectModel& subject, const TokenBatch& batch,
                                          const std::vector<std::string>& hook_points);
// Returns the same for hook points with features per token: [n, features] in float64, in the order
// of the batch.
std::vector<at::Tensor> CaptureRows(const AnalysisContext& analysis, const SubjectModel& subject,
                                    const TokenBatch& batch,
                                    const std::vector<std::string>& hook_points);

// Captures activations of one subject batch by batch. The first batch, which constructors of
// analyses read for shapes or means, isn't computed again if it is also the first that is taken.
class CapturedBatches {
 public:
  // Runs a pass over the first batch. `analysis` and `subject` must outlive it.
  CapturedBatches(const AnalysisContext& analysis, const SubjectModel& subject,
                  std::vector<std::string> hook_points);

  const std::vector<std::string>& hook_points() const { return hook_points_; }
  // Returns the first batch's activations, as CaptureHookPoints. Call it before any batch is taken.
  const std::vector<at::Tensor>& first() const { return first_; }
  // Returns the same as CaptureRows.
  std::vector<at::Tensor> FirstRows() const;
  // Returns the activations of a batch, as CaptureHookPoints.
  std::vector<at::Tensor> Take(int64_t batch);
  // Returns the activations of a batch, as CaptureRows.
  std::vector<at::Tensor> TakeRows(int64_t batch);

 private:
  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  std::vector<std::string> hook_points_;
  std::vector<at::Tensor> first_;  // empty after a batch was taken
};

// Sums over the targets that count, from an evaluation's logits [N, V], in float64.
struct Score {
  double loss = 0;
  double correct = 0;
  double targets = 0;
};
Score ScoreOf(const SubjectModel& subject, const TokenBatch& batch, const Pass& pass);

// The model's parameters as autograd leaves, for exact derivatives or those of its learning rule.
struct Leaves {
  explicit Leaves(const SubjectModel& subject);
  std::vector<at::Tensor> all;  // one per parameter of the layout, [shape…]
  ModelParameters parameters;
};

// Returns the type of a float64, float32 or int64 tensor; throws c10::Error for others.
TensorType TensorTypeOf(const at::Tensor& values);
// Returns a tensor's elements as an array of the result, with one axis per dimension.
AnalysisArray ArrayOf(std::string name, std::vector<std::string> axes, const at::Tensor& values);

// Returns 2·uniform(seed, n) − 1 for n = first … first + count − 1, float64.
// docs/reference/random-streams.md defines uniform.
at::Tensor UniformSequence(uint64_t seed, int64_t first, int64_t count);

// Returns the seed of the draws for a tensor or vector called `name`. It depends on the analysis's
// seed and the name, so that models that share a tensor share its draws.
uint64_t DrawSeed(const AnalysisContext& analysis, absl::string_view name);
// Fills `to` [n], of any precision, with the first standard normals of such draws (Box–Muller).
void FillWithNormals(uint64_t seed, const at::Tensor& to);
at::Tensor NormalSequence(uint64_t seed, int64_t count);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_ANALYSIS_CONTEXT_H_
