#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/analyze/perturbed_scores.h"
#include "server/engine/core/analyses/robustness_levels.h"
#include "server/engine/core/data/random.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/pieces.h"
#include "tests/engine/analyze/plain_model.h"
#include "tests/engine/analyze/plain_predictions.h"
#include "tests/engine/analyze/plain_words.h"
#include "tests/engine/analyze/stops.h"
#include "tests/engine/analyze/word_subjects.h"

namespace ablate::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RobustnessOptions LevelsFor(std::vector<double> words, std::vector<double> noise,
                            std::vector<double> fgsm, std::vector<double> l2, uint32_t draws = 2) {
  return {std::move(words), std::move(noise),     std::move(fgsm),
          std::move(l2),    LevelUnit::kAbsolute, draws};
}

AnalysisRequest RobustnessRequest(const AnalysisSubject& subject, const RobustnessOptions& options,
                                  uint64_t tokens = 60) {
  return {options, {subject}, {tokens, ""}};
}

double MeanLossWith(const AnalysisContext& analysis, const at::Tensor& step) {
  return ScoresOf(analysis, analysis.subjects[0], analysis.Batch(0), step)
      .losses.mean()
      .item<double>();
}

TEST(RobustnessTest, GivesTheOracle) {
  const AnalysisResult result =
      Analyzed(RobustnessRequest(ModelM(), LevelsFor({}, {}, {0.01, 0.1}, {0.1})));
  ExpectOracle(NumberIn(result, "loss"), 2.162577511);
  ExpectOracle(NumberIn(result, "perplexity"), 8.693516439);
  ExpectOracle(NumberIn(result, "accuracy"), 0.125);
  ExpectOracle(NumberIn(result, "fgsm@0.01/loss"), 2.184611375);
  ExpectOracle(NumberIn(result, "fgsm@0.1/loss"), 2.251180918);
  ExpectOracle(NumberIn(result, "fgsm@0.1/perplexity"), std::exp(2.251180918));
  ExpectOracle(NumberIn(result, "l2@0.1/loss"), 2.210175146);
  ExpectOracle(NumberIn(result, "l2@0.1/increase"), 2.210175146 - 2.162577511);
}

TEST(RobustnessTest, GivesTheOracleOfStepsOnTheEmbedding) {
  const AnalysisContext analysis = ContextOf(ModelM(), 60);
  const SubjectModel& subject = analysis.subjects[0];
  const at::Tensor gradient = EmbeddingGradient(analysis, subject, analysis.Batch(0));
  ExpectOracle(gradient.abs().sum().item<double>(), 2.419734385);
  ExpectOracle(gradient.norm().item<double>(), 0.8955656858);
  ExpectOracle(MeanLossWith(analysis, 0.1 * R(31, {8, 4})), 2.119915283);
  const double rms = EmbeddingRms(subject, analysis.batches);
  ExpectOracle(MeanLossWith(analysis, 0.1 * rms * R(31, {8, 4})), 2.138498815);
  // As if each token were a sequence.
  ExpectOracle(MeanLossWith(analysis, 0.1 * UnitOf(gradient, 8)), 2.235514007);
}

TEST(RobustnessTest, MultipliesRelativeLevelsByTheRms) {
  RobustnessOptions options = LevelsFor({}, {0.2}, {0.1}, {0.3});
  options.unit = LevelUnit::kRelative;
  const AnalysisResult relative = Analyzed(RobustnessRequest(ModelM(), options));
  const double rms = NumberIn(relative, "embedding_rms");
  const SubjectModel subject = *ReadSubject(ModelM().config, ModelM().checkpoint);
  const at::Tensor read = subject.parameters.token_embedding.index_select(
      0, at::tensor(std::vector<int64_t>{1, 4, 2, 6, 1, 4, 2, 6}));
  ExpectOracle(rms, read.pow(2).mean().sqrt().item<double>());
  const AnalysisResult absolute =
      Analyzed(RobustnessRequest(ModelM(), LevelsFor({}, {0.2 * rms}, {0.1 * rms}, {0.3 * rms})));
  const auto compare = [&](const PerturbationInfo& info, double level) {
    ExpectOracle(NumberIn(relative, LevelName(info, level) + "/loss"),
                 NumberIn(absolute, LevelName(info, level * rms) + "/loss"));
  };
  compare(kPerturbations[1], 0.2);
  compare(kPerturbations[2], 0.1);
  compare(kPerturbations[3], 0.3);
}

