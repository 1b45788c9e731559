// Tests the option `dependency` of the analysis `attention`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/core/analyses/dependency_words.h"
#include "server/engine/core/data/random.h"
#include "server/engine/core/hook_points.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/every_kind.h"
#include "tests/engine/analyze/pieces.h"
#include "tests/engine/analyze/tagged_text.h"

namespace ablate::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Returns a row of words with these heads and relations; each word is one token.
TaggedRows RowsWithHeads(const std::vector<std::pair<const char*, const char*>>& words) {
  TaggedRows rows;
  TaggedSentence& sentence = rows.sentences.emplace_back();
  TaggedRow& row = rows.rows.emplace_back();
  for (const auto& [head, relation] : words) {
    TaggedWord& word = sentence.words.emplace_back();
    word.head = head;
    word.relation = relation;
    const auto at = static_cast<int64_t>(row.words.size());
    row.words.push_back({at, at});
  }
  return rows;
}

TEST(DependencyWordsTest, SelectsWordsThatSeeTheirHeadAndAnotherWord) {
  const TaggedRows rows = RowsWithHeads({{"2", "det"},
                                         {"0", "root"},
                                         {"2", "obj"},
                                         {"2", "nsubj:pass"},
                                         {"6", "case"},
                                         {"4", "obl"}});
  const DependencyWords causal = SelectDependents("all", true, rows);
  ASSERT_EQ(causal.of_rows.size(), 1u);
  ASSERT_EQ(causal.words, 3u) << "word 1 and 5 can't see their head, 2 is the root";
  EXPECT_EQ(causal.of_rows[0][0].word, 2u);
  EXPECT_EQ(causal.of_rows[0][0].head, 1u);
  EXPECT_THAT(causal.of_rows[0][0].candidates, ElementsAre(0, 1));
  EXPECT_EQ(causal.of_rows[0][2].word, 5u);
  EXPECT_EQ(causal.offset, -2) << "words 4 and 6; −1 for word 3";
  EXPECT_EQ(causal.at_offset, 2u);

  const DependencyWords all = SelectDependents("all", false, rows);
  EXPECT_EQ(all.words, 5u);
  EXPECT_THAT(all.of_rows[0][0].candidates, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(all.at_offset, 2u) << "1 and −2 are equally frequent";
  EXPECT_EQ(all.offset, 1);

  EXPECT_EQ(SelectDependents("nsubj", false, rows).words, 1u) << "with its subtype";
  EXPECT_EQ(SelectDependents("nsubj:pass", false, rows).words, 1u);
  EXPECT_EQ(SelectDependents("ob", false, rows).words, 0u) << "the name is whole";
}

TEST(DependencyWordsTest, LeavesOutWordsThatShareATokenOrHaveNoChoice) {
  TaggedRows rows = RowsWithHeads({{"0", "root"}, {"1", "obj"}, {"1", "obl"}, {"3", "amod"}});
  EXPECT_EQ(SelectDependents("all", true, rows).words, 2u) << "word 2 sees one word only";
  rows.rows[0].words[3] = rows.rows[0].words[2];  // words 3 and 4 are one token
  EXPECT_EQ(SelectDependents("all", true, rows).words, 1u);
  rows.rows[0].words.pop_back();
  rows.rows[0].words.pop_back();  // beyond the context
  EXPECT_EQ(SelectDependents("all", true, rows).words, 0u);
}

// Sentences of three to seven words, each with a random head.
std::vector<TextSentence> SentencesWithHeads(const std::string& letters) {
  SplitMix64 draws(11);
  std::vector<TextSentence> sentences(24);
  for (TextSentence& sentence : sentences) {
    const uint64_t words = 3 + draws.Below(5);
    for (uint64_t i = 0; i < words; ++i) {
      std::string form(1, letters[draws.Below(letters.size())]);
      if (draws.Below(3) == 0) form += letters[draws.Below(letters.size())];
      uint64_t head = draws.Below(words + 1);
      if (head == i + 1) head = 0;
      sentence.push_back({form, "X", "_", absl::StrCat(head), head == 0 ? "root" : "dep"});
    }
  }
  return sentences;
}

struct PlainCounts {
  std::map<std::pair<int, int64_t>, double> at_head;  // by block and head
  std::map<int, double> at_offset;
  double words = 0;
  double chance = 0;
};

// Counts by loops over sentences, words and tokens, one sentence at a time.
PlainCounts CountsOf(const AnalysisRequest& request, const std::vector<TextSentence>& sentences) {
  const AnalysisContext analysis = *ReadAnalysisContext(request);
  const SubjectModel& subject = analysis.subjects[0];
  const ModelConfig& model = subject.config.model;
  const int64_t begin = std::holds_alternative<DocumentsTask>(subject.config.task) ? 1 : 0;
  std::vector<std::string> hook_points;
  for (int i = 0; i < model.layers; ++i) {
    hook_points.push_back(HookPointName(HookPoint::kAttentionWeights, i));
  }
  std::vector<int64_t> lengths;
  for (const TextSentence& sentence : sentences) {
    int64_t length = begin;
    for (const TextWord& word : sentence) length += static_cast<int64_t>(word.form.size());
    lengths.push_back(std::min<int64_t>(length, model.context));
  }
  std::vector<size_t> order(sentences.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lengths[a] < lengths[b]; });
  PlainCounts counts;
  size_t next = 0;
  for (const TokenBatch& batch : analysis.batches) {
    for (int64_t r = 0; r < batch.rows; ++r) {
      const TextSentence& sentence = sentences[order[next++]];
      std::vector<std::pair<int64_t, int64_t>> tokens;  // of each word, the end excluded
      int64_t at = begin;
      for (const TextWord& word : sentence) {
        const int64_t end = at + static_cast<int64_t>(word.form.size());
        if (end > model.context) break;
        tokens.emplace_back(at, end);
        at = end;
      }
      const std::vector<at::Tensor> weights =  // [heads, T, T] of each block
          CaptureHookPoints(analysis, subject, batch.Rows(r, 1), hook_points);
      for (int i = 0; i < static_cast<int>(tokens.size()); ++i) {
        const int head = std::stoi(sentence[static_cast<size_t>(i)].head) - 1;
        const int seen = model.attention.causal ? i : static_cast<int>(tokens.size());
        if (head < 0 || head >= seen) continue;
        const int others = model.attention.causal ? i : seen - 1;
        if (others < 2) continue;
        ++counts.words;
        ++counts.at_offset[head - i];
        double longest = 0, as_long = 0;
        const auto length = [&](int j) {
          return static_cast<double>(tokens[static_cast<size_t>(j)].second -
                                     tokens[static_cast<size_t>(j)].first);
        };
        for (int j = 0; j < seen; ++j) {
          if (j != i) longest = std::max(longest, length(j));
        }
        for (int j = 0; j < seen; ++j) as_long += j != i && length(j) == longest ? 1 : 0;
        counts.chance += length(head) == longest ? 1 / as_long : 0;
        for (int block = 0; block < model.layers; ++block) {
          for (int64_t h = 0; h < model.heads; ++h) {
            double largest = -1;
            int most = -1;
            for (int j = 0; j < seen; ++j) {
              if (j == i) continue;
              const auto [q, q_end] = tokens[static_cast<size_t>(i)];
              const auto [k, k_end] = tokens[static_cast<size_t>(j)];
              const at::Tensor between =
                  weights[static_cast<size_t>(block)][h].slice(0, q, q_end).slice(1, k, k_end);
              const double weight = between.to(at::kDouble).sum().item<double>();
              if (weight > largest) most = j;
              largest = std::max(largest, weight);
            }
            counts.at_head[{block, h}] += most == head ? 1 : 0;
          }
        }
      }
    }
  }
  return counts;
}

