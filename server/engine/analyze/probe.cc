// Measures which labels of words can be read linearly from each depth.
#include "server/engine/analyze/probe.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/analyze/lbfgs.h"
#include "server/engine/analyze/logistic.h"
#include "server/engine/analyze/sentence_bootstrap.h"
#include "server/engine/analyze/sequence_sums.h"
#include "server/engine/analyze/token_text.h"

namespace ablate::engine {
namespace {

// Probes of one depth, in this order.
enum ProbeFit { kLabelFit, kShuffledFit, kTypesFit };
constexpr const char* kFitNames[kProbeFits] = {"accuracy", "shuffled", "types"};
// Facts about a probe that has been fitted.
enum ProbeOutcome { kFitCorrect, kFitSteps, kFitStatus, kFitOutcomes };
// Largest number of steps in a piece.
constexpr int64_t kMostPieceSteps = 10;

// The labels that one probe learns and is scored on.
struct FitLabels {
  std::vector<int64_t> classes;   // the labels of words to learn from, ascending
  std::vector<int64_t> training;  // class of each word to learn from, an index of `classes`
  std::vector<int64_t> scored;    // label of each scored word

  bool one_class() const { return classes.size() < 2; }
};

FitLabels SplitLabels(const std::vector<int64_t>& labels, size_t training) {
  const auto middle = labels.begin() + static_cast<std::ptrdiff_t>(training);
  FitLabels split;
  split.classes.assign(labels.begin(), middle);
  std::sort(split.classes.begin(), split.classes.end());
  split.classes.erase(std::unique(split.classes.begin(), split.classes.end()), split.classes.end());
  for (auto label = labels.begin(); label != middle; ++label) {
    split.training.push_back(std::lower_bound(split.classes.begin(), split.classes.end(), *label) -
                             split.classes.begin());
  }
  split.scored.assign(middle, labels.end());
  return split;
}

at::Tensor TensorOfLabels(const std::vector<int64_t>& labels) {
  return at::tensor(at::ArrayRef<int64_t>(labels), at::kLong);
}

// A piece: a batch that is read, or a part of the fit of one probe.
struct ProbePiece {
  int64_t first_depth = 0;  // of the depths whose vectors are kept together
  int64_t depths = 0;
  int64_t batch = -1;  // −1: the piece is a part of a fit
  int64_t depth = 0;
  int64_t fit = 0;
  int64_t part = 0;
};

class Probing : public Computation {
 public:
  Probing(const ProbeOptions& options, const AnalysisContext& analysis, const ProbeLimits& limits)
      : options_(options),
        analysis_(analysis),
        subject_(analysis.subjects[0]),
        limits_(limits),
        hook_points_(HookPointsOr({}, subject_.config.model)),
        words_(SelectWords(options, *analysis.tagged, analysis.seed)) {
    const auto add_fit = [&](const std::vector<int64_t>& labels) {
      fits_.push_back(SplitLabels(labels, words_.training));
    };
    add_fit(LabelsOf(words_));
    if (options.controls) {
      add_fit(ShuffledLabels(words_, analysis.seed));
      add_fit(TypeLabels(words_, analysis.seed));
    }
    if (fits_[kLabelFit].one_class()) return;
    const int64_t features = subject_.config.model.width;
    const auto words = static_cast<int64_t>(words_.words.size());
    const auto classes = static_cast<int64_t>(fits_[kLabelFit].classes.size());
    const uint64_t bytes = static_cast<uint64_t>(words * features) * subject_.values.element_size();
    together_ = static_cast<int64_t>(
        std::clamp<uint64_t>(limits.feature_bytes / bytes, 1, static_cast<uint64_t>(Depths())));
    // A step is two products with the rows, now and then four.
    const double step =
        5.0 * static_cast<double>(words_.training) * static_cast<double>(features * classes);
    steps_ = static_cast<int64_t>(
        std::clamp(limits.piece_operations / step, 1.0, static_cast<double>(kMostPieceSteps)));
    parts_ = (limits.steps + steps_ - 1) / steps_;
    vectors_ = at::zeros({together_, words, features}, subject_.values.scalar_type());
    minimum_ = LbfgsState::Make(classes * (features + 1));
    predicted_ = at::zeros({Depths(), Scored()}, at::kLong);
    outcomes_ =
        at::zeros({Depths(), static_cast<int64_t>(fits_.size()), kFitOutcomes}, at::kDouble);
    for (const TokenBatch& batch : analysis.batches) {
      first_rows_.push_back(first_rows_.empty() ? 0 : first_rows_.back() + rows_of_last_);
      rows_of_last_ = static_cast<size_t>(batch.rows);
    }
  }