TEST(RobustnessTest, ChangesNoBitAtLevel0) {
  const auto expect_equal = [](const AnalysisSubject& subject) {
    const bool text = HasText(subject.config.model);
    const RobustnessOptions options =
        LevelsFor(text ? std::vector<double>{0} : std::vector<double>{}, {0}, {0}, {0}, 10);
    const AnalysisResult result = Analyzed(RobustnessRequest(subject, options));
    const double loss = NumberIn(result, "loss"), accuracy = NumberIn(result, "accuracy");
    for (const char* level : {"embedding_noise@0", "fgsm@0", "l2@0"}) {
      EXPECT_EQ(NumberIn(result, absl::StrCat(level, "/loss")), loss);
      EXPECT_EQ(NumberIn(result, absl::StrCat(level, "/accuracy")), accuracy);
      EXPECT_EQ(NumberIn(result, absl::StrCat(level, "/increase")), 0);
    }
    EXPECT_EQ(NumberIn(result, "embedding_noise@0/increase_deviation"), 0);
    if (text) {
      EXPECT_EQ(NumberIn(result, "replace_words@0/total_loss"), loss);
    }
    return result;
  };
  for (uint64_t number = 0; number < 16; ++number) {
    SCOPED_TRACE(number);
    expect_equal(DrawnSubject(number));
  }
  for (const Precision precision : {Precision::kFloat32, Precision::kFloat64}) {
    for (const bool documents : {false, true}) {
      const AnalysisResult result = expect_equal(SubjectOfWords(documents, precision));
      EXPECT_EQ(NumberIn(result, "replace_words@0/increase"), 0);
    }
  }
  EXPECT_EQ(NumberIn(expect_equal(SubjectOfTokens()), "replace_words@0/increase"), 0);
}

// L(ε) − L is ε‖g‖₁ for small ε, and ε‖g‖₂ along the gradient.
TEST(RobustnessTest, GrowsByTheNormOfTheGradient) {
  const AnalysisContext analysis = ContextOf(ModelM(), 60);
  const at::Tensor gradient = EmbeddingGradient(analysis, analysis.subjects[0], analysis.Batch(0));
  const AnalysisResult result =
      Analyzed(RobustnessRequest(ModelM(), LevelsFor({}, {}, {1e-7}, {1e-7})));
  EXPECT_NEAR(NumberIn(result, "fgsm@1e-07/increase") / 1e-7 / gradient.abs().sum().item<double>(),
              1, 1e-5);
  EXPECT_NEAR(NumberIn(result, "l2@1e-07/increase") / 1e-7 / gradient.norm().item<double>(), 1,
              1e-5);
}

// Expects the array of a number to divide it among the sequences, whose sums over their targets are
// given.
void ExpectDivided(const AnalysisResult& result, const std::string& number,
                   const std::vector<double>& sums, double targets) {
  SCOPED_TRACE(number);
  const at::Tensor both = ArrayIn(result, "by_sequence/" + number);
  const auto count = static_cast<int64_t>(sums.size());
  ASSERT_EQ(both.sizes(), (std::vector<int64_t>{2, count}));
  const at::Tensor array = both[0];
  EXPECT_NEAR(both[1].mean().item<double>(), 1, 1e-12) << "shares of the targets";
  for (int64_t i = 0; i < count; ++i) {
    ExpectNearIn(Precision::kFloat64, array[i].item<double>(),
                 static_cast<double>(count) * sums[static_cast<size_t>(i)] / targets, 1);
  }
  ExpectNearIn(Precision::kFloat64, array.mean().item<double>(), NumberIn(result, number), 1);
}

