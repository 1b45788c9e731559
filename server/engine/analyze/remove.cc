// Measures the effect of removing a part of a model: the loss without it.
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/torch/model/transformer.h"

namespace ablate::engine {
namespace {

constexpr int kEveryPlace = -1;

// A part that is removed from one block, or from all.
struct RemovedPlace {
  int block = kEveryPlace;
  int head = kEveryPlace;
};

// Spreads each row's weights uniformly over the keys that it may see, as its scores show.
class EvenWeights {
 public:
  Hook OfScores() {
    return Observe([this](const at::Tensor& scores) {
      allowed_ = scores.ne(-std::numeric_limits<double>::infinity());
    });
  }
  Hook OfWeights() {
    return [this](const at::Tensor& weights) {
      const at::Tensor allowed = allowed_.to(weights.scalar_type());
      return allowed * (weights.sum(-1, true) / allowed.sum(-1, true));
    };
  }

 private:
  at::Tensor allowed_;  // [B·H, S, T]
};

class Removal : public Computation {
 public:
  Removal(const RemoveOptions& options, const AnalysisContext& analysis)
      : options_(options),
        analysis_(analysis),
        subject_(analysis.subjects[0]),
        places_(PlacesOf(options.part, subject_.config.model)),
        scores_(at::zeros({static_cast<int64_t>(places_.size()) + 1, 3}, at::kDouble)),
        sums_(at::zeros({TakesMeans() ? subject_.config.model.layers : 0,
                         WidthOf(options.part, subject_.config.model)},
                        at::kDouble)) {}

  // All batches for the means, then for the whole model, then without each part.
  int64_t pieces() const override {
    return analysis_.batch_count() * (scores_.size(0) + (TakesMeans() ? 1 : 0));
  }

  void Add(int64_t piece) override {
    const int64_t pass = piece / analysis_.batch_count() - (TakesMeans() ? 1 : 0);
    const TokenBatch& batch = analysis_.Batch(piece % analysis_.batch_count());
    if (pass < 0) {
      AddMeans(batch);
      return;
    }
    EvenWeights even;
    std::vector<std::pair<std::string, Hook>> hooks;
    if (pass > 0) hooks = HooksWithout(places_[static_cast<size_t>(pass) - 1], &even);
    const Hooks made = HooksOf(analysis_, subject_.config.model, std::move(hooks));
    const Score score = ScoreOf(subject_, batch, {.hooks = &made});
    scores_[pass] += at::tensor({score.loss, score.correct, score.targets}, at::kDouble);
  }

  std::vector<StateTensor> State() override { return {{"scores", scores_}, {"sums", sums_}}; }

  AnalysisResult Finish() override {
    AnalysisResult result;
    const std::vector<double> whole = MeansOf(0);
    AddNumber("loss", whole[0], &result);
    AddNumber("accuracy", whole[1], &result);
    std::vector<double> losses, accuracies;
    for (size_t i = 0; i < places_.size(); ++i) {
      const std::vector<double> without = MeansOf(static_cast<int64_t>(i) + 1);
      const std::string place = "/" + NameOf(places_[i]);
      AddNumber("loss" + place, without[0], &result);
      AddNumber("loss_change" + place, without[0] - whole[0], &result);
      AddNumber("accuracy" + place, without[1], &result);
      AddNumber("accuracy_change" + place, without[1] - whole[1], &result);
      if (places_[i].block == kEveryPlace) continue;
      losses.push_back(without[0] - whole[0]);
      accuracies.push_back(without[1] - whole[1]);
    }
    if (Targets() > 0) {
      AddArray("loss_change", losses, &result);
      AddArray("accuracy_change", accuracies, &result);
    }
    return result;
  }

 private:
  static std::vector<RemovedPlace> PlacesOf(RemovedPart part, const ModelConfig& model) {
    std::vector<RemovedPlace> places;
    const int heads = part == RemovedPart::kHead ? model.heads : 1;
    for (int block = 0; block < model.layers; ++block) {
      for (int head = 0; head < heads; ++head) places.push_back({block, head});
    }
    places.emplace_back();  // all parts at once
    return places;
  }

  bool TakesMeans() const { return options_.replacement == Replacement::kMean; }
  double Targets() const { return scores_[0][2].item<double>(); }