  int64_t pieces() const override {
    if (fits_[kLabelFit].one_class()) return 1;
    const int64_t passes = (Depths() + together_ - 1) / together_;
    return passes * analysis_.batch_count() + Depths() * PiecesOfDepth();
  }

  void Add(int64_t index) override {
    const at::NoGradGuard no_grad;
    CheckStop(analysis_);
    if (fits_[kLabelFit].one_class()) return;
    const ProbePiece piece = PieceAt(index);
    if (piece.batch >= 0) {
      ReadVectors(piece);
    } else {
      AdvanceFit(piece);
    }
  }

  std::vector<StateTensor> State() override {
    if (fits_[kLabelFit].one_class()) return {};
    return {{"vectors", vectors_},           {"coefficients", minimum_.x},
            {"gradient", minimum_.gradient}, {"moves", minimum_.moves},
            {"changes", minimum_.changes},   {"minimum", minimum_.numbers},
            {"predicted", predicted_},       {"outcomes", outcomes_}};
  }

  AnalysisResult Finish() override {
    AnalysisResult result;
    const bool one_class = fits_[kLabelFit].one_class();
    const auto add = [&](const char* name, const auto& number_at) {
      for (int64_t depth = 0; depth < Depths(); ++depth) {
        AnalysisNumber number =
            one_class ? UndefinedNumber("", Undefined::kOneClass) : number_at(depth);
        number.name = absl::StrCat(name, "/", PlaceName(depth));
        result.numbers.push_back(std::move(number));
      }
    };
    const auto accuracy = [&](ProbeFit fit) {
      return [this, fit](int64_t depth) { return Accuracy(depth, fit); };
    };
    add("accuracy", accuracy(kLabelFit));
    const std::vector<Interval> intervals = one_class ? std::vector<Interval>() : Intervals();
    const auto bound = [&](double Interval::*end) {
      return [this, &intervals, end](int64_t depth) {
        AnalysisNumber number = Accuracy(depth, kLabelFit);
        if (number.undefined.has_value()) return number;
        if (words_.scored_sentences.size() < 2) number.undefined = Undefined::kTooFewTokens;
        return NumberOf("", intervals[static_cast<size_t>(depth)].*end, number.undefined);
      };
    };
    add("accuracy_low", bound(&Interval::low));
    add("accuracy_high", bound(&Interval::high));
    result.numbers.push_back(one_class ? UndefinedNumber("majority", Undefined::kOneClass)
                                       : NumberOf("majority", Majority()));
    if (options_.controls) {
      add("shuffled", accuracy(kShuffledFit));
      add("types", accuracy(kTypesFit));
      add("selectivity", [&](int64_t depth) {
        const AnalysisNumber own = Accuracy(depth, kLabelFit);
        const AnalysisNumber types = Accuracy(depth, kTypesFit);
        return NumberOf("", own.value - types.value,
                        own.undefined.has_value() ? own.undefined : types.undefined);
      });
    }
    add("steps", [&](int64_t depth) {
      const AnalysisNumber own = Accuracy(depth, kLabelFit);
      return NumberOf("", Outcome(depth, kLabelFit, kFitSteps), own.undefined);
    });
    if (!one_class) {
      result.arrays.push_back(Confusion());
      AddTexts("label", words_.labels, &result);  // of the axes of confusion, in order
      AddSentences(&result);
    }
    AddNotes(&result.notes);
    return result;
  }

 private:
  int64_t Depths() const { return static_cast<int64_t>(hook_points_.size()); }
  int64_t Scored() const { return static_cast<int64_t>(words_.words.size() - words_.training); }
  int64_t PiecesOfDepth() const { return static_cast<int64_t>(fits_.size()) * parts_; }

  static std::string PlaceName(int64_t depth) {
    return depth == 0 ? "embedding" : absl::StrCat("block.", depth - 1);
  }

