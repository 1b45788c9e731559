// Defines the table of kinds: name, checks and cost of each.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/analysis.h"
#include "server/engine/core/analyses/dependency_words.h"
#include "server/engine/core/analyses/prediction_cost.h"
#include "server/engine/core/analyses/probe_words.h"
#include "server/engine/core/analyses/prompt_pairs.h"
#include "server/engine/core/analyses/robustness_levels.h"
#include "server/engine/core/hook_points.h"
#include "server/engine/core/layout.h"

namespace ablate::engine {
namespace {

using Problems = std::vector<OptionProblem>;

constexpr double kGradient = 3;  // cost of a gradient in forward passes, including its own
constexpr double kTwoGradients = 2 * (kGradient + 2);  // and their rounding errors
constexpr double kProduct =
    15;  // cost of a product with the Hessian; 9 if its gradient's graph is kept
constexpr uint64_t kMostMappedTokens = 512;

// Returns the features per token at a hook point; 0 if it has no features per token.
uint64_t FeaturesAt(const ModelConfig& model, const std::string& hook_point) {
  for (const ModelHookPoint& place : HookPointsOf(model)) {
    if (place.name != hook_point) continue;
    switch (place.hook_point) {
      case HookPoint::kAttentionScores:
      case HookPoint::kAttentionWeights:
        return 0;
      case HookPoint::kFeedForwardHidden:
        return static_cast<uint64_t>(model.hidden);
      case HookPoint::kAttentionHeads:
        return static_cast<uint64_t>(QueryWidth(model));
      case HookPoint::kLogits:
        return static_cast<uint64_t>(model.vocabulary);
      default:
        return static_cast<uint64_t>(model.width);
    }
  }
  return 0;
}

OptionProblem UnknownHookPoint(const std::string& field, const std::string& hook_point,
                               const std::vector<std::string>& allowed) {
  return {field, hook_point,
          absl::StrCat("the model has no site \"", hook_point, "\" of this kind"),
          absl::StrJoin(allowed, ", ")};
}

// Checks a hook point that must have features per token.
Problems CheckRowHookPoint(const std::string& field, const std::string& hook_point,
                           const ModelConfig& model) {
  if (hook_point.empty() || FeaturesAt(model, hook_point) > 0) return {};
  std::vector<std::string> allowed;
  for (std::string& name : HookPointNames(model)) {
    if (FeaturesAt(model, name) > 0) allowed.push_back(std::move(name));
  }
  return {UnknownHookPoint(field, hook_point, allowed)};
}

Problems CheckRowHookPoints(const std::vector<std::string>& hook_points, const ModelConfig& model) {
  Problems problems;
  for (size_t i = 0; i < hook_points.size(); ++i) {
    const std::string field = absl::StrCat("sites[", i, "]");
    if (hook_points[i].empty())
      problems.push_back({field, "", "it is empty", "a site of the model"});
    for (OptionProblem& problem : CheckRowHookPoint(field, hook_points[i], model)) {
      problems.push_back(std::move(problem));
    }
    if (std::count(hook_points.begin(), hook_points.end(), hook_points[i]) > 1) {
      problems.push_back({field, hook_points[i], "it is named twice", "each site once"});
    }
  }
  return problems;
}

template <typename Options>
const Options& Of(const AnalysisOptions& options) {
  return std::get<Options>(options);
}

uint64_t Squared(uint64_t x) { return x * x; }

uint64_t WidthOf(const RunConfig& config) { return static_cast<uint64_t>(config.model.width); }

uint64_t States(const ModelConfig& model) { return static_cast<uint64_t>(model.layers) + 1; }

// Returns the features at the requested hook points, or at the embedding and every block's output.
std::vector<uint64_t> FeaturesAtAll(const std::vector<std::string>& hook_points,
                                    const ModelConfig& model) {
  std::vector<uint64_t> features;
  for (const std::string& hook_point : hook_points)
    features.push_back(FeaturesAt(model, hook_point));
  if (hook_points.empty()) features.assign(States(model), static_cast<uint64_t>(model.width));
  return features;
}

// Bytes of one number.
uint64_t BytesOf(Precision precision) { return precision == Precision::kFloat64 ? 8 : 4; }

uint64_t ParametersOf(const RunConfig& config) {
  return static_cast<uint64_t>(MakeLayout(config.model).size);
}

// --- spectrum
Problems CheckSpectrum(const AnalysisOptions& options, const ModelConfig& model) {
  return CheckRowHookPoint("site", Of<SpectrumOptions>(options).site, model);
}

AnalysisCost SpectrumCost(const AnalysisOptions& options, const RunConfig& config, uint64_t,
                          size_t) {
  const std::string& hook_point = Of<SpectrumOptions>(options).site;
  const uint64_t features =
      hook_point.empty() ? WidthOf(config) : FeaturesAt(config.model, hook_point);
  return {1, 8 * Squared(features), 16 * features, AnalysisPass::kEverywhere};
}

// --- cka
Problems CheckCka(const AnalysisOptions& options, const ModelConfig& model) {
  return CheckRowHookPoints(Of<CkaOptions>(options).sites, model);
}

Problems CheckCkaOfAll(const AnalysisOptions& options,
                       const std::vector<const ModelConfig*>& models) {
  const auto& cka = Of<CkaOptions>(options);
  uint64_t count = 0, columns = 0, bytes = 0;  // 8 times the features of a pair, over all pairs
  for (const ModelConfig* model : models) {
    for (const uint64_t features : FeaturesAtAll(cka.sites, *model)) {
      ++count;
      columns += features;
      bytes += 8 * features * columns;
    }
  }
  if (count < 2) {
    return {{"sites", "", "there is one only", "two or more, or several subjects"}};
  }
  if (cka.estimator != CkaEstimator::kBiased || bytes <= kMostCkaBytes) return {};
  return {{"estimator", "biased", absl::StrCat("biased needs sums of all pairs, ", bytes, " bytes"),
           absl::StrCat(kMostCkaBytes, " bytes, with fewer sites, or debiased")}};
}

// Assumes that all subjects equal this one.
AnalysisCost CkaCost(const AnalysisOptions& options, const RunConfig& config, uint64_t tokens,
                     size_t subjects) {
  const auto& cka = Of<CkaOptions>(options);
  const std::vector<uint64_t> features = FeaturesAtAll(cka.sites, config.model);
  uint64_t columns = 0, squares = 0;
  for (const uint64_t of : features) {
    columns += subjects * of;
    squares += subjects * Squared(of);
  }
  const uint64_t count = subjects * features.size(), arrays = 16 * Squared(count);
  const uint64_t sums = 4 * (Squared(columns) + squares);  // 8 times the features of every pair
  const auto pass = AnalysisPass::kEverywhere;
  if (sums <= kMostCkaBytes) return {static_cast<double>(subjects), sums, arrays, pass};
  // By minibatches: the rows that are gathered together, and the Gram matrices of one block.
  const uint64_t block = std::max<uint64_t>(1, std::min<uint64_t>(tokens, cka.block));
  const uint64_t blocks = std::max<uint64_t>(1, tokens / block);
  const uint64_t block_bytes = BytesOf(config.precision) * columns * block;
  const uint64_t together = std::clamp<uint64_t>(kMostCkaBytes / block_bytes, 1, blocks);
  const uint64_t passes = (blocks + together - 1) / together;
  return {static_cast<double>(passes * subjects),
          together * block_bytes + 8 * count * Squared(block), arrays, pass};
}

// --- activations, weights, capture
Problems CheckActivations(const AnalysisOptions& options, const ModelConfig& model) {
  return CheckRowHookPoints(Of<ActivationsOptions>(options).sites, model);
}

// Returns the cost of summarising values at several places, given their numbers: the state, the
// arrays, and the passes, which stand for forwards.
AnalysisCost ValuesCost(const std::vector<uint64_t>& values, bool histograms, Precision precision) {
  constexpr auto kExact = static_cast<uint64_t>(kExactQuantiles);
  const uint64_t histogram = histograms ? 8 * static_cast<uint64_t>(kHistogramBins) : 0;
  AnalysisCost cost = {histograms ? 2.0 : 1.0, 0, histograms ? 8 + histogram : 0};
  for (const uint64_t of : values) {
    const bool exact = of <= kExact;
    if (!exact) cost.forwards = 2;
    cost.state_bytes += histogram + (exact ? BytesOf(precision) * of : 8 * kQuantileBins);
    cost.array_bytes += histogram;
  }
  return cost;
}

AnalysisCost ActivationsCost(const AnalysisOptions& options, const RunConfig& config,
                             uint64_t tokens, size_t) {
  const auto& activations = Of<ActivationsOptions>(options);
  std::vector<uint64_t> values = FeaturesAtAll(activations.sites, config.model);
  for (uint64_t& of : values) of *= tokens;
  AnalysisCost cost = ValuesCost(values, activations.histograms, config.precision);
  cost.pass = AnalysisPass::kEverywhere;
  return cost;
}

AnalysisCost WeightsCost(const AnalysisOptions& options, const RunConfig& config, uint64_t,
                         size_t) {
  std::vector<uint64_t> values;
  for (const ParameterInfo& parameter : MakeLayout(config.model).parameters) {
    values.push_back(static_cast<uint64_t>(parameter.size));
  }
  AnalysisCost cost = ValuesCost(values, Of<WeightsOptions>(options).histograms, config.precision);
  cost.forwards = 0;
  return cost;
}

Problems CheckCapture(const AnalysisOptions& options, const ModelConfig& model) {
  const auto& hook_points = Of<CaptureOptions>(options).sites;
  if (hook_points.empty())
    return {{"sites", "", "there is none", "at least one site of the model"}};
  const std::vector<std::string> names = HookPointNames(model);
  Problems problems;
  for (size_t i = 0; i < hook_points.size(); ++i) {
    const std::string field = absl::StrCat("sites[", i, "]");
    if (std::find(names.begin(), names.end(), hook_points[i]) == names.end()) {
      problems.push_back(UnknownHookPoint(field, hook_points[i], names));
    } else if (std::count(hook_points.begin(), hook_points.end(), hook_points[i]) > 1) {
      problems.push_back({field, hook_points[i], "it is named twice", "each site once"});
    }
  }
  return problems;
}

// At hook points of queries and keys each sequence has a matrix of its own length.
Problems CheckCaptured(const AnalysisOptions& options, const ModelConfig& model,
                       const SequenceSummary& read) {
  const auto& hook_points = Of<CaptureOptions>(options).sites;
  if (read.shortest == read.longest) return {};
  for (size_t i = 0; i < hook_points.size(); ++i) {
    if (FeaturesAt(model, hook_points[i]) > 0) continue;
    return {{absl::StrCat("sites[", i, "]"), hook_points[i],
             absl::StrCat(hook_points[i],
                          " has a matrix for each sequence, and the sequences that are read have "
                          "from ",
                          read.shortest, " to ", read.longest, " tokens"),
             "sites with features at each token, or a prompt"}};
  }
  return {};
}

AnalysisCost CaptureCost(const AnalysisOptions& options, const RunConfig& config, uint64_t tokens,
                         size_t) {
  const uint64_t per_token =  // of every head's matrix, if sequences fill the context
      static_cast<uint64_t>(config.model.heads) * static_cast<uint64_t>(config.model.context);
  uint64_t elements = 0;
  for (const std::string& hook_point : Of<CaptureOptions>(options).sites) {
    const uint64_t features = FeaturesAt(config.model, hook_point);
    elements += tokens * (features > 0 ? features : per_token);
  }
  const uint64_t bytes = BytesOf(config.precision) * elements;
  return {1, bytes, bytes + 16 * tokens, AnalysisPass::kEverywhere};
}

// --- loss_landscape, hessian
Problems CheckLossLandscape(const AnalysisOptions& options, const ModelConfig&) {
  const auto& landscape = Of<LossLandscapeOptions>(options);
  if (landscape.dims == 1 || landscape.points <= 101) return {};
  return {{"points", absl::StrCat(landscape.points), absl::StrCat(landscape.points, " is too many"),
           "2 to 101 where dims is 2"}};
}

AnalysisCost LossLandscapeCost(const AnalysisOptions& options, const RunConfig&, uint64_t, size_t) {
  const auto& landscape = Of<LossLandscapeOptions>(options);
  const double points = std::pow(landscape.points, landscape.dims) * landscape.directions;
  const auto bytes = static_cast<uint64_t>(8 * points);
  const auto norms = uint64_t{8} * landscape.directions * landscape.dims;
  return {1 + points, 8 + bytes + norms, bytes + norms + uint64_t{8} * landscape.points,
          AnalysisPass::kMoved};
}

Problems CheckHessian(const AnalysisOptions& options, const ModelConfig&) {
  const auto& hessian = Of<HessianOptions>(options);
  if (hessian.top <= hessian.iterations) return {};
  return {{"top", absl::StrCat(hessian.top),
           absl::StrCat(hessian.iterations, " iterations find no more than so many eigenvalues"),
           absl::StrCat("1 to iterations: ", hessian.iterations)}};
}

AnalysisCost HessianCost(const AnalysisOptions& options, const RunConfig& config, uint64_t,
                         size_t) {
  const auto& hessian = Of<HessianOptions>(options);
  const uint64_t parameters = ParametersOf(config);
  const uint64_t steps = std::min<uint64_t>(hessian.iterations, parameters) *
                         std::max<uint64_t>(hessian.density_runs, 1);
  const uint64_t basis = BytesOf(config.precision) * parameters * hessian.iterations;
  const uint64_t sums = 16 * steps + 8 * uint64_t{hessian.trace_samples};
  // Each step of a run is orthogonalised against all earlier steps, twice.
  const double orthogonal = 4.0 * static_cast<double>(steps * parameters) * hessian.iterations;
  return {kGradient + kProduct * static_cast<double>(steps + hessian.trace_samples),
          basis + 8 * parameters + sums, sums + uint64_t{16} * 1001 + 32 * uint64_t{hessian.top},
          AnalysisPass::kScored, orthogonal};
}

// --- gradients and norms
AnalysisCost GradientFlowCost(const AnalysisOptions&, const RunConfig& config, uint64_t, size_t) {
  return {kGradient, 8 * (ParametersOf(config) + States(config.model)), 16 * States(config.model)};
}

AnalysisCost GradientAlignmentCost(const AnalysisOptions&, const RunConfig& config, uint64_t,
                                   size_t) {
  return {kTwoGradients, 16 * ParametersOf(config), 0};
}

Problems CheckHasNorm(const AnalysisOptions&, const ModelConfig& model) {
  const bool outside = model.norm.final || model.embedding_norm;
  if (outside || HasAttentionNorm(model) || HasFeedForwardNorm(model)) return {};
  return {{"", "", "the model has no norm", "a model with one"}};
}

// Checks that norms have a mean or a component along their input.
Problems CheckNormJacobian(const AnalysisOptions& options, const ModelConfig& model) {
  Problems problems = CheckHasNorm(options, model);
  if (!problems.empty() || !IsPointwise(model.norm.kind)) return problems;
  return {{"", "",
           absl::StrCat("the model's norms are ", NameOf(model.norm.kind),
                        ", functions of each feature alone, which remove nothing from a gradient"),
           "a model whose model.norm.kind is layer, rms, batch or l2"}};
}

uint64_t Norms(const ModelConfig& model) { return 4 * static_cast<uint64_t>(model.layers) + 2; }

AnalysisCost NormJacobianCost(const AnalysisOptions&, const RunConfig& config, uint64_t, size_t) {
  return {kGradient, 128 * Norms(config.model), 0};
}

Problems CheckNormStatistics(const AnalysisOptions& options, const ModelConfig& model) {
  Problems problems = CheckHasNorm(options, model);
  const auto& sizes = Of<NormStatisticsOptions>(options).batch;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string field = absl::StrCat("batch[", i, "]"), size = absl::StrCat(sizes[i]);
    if (sizes[i] == 0) problems.push_back({field, size, "there is no empty batch", "at least 1"});
    if (std::count(sizes.begin(), sizes.end(), sizes[i]) > 1) {
      problems.push_back({field, size, "it is named twice", "each size once"});
    }
  }
  return problems;
}

AnalysisCost NormStatisticsCost(const AnalysisOptions& options, const RunConfig& config, uint64_t,
                                size_t) {
  const uint64_t passes = 1 + Of<NormStatisticsOptions>(options).batch.size();
  const bool batch = config.model.norm.kind == NormKind::kBatch;
  const uint64_t features = batch ? WidthOf(config) : 0;
  return {static_cast<double>(passes), Norms(config.model) * (120 * passes + 48 * features), 0};
}

AnalysisCost NormResponseCost(const AnalysisOptions& options, const RunConfig&, uint64_t, size_t) {
  return {0, 0, uint64_t{56} * Of<NormResponseOptions>(options).size};
}

// --- attention, remove
Problems CheckAttends(const AnalysisOptions&, const ModelConfig& model) {
  if (Attends(model)) return {};
  return {{"", "", "the model has no attention", "a model whose model.attention.kind is not none"}};
}

Problems CheckAttentionRead(const AnalysisOptions& options, const ModelConfig& model,
                            const SequenceSummary& read) {
  const auto& attention = Of<AttentionOptions>(options);
  Problems problems;
  if (!attention.dependency.empty()) {
    problems = CheckDependency(attention.dependency, model.attention.causal, read);
  }
  const bool one = read.sequences == 1 && read.longest <= kMostMappedTokens;
  if (attention.maps.empty() || one) return problems;
  problems.push_back(
      {"maps", "",
       absl::StrCat("they are of one sequence of at most ", kMostMappedTokens, " tokens, and ",
                    read.sequences, " of up to ", read.longest, " are read"),
       "with a prompt, or one document"});
  return problems;
}

AnalysisCost AttentionCost(const AnalysisOptions& options, const RunConfig& config, uint64_t tokens,
                           size_t) {
  const auto layers = static_cast<uint64_t>(config.model.layers);
  const auto heads = static_cast<uint64_t>(config.model.heads);
  const uint64_t sums = 8 * layers * (heads * (5 + 3 * heads) + 1);
  uint64_t maps = 0, text = 0;  // upper bounds
  if (!Of<AttentionOptions>(options).maps.empty()) {
    constexpr uint64_t kMostTokenBytes = 128;  // of a token of GPT-2
    const uint64_t mapped = std::min(tokens, kMostMappedTokens);
    maps = 8 * (layers * (heads + 1) + 1) * Squared(mapped);
    text = (8 + kMostTokenBytes) * mapped;
  }
  // Logarithms per weight: three for each head, and two for each pair of heads, with the first
  // token and without.
  const double logarithms = static_cast<double>(tokens * layers * heads * (heads + 2));
  return {1, sums + maps, sums + maps + text, AnalysisPass::kEverywhere,
          10 * logarithms * config.model.context};
}

Problems CheckRemove(const AnalysisOptions& options, const ModelConfig& model) {
  const auto& remove = Of<RemoveOptions>(options);
  if (remove.part != RemovedPart::kFeedForward && !Attends(model)) {
    return CheckAttends(options, model);
  }
  if (remove.replacement != Replacement::kUniform || remove.part == RemovedPart::kAttention) {
    return {};
  }
  return {{"replacement", "uniform", "only weights of attention can be uniform",
           "mean, zero; uniform where part is attention"}};
}

AnalysisCost RemoveCost(const AnalysisOptions& options, const RunConfig& config, uint64_t, size_t) {
  const auto& remove = Of<RemoveOptions>(options);
  const double parts = static_cast<double>(config.model.layers) *
                       (remove.part == RemovedPart::kHead ? config.model.heads : 1);
  const bool mean = remove.replacement == Replacement::kMean;
  const uint64_t features = remove.part == RemovedPart::kHead
                                ? static_cast<uint64_t>(QueryWidth(config.model))
                                : WidthOf(config);
  const uint64_t means = mean ? static_cast<uint64_t>(config.model.layers) * features : 0;
  return {parts + 2 + (mean ? 1 : 0), 8 * means + static_cast<uint64_t>(24 * (parts + 2)),
          static_cast<uint64_t>(16 * parts)};
}

// --- trajectory
Problems CheckOneLayout(const AnalysisOptions&, const std::vector<const ModelConfig*>& models) {
  const int64_t size = MakeLayout(*models.front()).size;
  const bool same = std::all_of(models.begin(), models.end(), [&](const ModelConfig* model) {
    return MakeLayout(*model).size == size;
  });
  if (same) return {};
  return {{"", "", "its subjects have different numbers of parameters", "checkpoints of one run"}};
}

// Holds all checkpoints, and both axes, which are computed in float64.
AnalysisCost TrajectoryCost(const AnalysisOptions& options, const RunConfig& config, uint64_t,
                            size_t subjects) {
  const uint64_t points = Squared(Of<TrajectoryOptions>(options).points);
  const uint64_t vectors = (subjects + 2) * BytesOf(config.precision) + 2 * sizeof(double);
  return {static_cast<double>(points + subjects),
          vectors * ParametersOf(config) + 8 * (points + subjects + Squared(subjects)),
          8 * (points + 2 * uint64_t{Of<TrajectoryOptions>(options).points} + 3 * subjects + 2),
          AnalysisPass::kMoved};
}

// --- logit_lens, predictions
// The head is applied at each depth; the last one is the model's own pass.
AnalysisCost LogitLensCost(const AnalysisOptions&, const RunConfig& config, uint64_t tokens,
                           size_t) {
  const ModelConfig& model = config.model;
  const double targets = TargetsAmong(tokens, model);
  const double head = static_cast<double>(model.vocabulary) * model.width;
  const double share = targets / static_cast<double>(std::max<uint64_t>(tokens, 1));
  const double heads = model.layers * share * head / static_cast<double>(ParametersOf(config));
  return {1 + heads, 32 * States(model), 32 * States(model), AnalysisPass::kScored,
          static_cast<double>(States(model)) * ProbabilityOperations(targets, model)};
}

AnalysisCost PredictionsCost(const AnalysisOptions& options, const RunConfig& config,
                             uint64_t tokens, size_t) {
  const uint64_t bins = Of<PredictionsOptions>(options).bins;
  const auto context = static_cast<uint64_t>(config.model.context);
  const uint64_t sequences = tokens;  // at most
  const uint64_t arrays = 8 * (3 * bins + 2 * context + 4 * sequences);
  return {1, arrays + 56 - 8 * sequences, arrays, AnalysisPass::kScored,
          ProbabilityOperations(TargetsAmong(tokens, config.model), config.model)};
}

// --- induction
Problems CheckInduction(const AnalysisOptions& options, const ModelConfig& model) {
  if (!Attends(model)) return CheckAttends(options, model);
  if (!model.attention.causal) {
    return {{"", "", "queries of the model see later tokens",
             "a model whose model.attention.causal is true"}};
  }
  const auto& induction = Of<InductionOptions>(options);
  const auto context = static_cast<uint64_t>(model.context);
  const uint64_t most = context / induction.repeats;
  if (induction.period == 0 && most < 2) {
    return {{"repeats", absl::StrCat(induction.repeats),
             absl::StrCat("the model's context has ", context, " tokens, fewer than two for each"),
             absl::StrCat("at most ", context / 2)}};
  }
  const uint64_t tokens = uint64_t{induction.period} * induction.repeats;
  if (tokens <= context) return {};
  return {{"period", absl::StrCat(induction.period),
           absl::StrCat(induction.period, " tokens, ", induction.repeats, " times, are ", tokens,
                        ", and the model's context has ", context),
           most >= 2 ? absl::StrCat("at most ", most, " with ", induction.repeats, " repeats")
                     : absl::StrCat("period · repeats of at most ", context)}};
}

AnalysisCost InductionCost(const AnalysisOptions& options, const RunConfig& config, uint64_t,
                           size_t) {
  const auto& induction = Of<InductionOptions>(options);
  const auto heads =
      static_cast<uint64_t>(config.model.layers) * static_cast<uint64_t>(config.model.heads);
  AnalysisCost cost = {1, 8 * (3 * heads + 2), 24 * heads, AnalysisPass::kEverywhere};
  cost.tokens =
      uint64_t{PeriodOf(induction, config.model)} * induction.repeats * induction.sequences;
  return cost;
}

// In the order of AnalysisOptions.
constexpr AnalysisKind kKinds[] = {
    {.name = "spectrum", .default_tokens = 20'000, .check = CheckSpectrum, .cost = SpectrumCost},
    {.name = "cka",
     .most_subjects = 64,
     .default_tokens = 20'000,
     .check = CheckCka,
     .cost = CkaCost,
     .check_all = CheckCkaOfAll},
    {.name = "activations",
     .default_tokens = 20'000,
     .check = CheckActivations,
     .cost = ActivationsCost},
    {.name = "weights", .cost = WeightsCost},
    {.name = "capture",
     .default_tokens = 2'000,
     .check = CheckCapture,
     .cost = CaptureCost,
     .check_read = CheckCaptured},
    {.name = "loss_landscape",
     .default_tokens = 5'000,
     .check = CheckLossLandscape,
     .cost = LossLandscapeCost},
    {.name = "hessian",
     .default_tokens = 5'000,
     .check = CheckHessian,
     .cost = HessianCost,
     .piece_forwards = kProduct},
    // Revision 1: uses training batches if a BatchNorm's backward matters.
    {.name = "gradient_flow",
     .default_tokens = 5'000,
     .cost = GradientFlowCost,
     .piece_forwards = kGradient,
     .revision = 1},
    // Revision 2: gradients that are 0 up to rounding have no cosine.
    {.name = "gradient_alignment",
     .default_tokens = 5'000,
     .cost = GradientAlignmentCost,
     .piece_forwards = kTwoGradients,
     .revision = 2},
    {.name = "norm_jacobian",
     .default_tokens = 5'000,
     .check = CheckNormJacobian,
     .cost = NormJacobianCost,
     .piece_forwards = kGradient,
     .revision = 1},
    {.name = "norm_statistics",
     .default_tokens = 5'000,
     .check = CheckNormStatistics,
     .cost = NormStatisticsCost},
    // Revision 1: has the pointwise norms.
    {.name = "norm_response",
     .least_subjects = 0,
     .most_subjects = 0,
     .cost = NormResponseCost,
     .revision = 1},
    // Revision 2: has sink_share, and the text of tokens with maps.
    {.name = "attention",
     .default_tokens = 20'000,
     .check = CheckAttends,
     .cost = AttentionCost,
     .check_read = CheckAttentionRead,
     .revision = 2},
    {.name = "remove", .default_tokens = 20'000, .check = CheckRemove, .cost = RemoveCost},
    {.name = "trajectory",
     .least_subjects = 3,
     .most_subjects = 64,
     .default_tokens = 5'000,
     .cost = TrajectoryCost,
     .check_all = CheckOneLayout,
     .steps_of_one_run = true},
    {.name = "logit_lens", .default_tokens = 20'000, .cost = LogitLensCost, .piece_forwards = 2},
    // Revision 1: has by_sequence.
    {.name = "predictions", .default_tokens = 20'000, .cost = PredictionsCost, .revision = 1},
    {.name = "induction", .check = CheckInduction, .cost = InductionCost},
    // Revision 1: has recovered_all, and the text of tokens.
    {.name = "patch",
     .check = CheckPatch,
     .cost = PatchCost,
     .revision = 1,
     .check_data = CheckPairs},
    {.name = "robustness",
     .default_tokens = 5'000,
     .check = CheckRobustness,
     .cost = RobustnessCost,
     .piece_forwards = kGradient + 1},
    {.name = "probe",
     .default_tokens = 50'000,
     .cost = ProbeCost,
     .check_read = CheckProbed,
     .needs_tagged = true},
};
static_assert(std::size(kKinds) == std::variant_size_v<AnalysisOptions>);

}  // namespace

absl::Span<const AnalysisKind> AnalysisKinds() { return kKinds; }

const AnalysisKind& KindOf(const AnalysisOptions& options) { return kKinds[options.index()]; }

uint32_t PeriodOf(const InductionOptions& options, const ModelConfig& model) {
  constexpr uint32_t kUsual = 25;
  if (options.period > 0) return options.period;
  return std::min(kUsual, static_cast<uint32_t>(model.context) / options.repeats);
}

AnalysisNumber NumberOf(std::string name, double value, std::optional<Undefined> undefined) {
  if (!undefined && !std::isfinite(value)) undefined = Undefined::kNonFinite;
  return {std::move(name), undefined ? 0 : value, undefined};
}

AnalysisNumber UndefinedNumber(std::string name, Undefined reason) {
  return {std::move(name), 0, reason};
}

absl::StatusOr<std::string> WriteArrays(const std::vector<AnalysisArray>& arrays) {
  std::vector<TensorView> views;
  std::map<std::string, std::string> metadata;
  for (const AnalysisArray& array : arrays) {
    views.push_back({array.name, array.type, array.shape, array.bytes});
    metadata[absl::StrCat("axes.", array.name)] = absl::StrJoin(array.axes, ",");
  }
  return WriteSafetensors(views, metadata);
}

}  // namespace ablate::engine