TEST(DependencyTest, EqualsLoopsOverWordsInDrawnSettings) {
  int compared = 0;
  for (uint64_t number = 0; compared < 10; ++number) {
    SCOPED_TRACE(number);
    const AnalysisSubject subject = DrawnSubject(number);
    const absl::StatusOr<SampledData> data = SampledDataOf(subject.config);
    if (!Attends(subject.config.model) || !data.ok()) continue;
    const std::vector<TextSentence> sentences = SentencesWithHeads(LettersOf(*data));
    const AnalysisRequest request = {
        AttentionOptions{{}, "all"}, {subject}, AllOf(Conllu(sentences))};
    const PlainCounts plain = CountsOf(request, sentences);
    if (plain.words == 0) continue;
    ++compared;
    const AnalysisResult result = Analyzed(request);
    EXPECT_EQ(NumberIn(result, "dependency_words"), plain.words);
    EXPECT_NEAR(NumberIn(result, "dependency_chance"), plain.chance / plain.words, 1e-12);
    double at_offset = 0, best = 0;
    for (const auto& [offset, count] : plain.at_offset) at_offset = std::max(at_offset, count);
    EXPECT_NEAR(NumberIn(result, "dependency_offset"), at_offset / plain.words, 1e-12);
    const at::Tensor shares = ArrayIn(result, "dependency");
    for (const auto& [place, count] : plain.at_head) {
      const auto [block, head] = place;
      const std::string name = absl::StrCat("dependency/block.", block, ".head.", head);
      EXPECT_NEAR(NumberIn(result, name), count / plain.words, 1e-12) << name;
      EXPECT_NEAR(shares[block][head].item<double>(), count / plain.words, 1e-12);
      best = std::max(best, count / plain.words);
    }
    EXPECT_NEAR(NumberIn(result, "dependency"), best, 1e-12);
    for (const AnalysisNumber& number_of :
         Analyzed({AttentionOptions{}, {subject}, {40, ""}}).numbers) {
      EXPECT_NE(number_of.name.substr(0, 10), "dependency") << "not without the option";
    }
  }
}

