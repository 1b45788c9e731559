#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/engine/core/analyses/inputs.h"
#include "server/engine/core/analyses/prompt_pairs.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/pieces.h"
#include "tests/engine/analyze/plain_model.h"
#include "tests/engine/analyze/stops.h"

namespace ablate::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Model M reads letters from a on: "becgbecg" is 1 4 2 6 1 4 2 6.
PatchOptions PairOfM(PatchedPart part = PatchedPart::kResidual,
                     PatchDirection direction = PatchDirection::kDenoise) {
  return {{"becgbecg"}, {"befgbecg"}, {"b"}, {"d"}, part, direction};
}

PatchOptions ThreePairs(PatchedPart part, PatchDirection direction = PatchDirection::kDenoise) {
  return {{"abcd", "dgac", "fbbe"},
          {"abed", "dgbc", "cfbe"},
          {"b", "f", "a"},
          {"d", "a", "g"},
          part,
          direction};
}

AnalysisResult PatchOf(const AnalysisSubject& subject, const PatchOptions& options) {
  return Analyzed({options, {subject}, {}});
}

TEST(PatchTest, GivesTheOracle) {
  const AnalysisResult result = PatchOf(ModelM(), PairOfM());
  ExpectOracle(NumberIn(result, "clean_difference"), 1.19364783);
  ExpectOracle(NumberIn(result, "corrupt_difference"), 1.291864585);
  const at::Tensor recovered = ArrayIn(result, "recovered");
  ASSERT_EQ(recovered.sizes(), (std::vector<int64_t>{3, 8}));
  // The oracle has ten digits of a difference of 0.098.
  EXPECT_NEAR(recovered[1][2].item<double>(), 0.08462386396, 1e-9);
  EXPECT_NEAR(recovered[1][6].item<double>(), -0.00268064812, 1e-9);
  EXPECT_NEAR(recovered[1][7].item<double>(), 1.143901043, 2e-9);
}

TEST(PatchTest, RecoversAllIfAllTokensAreReplaced) {
  for (const PatchDirection direction : {PatchDirection::kDenoise, PatchDirection::kNoise}) {
    const AnalysisResult result = PatchOf(ModelM(), ThreePairs(PatchedPart::kResidual, direction));
    for (const char* place : {"embedding", "block.0", "block.1"}) {
      EXPECT_EQ(NumberIn(result, std::string("recovered/") + place), 1);
      EXPECT_EQ(NumberIn(result, std::string("recovered_standard_error/") + place), 0);
    }
    const at::Tensor recovered = ArrayIn(result, "recovered");
    EXPECT_EQ(recovered[2][3].item<double>(), 1) << "the logits depend on nothing else";
    EXPECT_EQ(recovered[2].narrow(0, 0, 3).abs().max().item<double>(), 0);
  }
}

// The first pair differs at position 2 only. Other embeddings are equal, and attention of a causal
// model doesn't see position 2 before.
TEST(PatchTest, ChangesNoBitIfActivationsAreEqual) {
  const at::Tensor recovered = ArrayIn(PatchOf(ModelM(), PairOfM()), "recovered");
  for (int64_t depth = 0; depth < 3; ++depth) {
    for (int64_t position = 0; position < 8; ++position) {
      const bool equal = depth == 0 ? position != 2 : position < 2;
      if (!equal) continue;
      EXPECT_EQ(recovered[depth][position].item<double>(), 0) << depth << " " << position;
    }
  }
  EXPECT_EQ(recovered[0][2].item<double>(), 1);
}

TEST(PatchTest, IsUndefinedForEqualPrompts) {
  PatchOptions options = PairOfM();
  options.corrupt = options.clean;
  const AnalysisResult result = PatchOf(ModelM(), options);
  EXPECT_EQ(NumberIn(result, "clean_difference"), NumberIn(result, "corrupt_difference"));
  ExpectUndefined(result, Undefined::kZeroDenominator,
                  {"recovered/block.1", "recovered_standard_error/block.1"});
  EXPECT_THAT(result.arrays, IsEmpty());
  EXPECT_THAT(result.notes,
              ElementsAre("1 of 1 pairs are left out of recovered, because both of their prompts "
                          "have the same difference of logits"));
}