// Compares with autograd through the written-out model, whatever the run's learning rule.
TEST(RobustnessTest, AgreesWithThePlainModel) {
  for (uint64_t number = 0; number < 24; number += 2) {  // in float64
    SCOPED_TRACE(number);
    const AnalysisSubject subject = DrawnSubject(number);
    const AnalysisContext analysis = ContextOf(subject, 60);
    const SubjectModel& model = analysis.subjects[0];
    const PlainModel plain(model.config, model.values, model.buffers);
    const int64_t d = model.config.model.width;
    double fgsm = 0, l2 = 0, noise = 0, targets = 0;
    std::vector<double> unperturbed, moved;  // losses of sequences
    uint64_t sequence = 0;
    for (const TokenBatch& batch : analysis.batches) {
      for (int64_t row = 0; row < batch.rows; ++row, ++sequence) {
        const TokenBatch one = batch.Rows(row, 1);
        const auto loss_with = [&](const at::Tensor& step) {
          const auto add = [&](const std::string& at, const at::Tensor& x) {
            return at == "embedding" ? x + step : x;
          };
          return plain.Evaluate(one, add).loss;
        };
        const at::Tensor step = at::zeros({one.length, d}, at::kDouble).requires_grad_();
        loss_with(step).backward();
        const at::Tensor gradient = step.grad();
        targets += static_cast<double>(one.targets.size());
        unperturbed.push_back(loss_with(at::zeros_like(gradient)).item<double>());
        moved.push_back(loss_with(0.05 * gradient.sign()).item<double>());
        fgsm += moved.back();
        l2 += loss_with(0.3 * gradient / gradient.norm()).item<double>();
        const uint64_t seed = StreamSeed(0, absl::StrCat("analysis/robustness/noise/1/", sequence));
        noise += loss_with(0.2 * NormalSequence(seed, one.length * d).view({one.length, d}))
                     .item<double>();
      }
    }
    const AnalysisResult result =
        Analyzed(RobustnessRequest(subject, LevelsFor({}, {0.2}, {0.05}, {0.3})));
    const double loss = NumberIn(result, "loss");
    ExpectNearIn(Precision::kFloat64, NumberIn(result, "fgsm@0.05/loss"), fgsm / targets, 1);
    ExpectDivided(result, "loss", unperturbed, targets);
    ExpectDivided(result, "fgsm@0.05/loss", moved, targets);
    ExpectNearIn(Precision::kFloat64, NumberIn(result, "l2@0.3/loss"), l2 / targets, 1);
    const at::Tensor increase = ArrayIn(result, "increase/embedding_noise");
    ASSERT_EQ(increase.sizes(), (std::vector<int64_t>{1, 2}));
    ExpectNearIn(Precision::kFloat64, increase[0][1].item<double>(), noise / targets - loss, 1);
    ExpectNearIn(Precision::kFloat64, NumberIn(result, "embedding_noise@0.2/increase"),
                 increase.mean().item<double>(), 1);
    ExpectNearIn(Precision::kFloat64, NumberIn(result, "embedding_noise@0.2/increase_deviation"),
                 increase.std().item<double>(), 1);
  }
}

