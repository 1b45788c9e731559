// Finds heads that continue a repeated sequence: reads random tokens that are repeated.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/repeated_tokens.h"
#include "server/engine/core/analyses/inputs.h"
#include "server/engine/core/data/documents.h"
#include "server/engine/core/data/random.h"
#include "server/engine/task.h"
#include "server/engine/torch/model/transformer.h"

namespace ablate::engine {
namespace {

// Sums of the losses of targets.
enum RepeatLoss { kFirstLoss, kRepeatedLoss, kRepeatLosses };

constexpr const char* kRepeatNames[kRepeatSums] = {"induction", "previous_token",
                                                   "duplicate_token"};

// The tokens that may be drawn: those of the run's data, except the boundary of documents.
struct DrawnTokens {
  uint64_t count = 0;
  uint64_t left_out = 0;  // the boundary; `count` if there is none

  int64_t Draw(SplitMix64* random) const {
    const uint64_t token = random->Below(count);
    return static_cast<int64_t>(token + (token >= left_out ? 1 : 0));
  }
};

class Induction : public Computation {
 public:
  Induction(const InductionOptions& options, DrawnTokens drawn, const AnalysisContext& analysis)
      : period_(PeriodOf(options, analysis.subjects[0].config.model)),
        length_(period_ * options.repeats),
        sequences_(options.sequences),
        drawn_(drawn),
        analysis_(analysis),
        subject_(analysis.subjects[0]),
        model_(subject_.config.model) {
    model_.loss = LossPositions::kAll;  // otherwise the last block would only query last positions
    const auto parameters = static_cast<double>(subject_.layout.size);
    const auto tokens = static_cast<int64_t>(PieceTokens(KindOf(options), parameters));
    rows_ = std::max<int64_t>(1, tokens / length_);
    weights_ = at::zeros({model_.layers, model_.heads, kRepeatSums}, at::kDouble);
    losses_ = at::zeros({kRepeatLosses}, at::kDouble);
  }

  int64_t pieces() const override { return (sequences_ + rows_ - 1) / rows_; }

  void Add(int64_t piece) override {
    const at::NoGradGuard no_grad;
    const TokenBatch batch = Sequences(piece * rows_, std::min(sequences_, (piece + 1) * rows_));
    std::vector<at::Tensor> blocks(static_cast<size_t>(model_.layers));
    std::vector<std::pair<std::string, Hook>> observers;
    for (int i = 0; i < model_.layers; ++i) {
      const auto look = [&, i](const at::Tensor& weights) {
        blocks[static_cast<size_t>(i)] =
            SumsOfRepeats(weights, period_).view({batch.rows, model_.heads, kRepeatSums}).sum(0);
      };
      observers.emplace_back(HookPointName(HookPoint::kAttentionWeights, i), Observe(look));
    }
    const Hooks hooks = HooksOf(analysis_, model_, std::move(observers));
    const BatchTensors tensors = BatchOf(subject_, batch);
    const at::Tensor logits = Logits(model_, subject_.parameters, tensors, {.hooks = &hooks});
    const at::Tensor losses =
        TokenLosses(logits, tensors).to(at::kDouble).view({batch.rows, length_});
    // The loss at a position is of the token after it; the last position has none.
    const at::Tensor first = losses.narrow(1, 0, period_ - 1).sum();
    const at::Tensor repeated = losses.narrow(1, period_ - 1, length_ - period_).sum();
    const at::Tensor of_batch = at::stack(blocks);
    weights_ += OnHost(of_batch);
    losses_ += OnHost(at::stack({first, repeated}));
  }

  std::vector<StateTensor> State() override { return {{"weights", weights_}, {"losses", losses_}}; }