  ProbePiece PieceAt(int64_t index) const {
    ProbePiece piece;
    while (true) {
      piece.depths = std::min(together_, Depths() - piece.first_depth);
      const int64_t fits = piece.depths * PiecesOfDepth();
      if (index < analysis_.batch_count()) {
        piece.batch = index;
        return piece;
      }
      index -= analysis_.batch_count();
      if (index < fits) break;
      index -= fits;
      piece.first_depth += piece.depths;
    }
    piece.depth = piece.first_depth + index / PiecesOfDepth();
    piece.fit = index % PiecesOfDepth() / parts_;
    piece.part = index % parts_;
    return piece;
  }

  // Reads the vectors of a batch's words at the depths that are kept together.
  void ReadVectors(const ProbePiece& piece) {
    const TokenBatch& batch = analysis_.Batch(piece.batch);
    // The words that count, and the place of each one's span among the batch's spans. Words that
    // share a token or a multiword token have one span together.
    std::vector<int64_t> words, span_of_word;
    // Each token of a span: its place among the batch's tokens, and its span's.
    std::vector<int64_t> tokens, span_of_token;
    int64_t spans = 0;
    for (int64_t row = 0; row < batch.rows; ++row) {
      const size_t index = first_rows_[static_cast<size_t>(piece.batch)] + static_cast<size_t>(row);
      const auto [begin, end] = words_.of_rows[index];
      TokenSpan last;
      for (size_t word = begin; word < end; ++word) {
        TokenSpan span = words_.words[word].tokens;
        if (options_.subtoken == Subtoken::kLast) span.first = span.last;
        if (options_.subtoken == Subtoken::kFirst) span.last = span.first;
        const bool is_new = word == begin || span.first != last.first || span.last != last.last;
        for (int64_t token = span.first; is_new && token <= span.last; ++token) {
          tokens.push_back(row * batch.length + token);
          span_of_token.push_back(spans);
        }
        if (is_new) ++spans;
        last = span;
        words.push_back(static_cast<int64_t>(word));
        span_of_word.push_back(spans - 1);
      }
    }
    if (words.empty()) return;
    const auto first = hook_points_.begin() + piece.first_depth;
    const std::vector<at::Tensor> captured = CaptureHookPoints(
        analysis_, subject_, batch, std::vector<std::string>(first, first + piece.depths));
    const at::Tensor token_index = TensorOfLabels(tokens), owner = TensorOfLabels(span_of_token);
    std::vector<at::Tensor> read;
    for (const at::Tensor& activations : captured) {
      at::Tensor of_spans = OnHost(activations).index_select(0, token_index);
      if (options_.subtoken == Subtoken::kMean) {
        at::Tensor sums = at::zeros({spans, of_spans.size(1)}, at::kDouble);
        sums.index_add_(0, owner, of_spans.to(at::kDouble));
        of_spans = sums.div_(owner.bincount({}, spans).unsqueeze(1)).to(vectors_.scalar_type());
      }
      read.push_back(std::move(of_spans));
    }
    const at::Tensor word_index = TensorOfLabels(words), span_index = TensorOfLabels(span_of_word);
    for (size_t i = 0; i < read.size(); ++i) {
      vectors_[static_cast<int64_t>(i)].index_copy_(0, word_index,
                                                    read[i].index_select(0, span_index));
    }
  }

  // Returns the standardised vectors of all words at a depth, [words, d] float64.
  const at::Tensor& Rows(const ProbePiece& piece) {
    if (rows_depth_ != piece.depth) {
      rows_ = at::Tensor();  // frees the matrix of another depth first
      rows_ = StandardisedRows(vectors_[piece.depth - piece.first_depth],
                               static_cast<int64_t>(words_.training));
      rows_depth_ = piece.depth;
    }
    return rows_;
  }