TEST(RobustnessTest, ComparesTargetsOfWordsThatStay) {
  const AnalysisSubject subject = SubjectOfWords(false);
  const AnalysisContext analysis = ContextOf(subject, 120);
  const SubjectModel& model = analysis.subjects[0];
  const std::u32string& alphabet = std::get<TextTask>(subject.config.task).text->alphabet;
  ASSERT_EQ(alphabet, U"\n abcdefghi");
  const PlainModel plain(model.config, model.values, model.buffers);
  const size_t context = 24;
  for (const uint32_t draw : {0u, 1u}) {
    double compared = 0, unperturbed = 0, targets = 0, total = 0, all = 0, correct = 0;
    uint64_t sequence = 0;
    std::vector<double> increases;  // of sequences
    for (const TokenBatch& batch : analysis.batches) {
      for (int64_t row = 0; row < batch.rows; ++row, ++sequence) {
        const TokenBatch one = batch.Rows(row, 1);
        const double before_it = compared - unperturbed;
        std::string text;
        for (const int64_t token : one.inputs) text += static_cast<char>(alphabet[token]);
        text += static_cast<char>(alphabet[one.targets.back()]);
        const uint64_t state =
            StreamSeed(7, absl::StrCat("analysis/robustness/words/", draw, "/", sequence));
        PlainWords replaced = ReplaceByHand(text, 0.4, state, "abcdefghi");
        const std::string whole = replaced.text;
        if (replaced.text.size() > context + 1) replaced.text.resize(context + 1);
        const auto log_p = [&](const std::string& of) {
          std::vector<int64_t> tokens;
          for (const char c : of.substr(0, of.size() - 1)) {
            tokens.push_back(static_cast<int64_t>(alphabet.find(static_cast<char32_t>(c))));
          }
          return plain.Logits(tokens).log_softmax(-1);
        };
        const at::Tensor before = log_p(text), after = log_p(replaced.text);
        for (size_t i = 1; i < replaced.text.size(); ++i) {
          const auto token =
              static_cast<int64_t>(alphabet.find(static_cast<char32_t>(replaced.text[i])));
          const at::Tensor of = after[static_cast<int64_t>(i) - 1];
          total -= of[token].item<double>();
          ++all;
          size_t end = i;  // of the word
          while (end < whole.size() && replaced.stayed[end]) ++end;
          if (!replaced.stayed[i] || replaced.from[i] == 0 || end > replaced.text.size()) continue;
          ++targets;
          compared -= of[token].item<double>();
          unperturbed -= before[replaced.from[i] - 1][token].item<double>();
          correct += of.argmax().item<int64_t>() == token ? 1 : 0;
        }
        increases.push_back(compared - unperturbed - before_it);
      }
    }
    ASSERT_GT(sequence, 3u);
    // With one draw more the last one is `draw`.
    AnalysisRequest request =
        RobustnessRequest(subject, LevelsFor({0.4}, {}, {}, {}, draw + 1), 120);
    request.seed = 7;
    const AnalysisResult result = Analyzed(request);
    const at::Tensor increase = ArrayIn(result, "increase/replace_words");
    ExpectNearIn(Precision::kFloat64, increase[0][draw].item<double>(),
                 (compared - unperturbed) / targets, 1);
    if (draw > 0) continue;
    ExpectDivided(result, "replace_words@0.4/increase", increases, targets);
    ExpectNearIn(Precision::kFloat64, NumberIn(result, "replace_words@0.4/loss"),
                 compared / targets, 1);
    ExpectNearIn(Precision::kFloat64, NumberIn(result, "replace_words@0.4/accuracy"),
                 correct / targets, 1);
    ExpectNearIn(Precision::kFloat64, NumberIn(result, "replace_words@0.4/total_loss"), total / all,
                 1);
    EXPECT_EQ(ReasonIn(result, "replace_words@0.4/increase_deviation"), Undefined::kTooFewTokens);
  }
}