TEST(DependencyTest, RefusesInputsWithoutHeads) {
  const auto problem = [](const std::string& relation, const AnalysisInputs& inputs) {
    return std::string(
        MakeAnalysis({AttentionOptions{{}, relation}, {ModelM()}, inputs}).status().message());
  };
  EXPECT_EQ(problem("all", {40, ""}),
            "inputs.dataset: dependency needs tagged sentences; expected a data set in CoNLL-U, "
            "whose words have heads");
  const auto of = [](const char* head) {
    return AllOf(Conllu({{{"a", "X", "_", "0", "root"},
                          {"b", "X", "_", "1", "det"},
                          {"c", "X", "_", head, "nsubj:pass"}}}));
  };
  EXPECT_EQ(
      problem("all", of("_")),
      "inputs.dataset: word 3 of the sentence at line 1 has the head \"_\"; expected a word's "
      "number, 0 to 3, in column 7");
  EXPECT_EQ(
      problem("all", of("4")),
      "inputs.dataset: word 3 of the sentence at line 1 has the head \"4\"; expected a word's "
      "number, 0 to 3, in column 7");
  EXPECT_EQ(problem("obj", of("1")),
            "analysis.attention.dependency: no word has the relation \"obj\" to a head that it "
            "sees; expected all, det, nsubj");
  EXPECT_THAT(problem("nsubj", of("1")), IsEmpty());
}

TEST(DependencyTest, GivesTheSameBitsWhereverItIsCut) {
  const std::vector<TextSentence> sentences = SentencesWithHeads("abc");
  ExpectSameBitsWhereverItIsCut(
      {AttentionOptions{{}, "all"}, {ModelM()}, AllOf(Conllu(sentences))});
}

}  // namespace
}  // namespace ablate::engine
