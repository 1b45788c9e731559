// Measures which activations carry the difference between two prompts: puts activations of one
// prompt into the pass over the other.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/token_text.h"
#include "server/engine/core/analyses/inputs.h"
#include "server/engine/core/analyses/prompt_pairs.h"
#include "server/engine/core/layout.h"
#include "server/engine/torch/model/transformer.h"

namespace ablate::engine {
namespace {

// Least difference between the prompts of a pair, relative to the larger one of both.
constexpr double kLeastDifference = 1e-6;

// Features whose values are replaced in one pass.
struct PatchedPlace {
  std::string name;
  int64_t hook_point = 0;  // among those that are read
  int64_t first = 0;       // feature
  int64_t count = 0;
};

// Reads each pair twice whole, then patched at one place after the other. A batch repeats a prompt.
// Its first row is patched at all positions and the others at one position each. Values are
// compared within a row of equal batches, so that equal activations give equal bits.
class Patching : public Computation {
 public:
  Patching(const PatchOptions& options, std::vector<PromptPair> pairs,
           const AnalysisContext& analysis)
      : options_(options),
        pairs_(std::move(pairs)),
        analysis_(analysis),
        subject_(analysis.subjects[0]),
        model_(subject_.config.model),
        hook_points_(ReadHookPoints(options.part, model_)),
        places_(PlacesOf(options.part, model_)) {
    model_.loss = LossPositions::kLast;
    for (const PromptPair& pair : pairs_) {
      longest_ = std::max(longest_, pair.length());
      shortest_ = std::min(shortest_, pair.length());
    }
    positions_ = shortest_ == longest_ ? longest_ : 0;
    rows_ = PatchedRows(longest_, positions_, static_cast<double>(subject_.layout.size));
    const auto points = static_cast<int64_t>(hook_points_.size());
    const auto places = static_cast<int64_t>(places_.size());
    const bool heads = options.part == PatchedPart::kHead;
    given_ = at::zeros({points, rows_ * longest_, heads ? QueryWidth(model_) : model_.width},
                       subject_.values.options());
    whole_ = at::zeros({2, rows_}, at::kDouble);
    differences_ = at::zeros({static_cast<int64_t>(pairs_.size()), 2}, at::kDouble);
    means_ = at::zeros({places, positions_ + 1}, at::kDouble);
    squares_ = at::zeros({places, positions_ + 1}, at::kDouble);
  }

  int64_t pieces() const override { return static_cast<int64_t>(pairs_.size()) * PiecesOfPair(); }

  void Add(int64_t piece) override {
    const int64_t pair = piece / PiecesOfPair(), step = piece % PiecesOfPair();
    if (step < 2) {
      ReadWhole(pair, step);
    } else {
      ReadPatched(pair, (step - 2) / Batches(), (step - 2) % Batches());
    }
  }

  std::vector<StateTensor> State() override {
    return {{"given", given_},
            {"whole", whole_},
            {"differences", differences_},
            {"means", means_},
            {"squares", squares_}};
  }

  AnalysisResult Finish() override {
    AnalysisResult result;
    const at::Tensor differences = differences_.mean(0);
    const bool denoise = options_.direction == PatchDirection::kDenoise;
    result.numbers.push_back(
        NumberOf("clean_difference", differences[denoise ? kGiving : kReading].item<double>()));
    result.numbers.push_back(
        NumberOf("corrupt_difference", differences[denoise ? kReading : kGiving].item<double>()));
    const auto count = static_cast<int64_t>(pairs_.size());
    const int64_t used = UsedBefore(count);
    const std::optional<Undefined> none =
        used > 0 ? std::nullopt : std::optional(Undefined::kZeroDenominator);
    const std::optional<Undefined> one =
        none || used > 1 ? none : std::optional(Undefined::kTooFewTokens);
    const auto divisor = static_cast<double>(used * (used - 1));
    const at::Tensor errors = (squares_ / divisor).sqrt();  // [places, positions + 1]
    AddNumbers("recovered", means_, none, &result);
    AddNumbers("recovered_standard_error", errors, one, &result);
    if (positions_ > 0 && !none) AddArray("recovered", means_, &result);
    if (positions_ > 0 && !one) AddArray("recovered_standard_error", errors, &result);
    if (options_.part == PatchedPart::kHead && !none) {
      result.arrays.push_back(ArrayOf("recovered_all", {"block", "head"},
                                      means_.select(1, 0).reshape({model_.layers, model_.heads})));
    }
    if (positions_ > 0 && !none) AddTokenText(subject_.config, pairs_[0].clean, &result);
    if (used < count) {
      result.notes.push_back(absl::StrCat(
          count - used, " of ", count,
          " pairs are left out of recovered, because both of their prompts have the same "
          "difference of logits"));
    }
    if (positions_ == 0) {
      result.notes.push_back(
          absl::StrCat("positions are not patched one by one, because prompts have from ",
                       shortest_, " to ", longest_, " tokens"));
    }
    return result;
  }