TEST(RobustnessTest, ReplacesWordsOfAnEncoding) {
  const AnalysisSubject subject = SubjectOfTokens();
  const AnalysisResult result =
      Analyzed(RobustnessRequest(subject, LevelsFor({0.3, 1}, {}, {}, {}, 3), 100));
  EXPECT_GT(NumberIn(result, "replace_words@0.3/increase_deviation"), 0);
  EXPECT_NE(NumberIn(result, "replace_words@0.3/total_loss"),
            NumberIn(result, "replace_words@0.3/loss"));
  EXPECT_EQ(ReasonIn(result, "replace_words@1/loss"), Undefined::kTooFewTokens);
  EXPECT_TRUE(std::isfinite(NumberIn(result, "replace_words@1/total_loss")));
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST(RobustnessTest, TakesNoLevelForItsDefault) {
  const auto names = [](const AnalysisSubject& subject) {
    std::vector<std::string> arrays;
    const AnalysisResult result = Analyzed(RobustnessRequest(subject, RobustnessOptions()));
    for (const AnalysisArray& array : result.arrays) {
      if (!absl::StartsWith(array.name, "by_sequence/")) arrays.push_back(array.name);
    }
    EXPECT_TRUE(at::equal(ArrayIn(result, arrays[0]), at::tensor({0.1, 0.2, 0.4}, at::kDouble)));
    return arrays;
  };
  EXPECT_THAT(names(SubjectOfWords(true)),
              ElementsAre("level/replace_words", "increase/replace_words"));
  EXPECT_THAT(names(DrawnSubject(4)),
              ElementsAre("level/embedding_noise", "increase/embedding_noise"));
  RobustnessOptions given = LevelsFor({}, {}, {0.3}, {});
  EXPECT_THAT(LevelsOf(given, ModelM().config.model).replace_words, IsEmpty());
}

TEST(RobustnessTest, MacroF1GivesTheOracle) {
  TargetScores scores;
  scores.targets = at::tensor(std::vector<int64_t>{0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 5});
  scores.predicted = at::tensor(std::vector<int64_t>{0, 1, 0, 1, 1, 2, 0, 2, 2, 2, 4});
  scores.counted = at::ones({11}, at::kDouble);
  scores.counted[10] = 0;
  ExpectOracle(MacroF1(CountClasses(scores, 9)), 0.5541666667);
  EXPECT_TRUE(std::isnan(MacroF1(at::zeros({3, 4}, at::kDouble))));
}

TEST(RobustnessTest, HasMacroF1OfARecallTask) {
  for (const uint64_t number : {4u, 6u}) {
    SCOPED_TRACE(number);
    const AnalysisRequest request =
        RobustnessRequest(DrawnSubject(number), LevelsFor({}, {0.1}, {}, {}), 200);
    ASSERT_FALSE(HasText(request.subjects[0].config.model));
    std::map<int64_t, std::vector<double>> counts;  // targets, predictions, correct ones
    for (const PlainSequence& sequence : PlainSequences(request, false)) {
      const int64_t target = sequence.targets[0];
      const int64_t predicted = sequence.by_depth.back()[0].argmax().item<int64_t>();
      for (const int64_t either : {target, predicted}) counts[either].resize(3);
      ++counts[target][0];
      ++counts[predicted][1];
      if (target == predicted) ++counts[target][2];
    }
    double sum = 0;
    for (const auto& [token, of] : counts) sum += 2 * of[2] / (of[0] + of[1]);
    const AnalysisResult result = Analyzed(request);
    EXPECT_NEAR(NumberIn(result, "macro_f1"), sum / static_cast<double>(counts.size()), 1e-12);
    EXPECT_GE(NumberIn(result, "embedding_noise@0.1/macro_f1"), 0);
  }
  for (const AnalysisNumber& number :
       Analyzed(RobustnessRequest(ModelM(), LevelsFor({}, {0.1}, {}, {}))).numbers) {
    EXPECT_FALSE(number.name.ends_with("macro_f1"));
  }
}

TEST(RobustnessTest, IsUndefinedIfNoWordStays) {
  const AnalysisResult result =  // one word of eight letters
      Analyzed(RobustnessRequest(ModelM(), LevelsFor({0.1}, {}, {}, {})));
  for (const char* name : {"loss", "perplexity", "accuracy", "increase", "increase_deviation"}) {
    ExpectUndefined(result, Undefined::kTooFewTokens, {absl::StrCat("replace_words@0.1/", name)});
  }
  EXPECT_TRUE(std::isfinite(NumberIn(result, "replace_words@0.1/total_loss")));
  EXPECT_THAT(OtherNotes(result),
              ElementsAre("1 of 1 sequences have fewer than two words, so that none stays if one "
                          "is replaced"));
  EXPECT_TRUE(std::isnan(ArrayIn(result, "increase/replace_words")[0][0].item<double>()));
}

TEST(RobustnessTest, IsUndefinedWithoutAGradient) {
  const AnalysisSubject without_head =
      Changed(ModelM(), [](const ParameterInfo& parameter, at::Tensor values) {
        if (parameter.role == ParameterRole::kHead) values.zero_();
      });
  const AnalysisResult result =
      Analyzed(RobustnessRequest(without_head, LevelsFor({}, {0.1}, {0.1}, {0.1})));
  for (const char* name : {"loss", "perplexity", "accuracy", "increase"}) {
    EXPECT_EQ(ReasonIn(result, absl::StrCat("l2@0.1/", name)), Undefined::kZeroGradient) << name;
  }
  ExpectOracle(NumberIn(result, "fgsm@0.1/loss"), std::log(7));
  EXPECT_NEAR(NumberIn(result, "fgsm@0.1/increase"), 0, 1e-15);
}

TEST(RobustnessTest, LeavesASequenceWithoutAGradientAsItIs) {
  const at::Tensor gradient = at::tensor({0.0, 0.0, 0.0, 3e-300, -4e-300, 0.0}, at::kDouble);
  const at::Tensor unit = UnitOf(gradient.view({6, 1}), 2).flatten();
  EXPECT_TRUE(at::equal(unit.narrow(0, 0, 3), at::zeros({3}, at::kDouble)));
  EXPECT_NEAR(unit[3].item<double>(), 0.6, 1e-15);
  EXPECT_NEAR(unit[4].item<double>(), -0.8, 1e-15);
  EXPECT_EQ(CountMoved(gradient, 2), 1);
  const at::Tensor nan = at::full({2, 2}, std::nan(""), at::kDouble);
  EXPECT_TRUE(UnitOf(nan, 2).isnan().all().item<bool>());
  EXPECT_TRUE(SignOf(nan).isnan().all().item<bool>());
  EXPECT_EQ(CountMoved(nan, 2), 2);
}

TEST(RobustnessTest, IsUndefinedWithoutATarget) {
  const auto [subject, prompt] = ModelOfRows(R(1, {1, 3}));
  const AnalysisResult result =
      Analyzed({LevelsFor({0.5}, {0.1}, {0.1}, {0.1}), {subject}, {0, prompt}});
  for (const AnalysisNumber& number : result.numbers) {
    if (number.name == "embedding_rms") continue;
    // Three letters in place of one have two targets.
    if (number.name == "replace_words@0.5/total_loss") continue;
    EXPECT_EQ(number.undefined, Undefined::kTooFewTokens) << number.name;
  }
}

TEST(RobustnessTest, IsUndefinedForADivergedModel) {
  const AnalysisResult result =
      Analyzed(RobustnessRequest(DivergedModelM(), LevelsFor({}, {0, 0.1}, {0.1}, {0.1})));
  for (const AnalysisNumber& number : result.numbers) {
    if (number.name == "embedding_rms") continue;
    EXPECT_EQ(number.undefined, Undefined::kNonFinite) << number.name;
  }
}

TEST(RobustnessTest, RefusesLevels) {
  const auto message = [](const AnalysisSubject& subject, const RobustnessOptions& options) {
    return std::string(MakeAnalysis(RobustnessRequest(subject, options)).status().message());
  };
  EXPECT_EQ(message(DrawnSubject(4), LevelsFor({0.1}, {}, {}, {})),
            "analysis.robustness.replace_words: the tokens of the task are numbers, not text; "
            "expected a run of a documents or text task, or no levels of replace_words");
  EXPECT_EQ(message(ModelM(), LevelsFor({}, {}, {0.1, 0.2, 0.1}, {})),
            "analysis.robustness.fgsm[2]: it is named twice; expected each level once");
}

TEST(RobustnessTest, GivesTheSameBitsWhereverItIsCut) {
  for (const bool documents : {false, true}) {
    ExpectSameBitsWhereverItIsCut(
        RobustnessRequest(SubjectOfWords(documents), LevelsFor({0.3}, {0.1}, {0.1}, {0.2}), 120));
  }
}

TEST(RobustnessTest, ForgetsWhatWasStopped) {
  ExpectNothingOfWhatWasStopped(LevelsFor({0.3}, {0.1}, {0.1}, {0.2}, 1),
                                ContextOf(SubjectOfWords(true), 60));
}

TEST(RobustnessTest, DoesNotDependOnTheBatches) {
  for (uint64_t number = 0; number < 12; ++number) {
    SCOPED_TRACE(number);
    ExpectEqualInOneBatch(LevelsFor({}, {0.2}, {0.01}, {0.3}), number);
  }
  for (const AnalysisSubject& subject : {SubjectOfWords(true), SubjectOfTokens()}) {
    const AnalysisContext analysis = ContextOf(subject, 200);
    AnalysisContext alone = analysis, together = analysis;
    alone.batches = SplitRows(analysis.batches);
    together.batches = {JoinRows(alone.batches)};
    const RobustnessOptions options = LevelsFor({0.2, 0.5}, {0.1}, {}, {0.2});
    const AnalysisResult a = ComputedFrom(options, alone), b = ComputedFrom(options, together);
    ExpectSameNumbers(a, b, 1e-9);
    EXPECT_EQ(a.notes, b.notes);
  }
}

// Rows of six one-letter words have 12 tokens, and 24 after all words were replaced. A piece has at
// most 2,048 tokens.
TEST(RobustnessTest, BoundsPiecesByTheTokensAfterReplacement) {
  constexpr int64_t kRows = 512;
  AnalysisContext analysis = ContextOf(SubjectOfWords(false), 60);
  TokenBatch batch;
  batch.rows = kRows;
  batch.length = 12;
  for (int64_t row = 0; row < kRows; ++row) {
    batch.lengths.push_back(12);
    for (int64_t token = 0; token < 12; ++token) {
      // Token 1 is a space, token 2 is a.
      batch.inputs.push_back(token % 2 == 0 ? 2 : 1);
      batch.targets.push_back(token == 11 ? TokenBatch::kIgnored : token % 2 == 0 ? 1 : 2);
    }
  }
  analysis.batches = {batch};
  const auto pieces_of_a_pass = [&](const RobustnessOptions& options, int64_t passes) {
    return (*Compute(options, analysis))->pieces() / (passes + 1);
  };
  EXPECT_EQ(pieces_of_a_pass(LevelsFor({}, {0.1}, {}, {}, 1), 1), 1) << "as the inputs were cut";
  EXPECT_EQ(pieces_of_a_pass(LevelsFor({1}, {}, {}, {}, 1), 1), (kRows + 84) / 85)
      << "85 rows of 24 tokens fit";
  EXPECT_EQ(pieces_of_a_pass(LevelsFor({0.5, 0}, {}, {}, {}, 1), 2), (kRows + 112) / 113)
      << "113 rows of 18 tokens";
}

// A chunk has 4 targets.
TEST(RobustnessTest, ScoresALargeVocabularyInChunks) {
  RunConfig run = ModelM().config;
  run.model.vocabulary = 1 << 20;
  const AnalysisSubject subject = SubjectOf(run, 5);
  const AnalysisResult result =
      Analyzed(RobustnessRequest(subject, LevelsFor({0}, {}, {0}, {}, 1)));
  const AnalysisResult expected = Analyzed({PredictionsOptions{}, {subject}, {60, ""}});
  ExpectOracle(NumberIn(result, "loss"), NumberIn(expected, "loss"));
  EXPECT_EQ(NumberIn(result, "accuracy"), NumberIn(expected, "accuracy"));
  EXPECT_EQ(NumberIn(result, "fgsm@0/loss"), NumberIn(result, "loss"));
}

TEST(RobustnessTest, HasArraysOfItsCost) {
  const AnalysisRequest request =
      RobustnessRequest(SubjectOfWords(false), LevelsFor({0.1, 0.2}, {0.1}, {0.1}, {1, 2}, 3));
  const AnalysisCost cost = CostOf(request, 60);
  EXPECT_GE(cost.array_bytes, BytesOfArrays(Analyzed(request)));
  EXPECT_EQ(cost.forwards, 1 + 3 * 3 + 3 + 3);
}

}  // namespace
}  // namespace ablate::engine
