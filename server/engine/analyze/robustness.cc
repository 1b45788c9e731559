// Measures how the loss grows when words are replaced or embeddings are perturbed.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/perturbed_scores.h"
#include "server/engine/analyze/replaced_words.h"
#include "server/engine/analyze/sequence_sums.h"
#include "server/engine/core/analyses/inputs.h"
#include "server/engine/core/analyses/robustness_levels.h"

namespace ablate::engine {
namespace {

// One perturbed pass over a batch.
struct PerturbedPass {
  Perturbation perturbation;
  double level = 0;
  uint32_t draw = 0;
};

// The values of a level, one for each draw.
struct LevelValues {
  std::vector<double> loss, accuracy, increase, total_loss, macro_f1;
  std::optional<Undefined> undefined;        // of the targets that are compared
  std::optional<Undefined> without_targets;  // of all targets
};

// Returns the mean. Equal values have it to the bit.
double MeanOfDraws(const std::vector<double>& values) {
  double above = 0;
  for (const double value : values) above += value - values[0];
  return values[0] + above / static_cast<double>(values.size());
}

double DeviationOfDraws(const std::vector<double>& values) {
  const double mean = MeanOfDraws(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::vector<PerturbedPass> PassesOf(const RobustnessOptions& options) {
  std::vector<PerturbedPass> passes;
  for (const PerturbationInfo& info : kPerturbations) {
    for (const double level : options.*info.levels) {
      for (uint32_t draw = 0; draw < DrawsOf(info, options); ++draw) {
        passes.push_back({info.perturbation, level, draw});
      }
    }
  }
  return passes;
}

// Returns the batches in parts that have at most `most` tokens also after a fraction of the words
// was replaced, or one row. They are read as they are, too.
std::vector<TokenBatch> PartsToReplace(const std::vector<TokenBatch>& batches,
                                       const WordReplacer& words, double fraction, uint64_t most) {
  std::vector<TokenBatch> parts;
  for (const TokenBatch& batch : batches) {
    int64_t first = 0;
    uint64_t longest = 0;  // of the rows from `first` on
    for (int64_t row = 0; row < batch.rows; ++row) {
      const uint64_t own = words.MostTokens(batch.Rows(row, 1), fraction);
      const auto rows = static_cast<uint64_t>(row - first);
      if (rows > 0 && (rows + 1) * std::max(longest, own) > most) {
        parts.push_back(batch.Rows(first, row - first));
        first = row;
        longest = 0;
      }
      longest = std::max(longest, own);
    }
    parts.push_back(batch.Rows(first, batch.rows - first));
  }
  return parts;
}

// Sums over the compared targets of a sequence.
enum SequenceSum { kSequenceLoss, kSequenceUnperturbed, kSequenceTargets, kSequenceSums };

// Reads each batch as it is, then once for each level and draw. A piece is one pass.
class Robustness : public Computation {
 public:
  // `words` is set if words are replaced; `batches` have the rows of the analysis.
  Robustness(RobustnessOptions options, std::optional<WordReplacer> words,
             std::vector<TokenBatch> batches, const AnalysisContext& analysis)
      : options_(std::move(options)),
        analysis_(analysis),
        subject_(analysis.subjects[0]),
        words_(std::move(words)),
        batches_(std::move(batches)),
        passes_(PassesOf(options_)),
        rms_(EmbeddingRms(subject_, batches_)) {
    size_t most = 0;
    for (const TokenBatch& batch : batches_) {
      most = std::max(most, batch.targets.size());
      first_sequences_.push_back(sequences_);
      sequences_ += batch.rows;
    }
    const auto rows = static_cast<int64_t>(passes_.size()) + 1;
    unperturbed_ = at::zeros({static_cast<int64_t>(most)}, at::kDouble);
    sums_ = at::zeros({rows, kRobustnessSums}, at::kDouble);
    by_sequence_ = at::zeros({rows, kSequenceSums, sequences_}, at::kDouble);
    if (HasClasses()) {
      classes_ = at::zeros({rows, 3, subject_.config.model.vocabulary}, at::kDouble);
    }
  }

  int64_t pieces() const override {
    return static_cast<int64_t>(batches_.size()) * PiecesOfBatch();
  }

  void Add(int64_t piece) override {
    const int64_t batch = piece / PiecesOfBatch(), step = piece % PiecesOfBatch();
    if (step == 0) {
      ReadUnperturbed(batch);
      return;
    }
    const PerturbedPass& pass = passes_[static_cast<size_t>(step - 1)];
    if (pass.perturbation == Perturbation::kReplaceWords) {
      ReadReplaced(batch, pass, step);
    } else {
      ReadMoved(batch, pass, step);
    }
  }

  std::vector<StateTensor> State() override {
    std::vector<StateTensor> state = {
        {"sums", sums_}, {"by_sequence", by_sequence_}, {"unperturbed", unperturbed_}};
    if (HasClasses()) state.push_back({"classes", classes_});
    return state;
  }

  AnalysisResult Finish() override {
    AnalysisResult result;
    const LevelValues clean = ValuesOf(0, 1);
    AddNumbers("", clean, &result);
    result.numbers.push_back(NumberOf("embedding_rms", rms_));
    if (!clean.undefined) result.arrays.push_back(SequencesOf("loss", 0, 1, false));
    int64_t row = 1;
    for (const PerturbationInfo& info : kPerturbations) {
      const std::vector<double>& levels = options_.*info.levels;
      const uint32_t draws = DrawsOf(info, options_);
      std::vector<double> increases;
      for (const double level : levels) {
        const LevelValues values = ValuesOf(row, draws, info.perturbation);
        AddLevel(info, level, values, &result);
        if (!values.undefined) {
          const std::string prefix = LevelName(info, level) + "/";
          result.arrays.push_back(SequencesOf(prefix + "loss", row, draws, false));
          result.arrays.push_back(SequencesOf(prefix + "increase", row, draws, true));
        }
        increases.insert(increases.end(), values.increase.begin(), values.increase.end());
        row += draws;
      }
      if (levels.empty()) continue;
      const auto count = static_cast<int64_t>(levels.size());
      result.arrays.push_back(
          ArrayOf(absl::StrCat("level/", info.name), {"level"}, at::tensor(levels, at::kDouble)));
      result.arrays.push_back(ArrayOf(absl::StrCat("increase/", info.name), {"level", "draw"},
                                      at::tensor(increases, at::kDouble).view({count, draws})));
    }
    if (words_.has_value()) AddNotes(&result);
    return result;
  }

 private:
  int64_t PiecesOfBatch() const { return static_cast<int64_t>(passes_.size()) + 1; }
  const TokenBatch& Batch(int64_t index) const { return batches_[static_cast<size_t>(index)]; }
  bool HasClasses() const { return !HasText(subject_.config.model); }

  void AddClasses(int64_t row, const TargetScores& scores) {
    if (HasClasses()) classes_[row] += CountClasses(scores, subject_.config.model.vocabulary);
  }

  // Returns sums [kRobustnessSums] over all targets of a batch.
  at::Tensor SumsOf(const TargetScores& scores, const at::Tensor& unperturbed, double moved) const {
    const at::Tensor loss = scores.losses.sum(), targets = scores.counted.sum();
    const at::Tensor correct = (scores.counted * scores.predicted.eq(scores.targets)).sum();
    return at::stack({loss, unperturbed.sum(), correct, targets, loss, targets,
                      at::scalar_tensor(moved, at::kDouble)});
  }

  // Returns the columns of by_sequence_ of a pass over a batch, [kSequenceSums, rows].
  at::Tensor ColumnsOf(int64_t row, int64_t batch) {
    return by_sequence_[row].narrow(1, first_sequences_[static_cast<size_t>(batch)],
                                    Batch(batch).rows);
  }

  // Returns sums over the targets [N] of each sequence of a batch, [kSequenceSums, rows].
  static at::Tensor ColumnSums(int64_t rows, const TargetScores& scores,
                               const at::Tensor& unperturbed) {
    return at::stack({scores.losses, unperturbed, scores.counted})
        .view({kSequenceSums, rows, -1})
        .sum(2);
  }

  // Divides the loss of `draws` rows of the sums, or its increase, among the sequences that have
  // targets. Each draw counts alike, whatever targets it has.
  AnalysisArray SequencesOf(const std::string& number, int64_t first, uint32_t draws,
                            bool increase) const {
    const at::Tensor read = by_sequence_[0][kSequenceTargets] > 0;
    at::Tensor sums = at::zeros({sequences_}, at::kDouble), targets = at::zeros_like(sums);
    for (int64_t row = first; row < first + draws; ++row) {
      const at::Tensor of = by_sequence_[row], all = sums_[row][kComparedTargets];
      sums += (increase ? of[kSequenceLoss] - of[kSequenceUnperturbed] : of[kSequenceLoss]) / all;
      targets += of[kSequenceTargets] / all;
    }
    return SequenceArray(number, sums.masked_select(read), targets.masked_select(read));
  }

  // Returns the losses of the batch that was read last as it is, [N].
  at::Tensor UnperturbedLosses(const TokenBatch& batch) const {
    return unperturbed_.narrow(0, 0, static_cast<int64_t>(batch.targets.size()));
  }

  void ReadUnperturbed(int64_t index) {
    const TokenBatch& batch = Batch(index);
    const TargetScores scores = ScoresOf(analysis_, subject_, batch);
    const at::Tensor sums = SumsOf(scores, scores.losses, 0);
    AddClasses(0, scores);
    UnperturbedLosses(batch).copy_(scores.losses);
    ColumnsOf(0, index) += ColumnSums(batch.rows, scores, scores.losses);
    sums_[0] += sums;
  }

  // Reads a batch whose embedding is moved.
  void ReadMoved(int64_t index, const PerturbedPass& pass, int64_t row) {
    const TokenBatch& batch = Batch(index);
    const double size = pass.level * (options_.unit == LevelUnit::kRelative ? rms_ : 1);
    double moved = 0;
    at::Tensor step;  // [B·T, d]
    if (pass.perturbation == Perturbation::kEmbeddingNoise) {
      step = EmbeddingNoise(analysis_, batch, subject_.config.model.width, pass.draw,
                            first_sequences_[static_cast<size_t>(index)]);
    } else {
      const at::Tensor gradient = GradientOf(index);
      moved = CountMoved(gradient, batch.rows);
      step = pass.perturbation == Perturbation::kFgsm ? SignOf(gradient)
                                                      : UnitOf(gradient, batch.rows);
    }
    const TargetScores scores = ScoresOf(analysis_, subject_, batch, size * step);
    const at::Tensor sums = SumsOf(scores, UnperturbedLosses(batch), moved);
    AddClasses(row, scores);
    ColumnsOf(row, index) += ColumnSums(batch.rows, scores, UnperturbedLosses(batch));
    sums_[row] += sums;
  }

  // Returns the gradient of a batch. Consecutive pieces need the same one.
  at::Tensor GradientOf(int64_t index) {
    if (gradient_batch_ != index) {
      gradient_ = EmbeddingGradient(analysis_, subject_, Batch(index));
      gradient_batch_ = index;
    }
    return gradient_;
  }

  void ReadReplaced(int64_t index, const PerturbedPass& pass, int64_t of_pass) {
    const TokenBatch& batch = Batch(index);
    const std::vector<TokenBatch> rows = SplitRows({batch});
    std::vector<ReplacedRow> replaced;
    std::vector<TokenBatch> joined;
    for (size_t row = 0; row < rows.size(); ++row) {
      const int64_t sequence =
          first_sequences_[static_cast<size_t>(index)] + static_cast<int64_t>(row);
      const uint64_t seed =
          DrawSeed(analysis_, absl::StrCat("robustness/words/", pass.draw, "/", sequence));
      replaced.push_back(words_->Replace(rows[row], pass.level, seed));
      joined.push_back(replaced.back().row);
    }
    const TokenBatch read = JoinRows(joined);
    // The targets of words that stay, among those of the batch that is read and of the one as it
    // is.
    std::vector<int64_t> places, originals, sequences;
    for (size_t row = 0; row < rows.size(); ++row) {
      const auto number = static_cast<int64_t>(row);
      for (const ReplacedRow::Stayed& stayed : replaced[row].stayed) {
        places.push_back(number * read.length + stayed.position);
        originals.push_back(number * batch.length + stayed.original);
        sequences.push_back(number);
      }
    }
    const at::Tensor stayed = at::tensor(places, at::kLong);
    const TargetScores scores = ScoresOf(analysis_, subject_, read);
    const at::Tensor correct = scores.predicted.eq(scores.targets).to(at::kDouble);
    const at::Tensor unperturbed =
        UnperturbedLosses(batch).index_select(0, at::tensor(originals, at::kLong));
    const at::Tensor losses = scores.losses.index_select(0, stayed);
    ColumnsOf(of_pass, index)
        .index_add_(1, at::tensor(sequences, at::kLong),
                    at::stack({losses, unperturbed, at::ones_like(losses)}));
    sums_[of_pass] +=
        at::stack({losses.sum(), unperturbed.sum(), correct.index_select(0, stayed).sum(),
                   at::scalar_tensor(static_cast<double>(places.size()), at::kDouble),
                   scores.losses.sum(), scores.counted.sum(), at::zeros({}, at::kDouble)});
  }

  // Returns the values of `draws` rows of the sums, from `first` on.
  LevelValues ValuesOf(int64_t first, uint32_t draws,
                       std::optional<Perturbation> of = std::nullopt) const {
    LevelValues values;
    bool has_targets = true, has_any_target = true, is_moved = false;
    for (int64_t row = first; row < first + draws; ++row) {
      const double* const sums = sums_.const_data_ptr<double>() + row * kRobustnessSums;
      const double targets = sums[kComparedTargets];
      has_targets = has_targets && targets > 0;
      has_any_target = has_any_target && sums[kTotalTargets] > 0;
      is_moved = is_moved || sums[kMovedSequences] > 0;
      const double loss = sums[kComparedLoss] / targets;
      // Without a loss there is no most likely token, although argmax returns one.
      const double if_finite = std::isfinite(loss) ? 1 : std::numeric_limits<double>::quiet_NaN();
      values.loss.push_back(loss);
      values.accuracy.push_back(if_finite * sums[kComparedCorrect] / targets);
      values.increase.push_back(loss - sums[kUnperturbedLoss] / targets);
      values.total_loss.push_back(sums[kTotalLoss] / sums[kTotalTargets]);
      if (HasClasses()) values.macro_f1.push_back(if_finite * MacroF1(classes_[row]));
    }
    if (of == Perturbation::kL2 && !is_moved) values.undefined = Undefined::kZeroGradient;
    if (!has_targets) values.undefined = Undefined::kTooFewTokens;
    values.without_targets = WithoutTargets(has_any_target ? 1 : 0);
    return values;
  }

  // Adds the numbers that the input as it is has as well.
  void AddNumbers(const std::string& prefix, const LevelValues& values,
                  AnalysisResult* result) const {
    const auto add = [&](const char* name, double value) {
      result->numbers.push_back(NumberOf(prefix + name, value, values.undefined));
    };
    const double loss = MeanOfDraws(values.loss);
    add("loss", loss);
    add("perplexity", std::exp(loss));
    add("accuracy", MeanOfDraws(values.accuracy));
    if (HasClasses()) add("macro_f1", MeanOfDraws(values.macro_f1));
  }

  void AddLevel(const PerturbationInfo& info, double level, const LevelValues& values,
                AnalysisResult* result) const {
    const std::string prefix = LevelName(info, level) + "/";
    AddNumbers(prefix, values, result);
    result->numbers.push_back(
        NumberOf(prefix + "increase", MeanOfDraws(values.increase), values.undefined));
    if (info.is_random) {
      const bool one = values.increase.size() == 1;
      result->numbers.push_back(
          NumberOf(prefix + "increase_deviation", one ? 0 : DeviationOfDraws(values.increase),
                   one ? std::optional(Undefined::kTooFewTokens) : values.undefined));
    }
    if (info.perturbation == Perturbation::kReplaceWords) {
      result->numbers.push_back(
          NumberOf(prefix + "total_loss", MeanOfDraws(values.total_loss), values.without_targets));
    }
  }

  void AddNotes(AnalysisResult* result) const {
    size_t few = 0, left_out = 0;
    for (const TokenBatch& row : SplitRows(batches_)) {
      const SequenceWords words = words_->WordsOf(row);
      few += words.words.size() < 2 ? 1 : 0;
      left_out += words.left_out;
    }
    if (few > 0) {
      result->notes.push_back(absl::StrCat(few, " of ", sequences_,
                                           " sequences have fewer than two words, so that none "
                                           "stays if one is replaced"));
    }
    if (left_out > 0) {
      result->notes.push_back(absl::StrCat(left_out,
                                           " words share a token with another word: they are not "
                                           "replaced, and their targets are in no loss but the "
                                           "total"));
    }
  }

  const RobustnessOptions options_;
  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  std::optional<WordReplacer> words_;
  const std::vector<TokenBatch> batches_;
  const std::vector<PerturbedPass> passes_;
  const double rms_;  // of the embedding
  int64_t sequences_ = 0;
  std::vector<int64_t> first_sequences_;  // of each batch
  at::Tensor unperturbed_;  // losses of the batch's targets in the input as it is, [most N]
  // Row 0 is of the input as it is, row 1 + i of passes_[i].
  at::Tensor sums_;  // [1 + passes, kRobustnessSums]
  // Sums over the compared targets of each sequence, [1 + passes, kSequenceSums, sequences].
  at::Tensor by_sequence_;
  at::Tensor classes_;   // CountClasses, [1 + passes, 3, V]; undefined if the task has text
  at::Tensor gradient_;  // of one batch, [B·T, d]; not a part of the state
  int64_t gradient_batch_ = -1;
};

}  // namespace

MadeComputation Compute(const RobustnessOptions& options, const AnalysisContext& analysis) {
  const RunConfig& config = analysis.subjects[0].config;
  RobustnessOptions used = LevelsOf(options, config.model);
  std::optional<WordReplacer> words;
  std::vector<TokenBatch> batches = analysis.batches;
  if (!used.replace_words.empty()) {
    ASSIGN_OR_RETURN(const SampledData data, SampledDataOf(config));
    words.emplace(data.codec(), config.model.context);
    const auto parameters = static_cast<double>(analysis.subjects[0].layout.size);
    batches = PartsToReplace(
        batches, *words, *std::max_element(used.replace_words.begin(), used.replace_words.end()),
        PieceTokens(KindOf(options), parameters));
  }
  return std::make_unique<Robustness>(std::move(used), std::move(words), std::move(batches),
                                      analysis);
}

}  // namespace ablate::engine