TEST(PatchTest, LeavesOutPairsWithoutADifference) {
  PatchOptions options = ThreePairs(PatchedPart::kAttention);
  const AnalysisResult three = PatchOf(ModelM(), options);
  EXPECT_THAT(three.notes, IsEmpty());
  options.clean.insert(options.clean.begin() + 1, "abcd");
  options.corrupt.insert(options.corrupt.begin() + 1, "abcd");
  options.right.insert(options.right.begin() + 1, "a");
  options.wrong.insert(options.wrong.begin() + 1, "b");
  const AnalysisResult four = PatchOf(ModelM(), options);
  ASSERT_EQ(four.notes.size(), 1u);
  EXPECT_EQ(four.notes[0].substr(0, 6), "1 of 4");
  EXPECT_NE(NumberIn(three, "clean_difference"), NumberIn(four, "clean_difference"));
  for (const char* name :
       {"recovered/block.0.attention", "recovered_standard_error/block.0.attention"}) {
    EXPECT_EQ(NumberIn(three, name), NumberIn(four, name)) << name;
  }
}

TEST(PatchTest, HasNoErrorOfOnePair) {
  const AnalysisResult result = PatchOf(ModelM(), PairOfM(PatchedPart::kHead));
  EXPECT_EQ(ReasonIn(result, "recovered_standard_error/block.1.head.1"), Undefined::kTooFewTokens);
  std::vector<std::string> names;
  for (const AnalysisArray& array : result.arrays) names.push_back(array.name);
  EXPECT_THAT(names, ElementsAre("recovered", "recovered_all", "token_text", "token_ends"));
  EXPECT_THAT(result.arrays[0].axes, ElementsAre("block", "head", "position"));
  EXPECT_THAT(result.arrays[0].shape, ElementsAre(2, 2, 8));
}