 private:
  // The two passes over a pair, in this order: the one that gives activations, and the one into
  // which they are put.
  enum WholePass { kGiving, kReading };

  static std::vector<std::string> ReadHookPoints(PatchedPart part, const ModelConfig& model) {
    std::vector<std::string> names;
    if (part == PatchedPart::kResidual) names.push_back(HookPointName(HookPoint::kEmbedding, 0));
    for (int block = 0; block < model.layers; ++block) {
      names.push_back(HookPointName(PatchedHookPoint(part), block));
    }
    return names;
  }

  static HookPoint PatchedHookPoint(PatchedPart part) {
    switch (part) {
      case PatchedPart::kAttention:
        return HookPoint::kAttentionOutput;
      case PatchedPart::kFeedForward:
        return HookPoint::kFeedForwardOutput;
      case PatchedPart::kHead:
        return HookPoint::kAttentionHeads;
      case PatchedPart::kResidual:
        break;
    }
    return HookPoint::kBlockOutput;
  }

  static std::vector<PatchedPlace> PlacesOf(PatchedPart part, const ModelConfig& model) {
    const bool residual = part == PatchedPart::kResidual;
    std::vector<PatchedPlace> places;
    if (residual) places.push_back({"embedding", 0, 0, model.width});
    for (int block = 0; block < model.layers; ++block) {
      const std::string name = absl::StrCat("block.", block);
      const int64_t point = block + (residual ? 1 : 0);
      switch (part) {
        case PatchedPart::kResidual:
          places.push_back({name, point, 0, model.width});
          break;
        case PatchedPart::kAttention:
          places.push_back({name + ".attention", point, 0, model.width});
          break;
        case PatchedPart::kFeedForward:
          places.push_back({name + ".feed_forward", point, 0, model.width});
          break;
        case PatchedPart::kHead:
          for (int64_t head = 0; head < model.heads; ++head) {
            places.push_back({absl::StrCat(name, ".head.", head), point, head * HeadSize(model),
                              HeadSize(model)});
          }
          break;
      }
    }
    return places;
  }

  // Batches per place: their rows are for all positions together, then for each.
  int64_t Batches() const { return (positions_ + rows_) / rows_; }
  int64_t PiecesOfPair() const { return 2 + static_cast<int64_t>(places_.size()) * Batches(); }
  const PromptPair& Pair(int64_t pair) const { return pairs_[static_cast<size_t>(pair)]; }

  const std::vector<int64_t>& Prompt(const PromptPair& pair, WholePass pass) const {
    const bool clean = (options_.direction == PatchDirection::kDenoise) == (pass == kGiving);
    return clean ? pair.clean : pair.corrupt;
  }

  // Returns logit(right) − logit(wrong) at the last position of each row, [rows].
  at::Tensor LogitDifferences(const PromptPair& pair, WholePass pass,
                              std::vector<std::pair<std::string, Hook>> hooks) const {
    const at::NoGradGuard no_grad;
    const std::vector<int64_t>& prompt = Prompt(pair, pass);
    TokenBatch batch;
    batch.rows = rows_;
    batch.length = pair.length();
    for (int64_t row = 0; row < rows_; ++row) {
      batch.inputs.insert(batch.inputs.end(), prompt.begin(), prompt.end());
    }
    batch.targets.assign(static_cast<size_t>(rows_), 0);  // unused
    batch.lengths.assign(static_cast<size_t>(rows_), batch.length);
    const Hooks made = HooksOf(analysis_, model_, std::move(hooks));
    const at::Tensor logits = Logits(model_, subject_.parameters, BatchOf(subject_, batch),
                                     {.hooks = &made});  // [rows, V]
    return OnHost(logits.select(1, pair.right).to(at::kDouble) -
                  logits.select(1, pair.wrong).to(at::kDouble));
  }

  void ReadWhole(int64_t index, int64_t step) {
    const WholePass pass = step == 0 ? kGiving : kReading;
    std::vector<at::Tensor> seen(hook_points_.size());
    std::vector<std::pair<std::string, Hook>> observers;
    for (size_t i = 0; pass == kGiving && i < seen.size(); ++i) {
      observers.emplace_back(hook_points_[i],
                             Observe([&seen, i](const at::Tensor& x) { seen[i] = x; }));
    }
    const at::Tensor differences = LogitDifferences(Pair(index), pass, std::move(observers));
    for (size_t i = 0; pass == kGiving && i < seen.size(); ++i) {
      given_[static_cast<int64_t>(i)].narrow(0, 0, seen[i].size(0)).copy_(seen[i]);
    }
    whole_[pass].copy_(differences);
    differences_[index][pass].copy_(differences[0]);
  }