  HookPoint RemovedHookPoint() const {
    switch (options_.part) {
      case RemovedPart::kHead:
        return HookPoint::kAttentionHeads;
      case RemovedPart::kAttention:
        return HookPoint::kAttentionOutput;
      case RemovedPart::kFeedForward:
        break;
    }
    return HookPoint::kFeedForwardOutput;
  }

  void AddMeans(const TokenBatch& batch) {
    std::vector<std::string> hook_points;
    for (int block = 0; block < subject_.config.model.layers; ++block) {
      hook_points.push_back(HookPointName(RemovedHookPoint(), block));
    }
    std::vector<at::Tensor> sums;
    for (const at::Tensor& rows : CaptureRows(analysis_, subject_, batch, hook_points)) {
      sums.push_back(rows.sum(0));
    }
    sums_ += OnHost(at::stack(sums));
  }

  std::vector<std::pair<std::string, Hook>> HooksWithout(const RemovedPlace& place,
                                                         EvenWeights* even) const {
    std::vector<std::pair<std::string, Hook>> hooks;
    for (int block = 0; block < subject_.config.model.layers; ++block) {
      if (place.block != kEveryPlace && place.block != block) continue;
      if (options_.replacement == Replacement::kUniform) {
        hooks.emplace_back(HookPointName(HookPoint::kAttentionScores, block), even->OfScores());
        hooks.emplace_back(HookPointName(HookPoint::kAttentionWeights, block), even->OfWeights());
      } else {
        hooks.emplace_back(HookPointName(RemovedHookPoint(), block), Replaced(block, place.head));
      }
    }
    return hooks;
  }

  // Returns the features at the hook point of a part.
  static int64_t WidthOf(RemovedPart part, const ModelConfig& model) {
    return part == RemovedPart::kHead ? QueryWidth(model) : model.width;
  }

  // Returns a hook that replaces the features of a head, or all features, by the mean at the hook
  // point or by 0.
  Hook Replaced(int block, int head) const {
    const ModelConfig& model = subject_.config.model;
    const bool one = options_.part == RemovedPart::kHead && head != kEveryPlace;
    const int64_t width = WidthOf(options_.part, model);
    const int64_t count = one ? HeadSize(model) : width, first = one ? head * count : 0;
    at::Tensor value = at::zeros({width}, at::kDouble);
    if (TakesMeans()) value = sums_[block] / static_cast<double>(analysis_.tokens);
    return [value, first, count](const at::Tensor& x) {
      at::Tensor without = x.clone();
      without.narrow(-1, first, count).copy_(value.narrow(0, first, count));
      return without;
    };
  }

  std::string NameOf(const RemovedPlace& place) const {
    if (place.block == kEveryPlace) return "all";
    switch (options_.part) {
      case RemovedPart::kHead:
        return absl::StrCat("block.", place.block, ".head.", place.head);
      case RemovedPart::kAttention:
        return absl::StrCat("block.", place.block, ".attention");
      case RemovedPart::kFeedForward:
        break;
    }
    return absl::StrCat("block.", place.block, ".feed_forward");
  }

  // Returns loss and accuracy of a pass. If logits are NaN the accuracy is undefined, although
  // argmax returns a token.
  std::vector<double> MeansOf(int64_t pass) const {
    const double loss = scores_[pass][0].item<double>() / Targets();
    const double accuracy = scores_[pass][1].item<double>() / Targets();
    return {loss, std::isfinite(loss) ? accuracy : std::numeric_limits<double>::quiet_NaN()};
  }

  void AddNumber(const std::string& name, double value, AnalysisResult* result) const {
    result->numbers.push_back(NumberOf(name, value, WithoutTargets(Targets())));
  }

  void AddArray(const std::string& name, const std::vector<double>& values,
                AnalysisResult* result) const {
    const at::Tensor flat = at::tensor(values, at::kDouble);
    result->arrays.push_back(
        options_.part == RemovedPart::kHead
            ? ArrayOf(name, {"block", "head"}, flat.view({-1, subject_.config.model.heads}))
            : ArrayOf(name, {"block"}, flat));
  }

  const RemoveOptions options_;
  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  const std::vector<RemovedPlace> places_;
  at::Tensor scores_;  // [1 + places, 3]: sums of losses and of correct predictions, targets; the
                       // whole model first
  at::Tensor sums_;    // sums of the activations at the hook points over tokens, [blocks or 0, d]
};

}  // namespace

MadeComputation Compute(const RemoveOptions& options, const AnalysisContext& analysis) {
  return std::make_unique<Removal>(options, analysis);
}

}  // namespace ablate::engine