TEST(PatchTest, HasTheHeadsPatchedAtAllPositionsAsAnArray) {
  PatchOptions options = ThreePairs(PatchedPart::kHead);
  options.clean[2] += "ab";
  options.corrupt[2] += "ab";
  const AnalysisResult result = PatchOf(ModelM(), options);
  ASSERT_EQ(result.arrays.size(), 1u) << "prompts of different lengths have no common positions";
  const at::Tensor recovered = ArrayIn(result, "recovered_all");
  ASSERT_EQ(recovered.sizes(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(recovered[1][0].item<double>(), NumberIn(result, "recovered/block.1.head.0"));
  EXPECT_EQ(recovered[0][1].item<double>(), NumberIn(result, "recovered/block.0.head.1"));
}

TEST(PatchTest, HasTheTextOfTheFirstCleanPrompt) {
  const AnalysisResult result = PatchOf(ModelM(), ThreePairs(PatchedPart::kAttention));
  EXPECT_EQ(ArrayNamed(result, "token_text").bytes, "abcd");
  const at::Tensor ends = ArrayIn(result, "token_ends");
  EXPECT_TRUE(at::equal(ends, at::arange(1, 5, at::kDouble))) << ends;
}

TEST(PatchTest, PatchesAllPositionsOnlyIfLengthsDiffer) {
  PatchOptions options = ThreePairs(PatchedPart::kFeedForward);
  PatchOptions last = options;
  for (auto* list : {&last.clean, &last.corrupt, &last.right, &last.wrong}) *list = {list->back()};
  options.clean[2] += "ab";
  options.corrupt[2] += "ab";
  last.clean[0] += "ab";
  last.corrupt[0] += "ab";
  const AnalysisResult result = PatchOf(ModelM(), options);
  EXPECT_THAT(result.arrays, IsEmpty());
  EXPECT_THAT(result.notes, ElementsAre("positions are not patched one by one, because prompts "
                                        "have from 4 to 6 tokens"));
  double sum = NumberIn(PatchOf(ModelM(), last), "recovered/block.0.feed_forward");
  for (size_t i = 0; i < 2; ++i) {
    PatchOptions one = {{options.clean[i]}, {options.corrupt[i]},      {options.right[i]},
                        {options.wrong[i]}, PatchedPart::kFeedForward, PatchDirection::kDenoise};
    sum += NumberIn(PatchOf(ModelM(), one), "recovered/block.0.feed_forward");
  }
  ExpectOracle(NumberIn(result, "recovered/block.0.feed_forward"), sum / 3);
}

// Patches a plain model at one place: at all positions if `position` is −1.
class PatchedPlainModel {
 public:
  explicit PatchedPlainModel(const AnalysisSubject& subject)
      : read_(*ReadSubject(subject.config, subject.checkpoint)),
        plain_(subject.config, read_.values, read_.buffers) {}

  double Recovered(const PromptPair& pair, PatchDirection direction, const std::string& place,
                   int64_t position, int64_t first, int64_t count) const {
    const bool denoise = direction == PatchDirection::kDenoise;
    const std::vector<int64_t>& giving = denoise ? pair.clean : pair.corrupt;
    const std::vector<int64_t>& reading = denoise ? pair.corrupt : pair.clean;
    at::Tensor given;
    const double from = Difference(pair, giving, [&](const std::string& at, const at::Tensor& x) {
      if (at == place) given = x;
      return x;
    });
    const double to = Difference(pair, reading, nullptr);
    const double patched =
        Difference(pair, reading, [&](const std::string& at, const at::Tensor& x) {
          at::Tensor changed = x.clone();
          for (int64_t i = 0; at == place && i < x.size(0); ++i) {
            if (position >= 0 && i != position) continue;
            changed[i].narrow(0, first, count).copy_(given[i].narrow(0, first, count));
          }
          return changed;
        });
    return (patched - to) / (from - to);
  }

 private:
  double Difference(const PromptPair& pair, const std::vector<int64_t>& prompt,
                    const PlainModel::Change& change) const {
    const at::Tensor logits = plain_.Logits(prompt, change)[-1].to(at::kDouble);
    return (logits[pair.right] - logits[pair.wrong]).item<double>();
  }

  const SubjectModel read_;
  const PlainModel plain_;
};

TEST(PatchTest, EqualsAPlainModelInDrawnSettings) {
  const at::NoGradGuard no_grad;
  int compared = 0;
  for (uint64_t number = 0; compared < 24; ++number) {
    SCOPED_TRACE(number);
    AnalysisSubject subject = DrawnSubject(number);
    RunConfig& run = subject.config;
    if (run.precision != Precision::kFloat64 || run.model.context < 5) continue;
    if (number % 8 >= 4) {  // a task without text
      run.task = DrawnTask(number % 8 == 4 ? 0 : 1);
      run.model.loss = LossPositions::kAll;
      run.model.vocabulary = KindOf(run.task).shape(run.task)->vocabulary;
      subject = SubjectOf(run, number);
    }
    const PatchedPart part = static_cast<PatchedPart>(compared % 4);
    const auto direction = static_cast<PatchDirection>(compared / 4 % 2);
    const PatchOptions options = ThreePairs(part, direction);
    if (!KindOf(AnalysisOptions(options)).check(options, run.model).empty()) continue;
    ++compared;
    const AnalysisResult result = PatchOf(subject, options);
    const PairsRead read = *ReadPairs(options, run);
    ASSERT_THAT(read.problems, IsEmpty());
    if (!Attends(run.model)) {  // the last token is the same in both prompts
      EXPECT_THAT(result.arrays, IsEmpty());
      continue;
    }
    const PatchedPlainModel plain(subject);
    const int block = run.model.layers - 1, head = run.model.heads - 1;
    const std::string in_block = "block." + std::to_string(block);
    std::string place = in_block, name = in_block;
    int64_t first = 0, count = run.model.width;
    if (part == PatchedPart::kAttention) place = name += ".attention";
    if (part == PatchedPart::kFeedForward) place = name += ".feed_forward";
    if (part == PatchedPart::kHead) {
      place += ".attention.heads";
      name += ".head." + std::to_string(head);
      count = HeadSize(run.model);
      first = head * count;
    }
    const int64_t length = read.pairs[0].length();
    const at::Tensor means = ArrayIn(result, "recovered").view({-1, length})[-1];
    const at::Tensor errors = ArrayIn(result, "recovered_standard_error").view({-1, length})[-1];
    for (int64_t position = -1; position < length; ++position) {
      std::vector<double> values;
      for (const PromptPair& pair : read.pairs) {
        values.push_back(plain.Recovered(pair, direction, place, position, first, count));
      }
      const at::Tensor expected = at::tensor(values, at::kDouble);
      const double mean = expected.mean().item<double>();
      const double error = expected.std().item<double>() / std::sqrt(3.0);
      const bool all = position < 0;
      // Differences of logits of a tenth lose digits.
      EXPECT_NEAR(all ? NumberIn(result, "recovered/" + name) : means[position].item<double>(),
                  mean, 1e-6 * std::max(1.0, std::abs(mean)));
      EXPECT_NEAR(all ? NumberIn(result, "recovered_standard_error/" + name)
                      : errors[position].item<double>(),
                  error, 1e-6 * std::max(1.0, error));
    }
  }
}

TEST(PatchTest, ReadsDocumentsAfterTheirBoundary) {
  RunConfig run = ModelM().config;
  run.task = *ReadDocumentsTask("abcdef\nfedcba\n", 1);  // the boundary is token 6
  const PairsRead read = *ReadPairs({{"ab"}, {"cb"}, {"a"}, {"f"}}, run);
  ASSERT_EQ(read.pairs.size(), 1u);
  EXPECT_THAT(read.pairs[0].clean, ElementsAre(6, 0, 1));
  EXPECT_THAT(read.pairs[0].corrupt, ElementsAre(6, 2, 1));
  EXPECT_EQ(read.pairs[0].right, 0);
  EXPECT_EQ(read.pairs[0].wrong, 5);
}

// Returns all problems of the options.
std::vector<std::string> PatchProblems(const PatchOptions& options, const RunConfig& config) {
  std::vector<OptionProblem> problems =
      KindOf(AnalysisOptions(options)).check(options, config.model);
  for (OptionProblem& problem : problems) {
    problem = InRequest(KindOf(AnalysisOptions(options)), problem);
  }
  if (problems.empty()) problems = *CheckRead(options, {}, {&config});
  std::vector<std::string> texts;
  for (const OptionProblem& problem : problems) {
    texts.push_back(problem.field + ": " + problem.complaint + "; expected " + problem.allowed);
  }
  return texts;
}

TEST(PatchTest, RefusesListsByName) {
  const RunConfig run = ModelM().config;
  EXPECT_THAT(PatchProblems(PairOfM(), run), IsEmpty());
  EXPECT_THAT(PatchProblems({}, run),
              ElementsAre("analysis.patch.clean: there is no prompt; expected at least one"));
  EXPECT_THAT(PatchProblems({{"ab", ""}, {"cb"}, {"a", "b"}, {"b", "a", "c"}}, run),
              ElementsAre("analysis.patch.clean[1]: it is empty; expected text",
                          "analysis.patch.corrupt: it has 1 entries, and clean has 2; expected one "
                          "for each clean prompt",
                          "analysis.patch.wrong: it has 3 entries, and clean has 2; expected one "
                          "for each clean prompt"));
  RunConfig none = run;
  none.model.attention.kind = AttentionKind::kNone;
  for (const PatchedPart part : {PatchedPart::kHead, PatchedPart::kAttention}) {
    EXPECT_THAT(PatchProblems(PairOfM(part), none),
                ElementsAre("analysis.patch.part: the model has no attention; expected residual, "
                            "feed_forward"));
  }
  EXPECT_THAT(PatchProblems(PairOfM(PatchedPart::kFeedForward), none), IsEmpty());
}

TEST(PatchTest, RefusesTextsByName) {
  const RunConfig run = ModelM().config;
  const PatchOptions options = {{"ab", "abx", "abcdefgab", "ab"},
                                {"abc", "abc", "abcdefgab", "cb"},
                                {"ab", "b", "b", "b"},
                                {"a", "c", "y", "b"}};
  EXPECT_THAT(
      PatchProblems(options, run),
      ElementsAre(
          "analysis.patch.right[0]: it has 2 tokens; expected text of one token",
          "analysis.patch.corrupt[0]: it has 3 tokens, and clean[0] has 2; expected as many tokens "
          "in both prompts of a pair",
          "analysis.patch.clean[1]: character 3, \"x\" U+0078, is not in the run's data; expected "
          "its 7 characters",
          "analysis.patch.clean[2]: it has 9 tokens; expected at most 8, the model's context",
          "analysis.patch.corrupt[2]: it has 9 tokens; expected at most 8, the model's context",
          "analysis.patch.wrong[2]: character 1, \"y\" U+0079, is not in the run's data; expected "
          "its 7 characters",
          "analysis.patch.wrong[3]: it equals right[3]; expected two different answers"));
  const absl::Status made = MakeAnalysis({options, {ModelM()}, {}}).status();
  EXPECT_EQ(made.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(made.message(), "analysis.patch.right[0]: it has 2 tokens; expected text of one token");
}

TEST(PatchTest, RefusesTasksWithoutText) {
  RunConfig run = ModelM().config;
  run.task = RecallTask{3, 3, 3};
  EXPECT_THAT(PatchProblems(PairOfM(), run),
              ElementsAre("analysis.patch.clean: the tokens of recall are numbers, not text; "
                          "expected a run of a documents or text task"));
  run.task = TextTask();
  EXPECT_FALSE(CheckRead(PairOfM(), {}, {&run}).ok()) << "its data is not loaded";
}

// A batch has fewer rows than these prompts have positions.
TEST(PatchTest, DoesNotDependOnTheSizeOfBatches) {
  RunConfig run = ModelM().config;
  run.model.context = 64;
  const AnalysisSubject subject = SubjectOf(run, 5);
  constexpr int64_t kLength = 60;
  ASSERT_EQ(PatchedRows(kLength, kLength, 1000), 34);
  std::string clean;
  for (int i = 0; i < kLength; ++i) clean += static_cast<char>('a' + i * i % 7);
  std::string corrupt = clean;
  corrupt[10] = corrupt[50] = 'd';
  ASSERT_NE(clean[10], 'd');
  ASSERT_NE(clean[50], 'd');
  const PatchOptions options = {{clean}, {corrupt}, {"b"}, {"f"}, PatchedPart::kResidual};
  EXPECT_EQ((*MakeAnalysis({options, {subject}, {}}))->pieces(), 2 + 3 * 2);
  const AnalysisResult result = PatchOf(subject, options);
  EXPECT_EQ(NumberIn(result, "recovered/embedding"), 1);
  const at::Tensor recovered = ArrayIn(result, "recovered");
  const PairsRead read = *ReadPairs(options, run);
  const PatchedPlainModel plain(subject);
  for (int64_t position = 0; position < kLength; ++position) {
    SCOPED_TRACE(position);
    const bool differs = position == 10 || position == 50;
    if (!differs) {
      EXPECT_EQ(recovered[0][position].item<double>(), 0);
    }
    EXPECT_EQ(recovered[2][position].item<double>(), position + 1 == kLength ? 1 : 0);
    EXPECT_NEAR(recovered[1][position].item<double>(),
                plain.Recovered(read.pairs[0], PatchDirection::kDenoise, "block.0", position, 0, 4),
                1e-7);
  }
}

TEST(PatchTest, EstimatesItsStateArraysAndTokens) {
  for (const PatchedPart part : {PatchedPart::kResidual, PatchedPart::kHead}) {
    const PatchOptions options = ThreePairs(part);
    const AnalysisRequest request = {options, {ModelM()}, {}};
    const AnalysisCost cost = CostOf(request, 0);
    const auto analysis = *MakeAnalysis(request);
    EXPECT_GE(cost.state_bytes, analysis->state_bytes());
    EXPECT_LE(cost.state_bytes, 2 * analysis->state_bytes());
    EXPECT_EQ(cost.array_bytes, BytesOfArrays(Analyzed(request)));
    EXPECT_EQ(cost.tokens, 12u);
    EXPECT_EQ(cost.forwards, part == PatchedPart::kResidual ? 25 : 30) << "(2 + places)·5 rows";
  }
}

TEST(PatchTest, GivesTheSameBitsWhereverItIsCut) {
  for (const PatchedPart part : {PatchedPart::kResidual, PatchedPart::kHead}) {
    const PatchOptions options = ThreePairs(part, PatchDirection::kNoise);
    ExpectSameBitsWhereverItIsCut({options, {ModelM()}, {}});
    ExpectNothingOfWhatWasStopped(options, *ReadAnalysisContext({options, {ModelM()}, {}}));
  }
}

}  // namespace
}  // namespace ablate::engine