  AnalysisResult Finish() override {
    AnalysisResult result;
    const auto queries = RepeatQueries(length_, period_);
    for (size_t i = 0; i < queries.size(); ++i) {
      const auto of = static_cast<double>(sequences_ * queries[i]);
      Describe(kRepeatNames[i], weights_.select(-1, static_cast<int64_t>(i)) / of, &result);
    }
    const bool even = HasNormalisedRows(model_) && model_.attention.window == 0;
    const auto chance = ChanceOfRepeats(length_, period_);
    for (size_t i = 0; i < chance.size(); ++i) {
      result.numbers.push_back(
          NumberOf(absl::StrCat(kRepeatNames[i], "_chance"), chance[i],
                   even ? std::nullopt : std::optional(Undefined::kUnnormalised)));
    }
    const auto first = static_cast<double>(sequences_ * (period_ - 1));
    const auto repeated = static_cast<double>(sequences_ * (length_ - period_));
    result.numbers.push_back(NumberOf("first_loss", losses_[kFirstLoss].item<double>() / first));
    result.numbers.push_back(
        NumberOf("repeated_loss", losses_[kRepeatedLoss].item<double>() / repeated));
    return result;
  }

 private:
  // Returns sequences `first` to `end`. Each has a random stream of its own.
  TokenBatch Sequences(int64_t first, int64_t end) const {
    TokenBatch batch;
    batch.rows = end - first;
    batch.length = length_;
    batch.lengths.assign(static_cast<size_t>(batch.rows), length_);
    for (int64_t sequence = first; sequence < end; ++sequence) {
      SplitMix64 random(DrawSeed(analysis_, absl::StrCat("induction/", sequence)));
      std::vector<int64_t> row;
      for (int64_t i = 0; i < period_; ++i) row.push_back(drawn_.Draw(&random));
      for (int64_t i = period_; i < length_; ++i) {
        row.push_back(row[static_cast<size_t>(i - period_)]);
      }
      batch.inputs.insert(batch.inputs.end(), row.begin(), row.end());
      batch.targets.insert(batch.targets.end(), row.begin() + 1, row.end());
      batch.targets.push_back(TokenBatch::kIgnored);
    }
    return batch;
  }

  // Adds means by head, [layers, H], with the largest of all and of every block.
  void Describe(const std::string& name, const at::Tensor& heads, AnalysisResult* result) const {
    const auto add = [&](const std::string& place, const at::Tensor& value) {
      result->numbers.push_back(NumberOf(absl::StrCat(name, place), value.item<double>()));
    };
    add("", heads.amax());
    for (int64_t i = 0; i < model_.layers; ++i) add(absl::StrCat("/block.", i), heads[i].amax());
    for (int64_t i = 0; i < model_.layers; ++i) {
      for (int64_t h = 0; h < model_.heads; ++h) {
        add(absl::StrCat("/block.", i, ".head.", h), heads[i][h]);
      }
    }
    result->arrays.push_back(ArrayOf(name, {"block", "head"}, heads));
  }

  const int64_t period_;
  const int64_t length_;  // of a sequence
  const int64_t sequences_;
  const DrawnTokens drawn_;
  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  ModelConfig model_;
  int64_t rows_ = 0;    // sequences in a piece
  at::Tensor weights_;  // [layers, H, kRepeatSums]
  at::Tensor losses_;   // [kRepeatLosses]
};

absl::StatusOr<DrawnTokens> DrawnTokensOf(const TaskConfig& task) {
  ASSIGN_OR_RETURN(const TaskShape shape, KindOf(task).shape(task));
  const auto vocabulary = static_cast<uint64_t>(shape.vocabulary);
  const auto* documents = std::get_if<DocumentsTask>(&task);
  if (documents == nullptr) return DrawnTokens{vocabulary, vocabulary};
  return DrawnTokens{vocabulary - 1, documents->documents->bos()};
}

}  // namespace

MadeComputation Compute(const InductionOptions& options, const AnalysisContext& analysis) {
  ASSIGN_OR_RETURN(const DrawnTokens drawn, DrawnTokensOf(analysis.subjects[0].config.task));
  return std::make_unique<Induction>(options, drawn, analysis);
}

}  // namespace ablate::engine