  void ReadPatched(int64_t index, int64_t place, int64_t batch) {
    const PromptPair& pair = Pair(index);
    const PatchedPlace& of = places_[static_cast<size_t>(place)];
    const int64_t first = batch * rows_;  // of the columns of means_
    std::vector<std::pair<std::string, Hook>> hooks;
    hooks.emplace_back(hook_points_[static_cast<size_t>(of.hook_point)],
                       Patched(of, first, pair.length()));
    const at::Tensor patched = LogitDifferences(pair, kReading, std::move(hooks));
    if (!IsUsed(index)) return;
    const at::Tensor apart = whole_[kGiving] - whole_[kReading];
    const at::Tensor recovered = at::where(apart.isfinite(), (patched - whole_[kReading]) / apart,
                                           std::numeric_limits<double>::quiet_NaN());
    const int64_t count = std::min(rows_, positions_ + 1 - first);
    const at::Tensor values = recovered.narrow(0, 0, count);
    const at::Tensor mean = means_[place].narrow(0, first, count);
    const at::Tensor change = values - mean;
    mean.add_(change / static_cast<double>(UsedBefore(index) + 1));
    squares_[place].narrow(0, first, count).add_(change * (values - mean));
  }

  // Returns a hook that puts given values at a place: row 0 of all batches gets them at every
  // position, row 1 + t at position t. `first` is the batch's first row among them.
  Hook Patched(const PatchedPlace& place, int64_t first, int64_t length) const {
    const at::Tensor row = at::arange(first, first + rows_).unsqueeze(1);
    const at::Tensor replaced =
        row.eq(at::arange(1, length + 1)).logical_or(row.eq(0)).to(given_.device());  // [rows, T]
    const at::Tensor given = given_[place.hook_point].narrow(-1, place.first, place.count);
    return [place, replaced, given](const at::Tensor& x) {
      // The last block computes last positions only.
      const bool every = x.size(0) == replaced.numel();
      const at::Tensor where = every ? replaced.flatten() : replaced.select(1, -1);  // [N]
      at::Tensor patched = x.clone();
      const at::Tensor part = patched.narrow(-1, place.first, place.count);
      part.copy_(at::where(where.unsqueeze(1), given.narrow(0, 0, x.size(0)), part));
      return patched;
    };
  }

  // Returns true if the prompts of a pair differ enough to divide by their difference.
  bool IsUsed(int64_t index) const {
    const double* const differences = differences_.const_data_ptr<double>() + 2 * index;
    const double giving = differences[kGiving], reading = differences[kReading];
    const double apart = std::abs(giving - reading);
    const double scale = std::max(std::abs(giving), std::abs(reading));
    return apart != 0 && !(apart < kLeastDifference * scale);
  }

  int64_t UsedBefore(int64_t end) const {
    int64_t used = 0;
    for (int64_t index = 0; index < end; ++index) used += IsUsed(index) ? 1 : 0;
    return used;
  }

  // Adds the values of patching all positions, by place.
  void AddNumbers(const std::string& name, const at::Tensor& values,
                  std::optional<Undefined> undefined, AnalysisResult* result) const {
    for (size_t i = 0; i < places_.size(); ++i) {
      const double value = values[static_cast<int64_t>(i)][0].item<double>();
      result->numbers.push_back(
          NumberOf(absl::StrCat(name, "/", places_[i].name), value, undefined));
    }
  }

  // Adds the values of patching one position.
  void AddArray(const std::string& name, const at::Tensor& values, AnalysisResult* result) const {
    const at::Tensor by_position = values.narrow(1, 1, positions_);
    switch (options_.part) {
      case PatchedPart::kResidual:
        result->arrays.push_back(ArrayOf(name, {"depth", "position"}, by_position));
        break;
      case PatchedPart::kAttention:
      case PatchedPart::kFeedForward:
        result->arrays.push_back(ArrayOf(name, {"block", "position"}, by_position));
        break;
      case PatchedPart::kHead:
        result->arrays.push_back(
            ArrayOf(name, {"block", "head", "position"},
                    by_position.reshape({model_.layers, model_.heads, positions_})));
        break;
    }
  }

  const PatchOptions options_;
  const std::vector<PromptPair> pairs_;
  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  ModelConfig model_;
  const std::vector<std::string> hook_points_;
  const std::vector<PatchedPlace> places_;
  int64_t longest_ = 0;  // tokens of a prompt
  int64_t shortest_ = std::numeric_limits<int64_t>::max();
  int64_t positions_ = 0;   // that are patched alone
  int64_t rows_ = 0;        // of every batch
  at::Tensor given_;        // activations of the pair's giving pass, [hook points, rows·T, d]
  at::Tensor whole_;        // differences of logits of the pair's whole passes, [2, rows]
  at::Tensor differences_;  // the same in the first row, of each pair, [pairs, 2]
  at::Tensor means_;        // recovered, [places, 1 + positions]: all positions, then each
  at::Tensor squares_;      // sums of squared deviations from means_, likewise
};

}  // namespace

MadeComputation Compute(const PatchOptions& options, const AnalysisContext& analysis) {
  ASSIGN_OR_RETURN(PairsRead read, ReadPairs(options, analysis.subjects[0].config));
  if (!read.problems.empty()) {
    return RefusalOf({InRequest(KindOf(options), read.problems.front())});
  }
  return std::make_unique<Patching>(options, std::move(read.pairs), analysis);
}

}  // namespace ablate::engine