  // Takes some steps of a fit, and scores it after its last part.
  void AdvanceFit(const ProbePiece& piece) {
    const FitLabels& labels = fits_[static_cast<size_t>(piece.fit)];
    if (labels.one_class()) return;
    const auto classes = static_cast<int64_t>(labels.classes.size());
    const bool begins = piece.part == 0, ends = piece.part == parts_ - 1;
    const LbfgsState kept = minimum_.First(classes * (subject_.config.model.width + 1));
    if (!begins && !ends && kept.status() != LbfgsStatus::kRunning) return;
    const auto training = static_cast<int64_t>(words_.training);
    const at::Tensor& rows = Rows(piece);
    const auto check = [&] { CheckStop(analysis_); };
    const LogisticObjective objective(rows.narrow(0, 0, training), labels.training, classes,
                                      options_.c, check);
    LbfgsState state =
        begins ? BeginLbfgs(kept.x.numel(), objective, kLogisticTolerance) : kept.Clone();
    AdvanceLbfgs(std::min(steps_, limits_.steps - piece.part * steps_), objective,
                 kLogisticTolerance, &state);
    if (ends)
      Score(piece, labels, LogisticScores(state.x, rows.narrow(0, training, Scored())), state);
    LbfgsState(kept).CopyFrom(state);
  }

  // Stores what a probe predicts for the scored words, given its scores [scored, classes].
  void Score(const ProbePiece& piece, const FitLabels& labels, const at::Tensor& scores,
             const LbfgsState& state) {
    const bool finite =
        state.status() != LbfgsStatus::kNonFinite && std::isfinite(scores.sum().item<double>());
    const at::Tensor predicted = TensorOfLabels(labels.classes).index_select(0, scores.argmax(1));
    const double correct = predicted.eq(TensorOfLabels(labels.scored)).sum().item<double>();
    const at::Tensor outcome = outcomes_[piece.depth][piece.fit];
    outcome[kFitCorrect].fill_(finite ? correct : std::numeric_limits<double>::quiet_NaN());
    outcome[kFitSteps].fill_(static_cast<double>(state.steps()));
    outcome[kFitStatus].fill_(static_cast<double>(state.status()));
    if (piece.fit == kLabelFit) predicted_[piece.depth].copy_(predicted);
  }

  double Outcome(int64_t depth, ProbeFit fit, ProbeOutcome of) const {
    return outcomes_[depth][fit][of].item<double>();
  }

  // Returns the accuracy of a probe, without a name.
  AnalysisNumber Accuracy(int64_t depth, ProbeFit fit) const {
    if (fits_[fit].one_class()) return UndefinedNumber("", Undefined::kOneClass);
    return NumberOf("", Outcome(depth, fit, kFitCorrect) / static_cast<double>(Scored()));
  }

  double Majority() const {
    const FitLabels& labels = fits_[kLabelFit];
    std::vector<int64_t> counts(labels.classes.size());
    for (const int64_t of : labels.training) ++counts[static_cast<size_t>(of)];
    const auto most = std::max_element(counts.begin(), counts.end()) - counts.begin();
    const auto correct = std::count(labels.scored.begin(), labels.scored.end(),
                                    labels.classes[static_cast<size_t>(most)]);
    return static_cast<double>(correct) / static_cast<double>(Scored());
  }

  // Divides the accuracy at each depth among the scored sentences.
  void AddSentences(AnalysisResult* result) const {
    const std::vector<std::vector<int64_t>> correct = CorrectWords();
    const at::Tensor words = at::tensor(std::vector<int64_t>(words_.scored_sentences.begin(),
                                                             words_.scored_sentences.end()),
                                        at::kLong)
                                 .to(at::kDouble);
    for (int64_t depth = 0; depth < Depths(); ++depth) {
      const AnalysisNumber accuracy = Accuracy(depth, kLabelFit);
      if (accuracy.undefined.has_value()) continue;
      const at::Tensor right =
          at::tensor(correct[static_cast<size_t>(depth)], at::kLong).to(at::kDouble);
      result->arrays.push_back(
          SequenceArray(absl::StrCat("accuracy/", PlaceName(depth)), right, words));
    }
  }

  // Returns the number of words of each scored sentence that are predicted, at each depth.
  std::vector<std::vector<int64_t>> CorrectWords() const {
    std::vector<std::vector<int64_t>> correct(hook_points_.size());
    for (int64_t depth = 0; depth < Depths(); ++depth) {
      const int64_t* predicted = predicted_.const_data_ptr<int64_t>() + depth * Scored();
      auto label = fits_[kLabelFit].scored.begin();
      for (const size_t words : words_.scored_sentences) {
        int64_t right = 0;
        for (size_t i = 0; i < words; ++i) right += *predicted++ == *label++ ? 1 : 0;
        correct[static_cast<size_t>(depth)].push_back(right);
      }
    }
    return correct;
  }

  // Returns the intervals of the accuracy at each depth.
  std::vector<Interval> Intervals() const {
    return BootstrapIntervals(words_.scored_sentences, CorrectWords(),
                              DrawSeed(analysis_, "probe/bootstrap"));
  }

  AnalysisArray Confusion() const {
    const auto labels = static_cast<int64_t>(words_.labels.size());
    at::Tensor counts = at::zeros({Depths(), labels * labels}, at::kLong);
    const at::Tensor first = TensorOfLabels(fits_[kLabelFit].scored) * labels;  // cell of each
    for (int64_t depth = 0; depth < Depths(); ++depth) {
      if (Accuracy(depth, kLabelFit).undefined.has_value()) continue;
      counts[depth].copy_((first + predicted_[depth]).bincount({}, labels * labels));
    }
    return ArrayOf("confusion", {"depth", "label", "predicted"},
                   counts.view({Depths(), labels, labels}));
  }

  void AddNotes(std::vector<std::string>* notes) const {
    notes->push_back(absl::StrCat("learned from ", words_.training, " words of ",
                                  words_.training_sentences, " sentences, scored on ", Scored(),
                                  " words of ", words_.scored_sentences.size()));
    if (words_.unlabelled > 0) {
      notes->push_back(
          absl::StrCat(words_.unlabelled, " words without ", options_.label, " are left out"));
    }
    if (words_.cut > 0) {
      notes->push_back(absl::StrCat(words_.cut, " words beyond the model's context are left out"));
    }
    const FitLabels& own = fits_[kLabelFit];
    const auto unseen = std::count_if(own.scored.begin(), own.scored.end(), [&](int64_t label) {
      return !std::binary_search(own.classes.begin(), own.classes.end(), label);
    });
    if (unseen > 0) {
      notes->push_back(absl::StrCat(
          unseen, " scored words have a label that no word to learn from has, and count as wrong"));
    }
    if (own.one_class()) return;
    std::vector<std::string> unfinished, stalled;
    for (size_t fit = 0; fit < fits_.size(); ++fit) {
      for (int64_t depth = 0; depth < Depths() && !fits_[fit].one_class(); ++depth) {
        const double status = Outcome(depth, static_cast<ProbeFit>(fit), kFitStatus);
        const auto is = [&](LbfgsStatus of) { return status == static_cast<double>(of); };
        const std::string name = absl::StrCat(kFitNames[fit], "/", PlaceName(depth));
        if (is(LbfgsStatus::kRunning)) unfinished.push_back(name);
        if (is(LbfgsStatus::kStalled)) stalled.push_back(name);
      }
    }
    if (!unfinished.empty()) {
      notes->push_back(absl::StrCat("probes that did not converge in ", limits_.steps,
                                    " steps: ", absl::StrJoin(unfinished, ", ")));
    }
    if (!stalled.empty()) {
      notes->push_back(absl::StrCat("probes that rounding errors stopped before they converged: ",
                                    absl::StrJoin(stalled, ", ")));
    }
  }

  const ProbeOptions options_;
  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  const ProbeLimits limits_;
  const std::vector<std::string> hook_points_;
  const ProbeWords words_;
  std::vector<FitLabels> fits_;
  std::vector<size_t> first_rows_;  // of each batch
  size_t rows_of_last_ = 0;
  int64_t together_ = 1;  // depths whose vectors are kept
  int64_t steps_ = 1;     // of a piece
  int64_t parts_ = 1;     // pieces of a fit
  at::Tensor vectors_;    // of all words, [together, words, d] in the subject's precision
  LbfgsState minimum_;    // of the probe that is being fitted
  at::Tensor predicted_;  // labels, [depths, scored words]
  at::Tensor outcomes_;   // [depths, fits, kFitOutcomes]
  at::Tensor rows_;       // Rows of rows_depth_, computed from vectors_
  int64_t rows_depth_ = -1;
};

}  // namespace

MadeComputation MakeProbe(const ProbeOptions& options, const AnalysisContext& analysis,
                          const ProbeLimits& limits) {
  return std::make_unique<Probing>(options, analysis, limits);
}

MadeComputation Compute(const ProbeOptions& options, const AnalysisContext& analysis) {
  return MakeProbe(options, analysis, ProbeLimits());
}

}  // namespace ablate::engine
