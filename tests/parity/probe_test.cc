// Compares the accuracies of `probe` with those of scikit-learn's LogisticRegression.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "server/engine/core/analyses/probe_words.h"
#include "server/engine/trainer.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/tagged_text.h"
#include "tests/parity/exchange.h"

namespace ablate::engine {
namespace {

constexpr double kTolerance = 0.005;  // of an accuracy
constexpr char kWithoutScikitLearn[] =
    ", here scikit-learn: build/venv/bin/pip install scikit-learn, then run it again";

// Returns a model with random parameters that reads all characters of a text.
AnalysisSubject SubjectOfCharacters(const std::string& text, int context) {
  RunConfig run;
  run.task = *ReadTextTask(text, 0.3);
  run.model.vocabulary = KindOf(run.task).shape(run.task)->vocabulary;
  run.model.layers = 1;
  run.model.width = 16;
  run.model.heads = 2;
  run.model.context = context;
  run.model.hidden = 32;
  run.precision = Precision::kFloat64;
  return SubjectOf(run, 3);
}

// Returns the places, such as block.0, whose names scikit-learn's accuracies have.
std::vector<std::string> PlacesOf(const ModelConfig& model) {
  std::vector<std::string> places = {"embedding"};
  for (int i = 0; i < model.layers; ++i) places.push_back(absl::StrCat("block.", i));
  return places;
}

// Writes the vectors of the words, by their last token or the mean of all, and their labels.
void WriteProbeCase(const AnalysisRequest& request, const std::string& folder,
                    const std::string& name) {
  const auto& options = std::get<ProbeOptions>(request.options);
  const AnalysisContext analysis = *ReadAnalysisContext(request);
  const SubjectModel& subject = analysis.subjects[0];
  const ProbeWords words = SelectWords(options, *analysis.tagged, request.seed);
  const std::vector<std::string> points = HookPointsOr({}, subject.config.model);
  const std::vector<std::string> places = PlacesOf(subject.config.model);
  TensorMap tensors;
  const auto add_labels = [&](const std::string& kind, const std::vector<int64_t>& labels) {
    tensors[kind] = at::tensor(at::ArrayRef<int64_t>(labels), at::kLong);
  };
  add_labels("accuracy", LabelsOf(words));
  if (options.controls) {
    add_labels("shuffled", ShuffledLabels(words, request.seed));
    add_labels("types", TypeLabels(words, request.seed));
  }
  for (size_t i = 0; i < points.size(); ++i) {
    const at::Tensor rows = RowsAlone(analysis, subject, points[i]);
    std::vector<at::Tensor> vectors(words.words.size());
    int64_t offset = 0;
    size_t row = 0;
    for (const TokenBatch& batch : analysis.batches) {
      for (const int64_t length : batch.lengths) {
        const auto [begin, end] = words.of_rows[row++];
        for (size_t word = begin; word < end; ++word) {
          const auto [first, last] = words.words[word].tokens;
          vectors[word] = options.subtoken == Subtoken::kMean
                              ? rows.narrow(0, offset + first, last - first + 1).mean(0)
                              : rows[offset + last];
        }
        offset += length;
      }
    }
    tensors[absl::StrCat("vectors/", places[i])] = at::stack(vectors);
  }
  WriteCase(folder, name, {{"training", words.training}, {"c", options.c}, {"places", places}},
            tensors);
}

// Compares the analysis of the request with scikit-learn. Skips the test if that is missing.
void ExpectScikitLearns(const AnalysisRequest& request) {
  PrepareLaneThread();
  const ScratchFolder folder;
  WriteProbeCase(request, folder.path(), "probe");
  const std::string missing = RunReference("probes", folder.path());
  if (!missing.empty()) GTEST_SKIP() << missing << kWithoutScikitLearn;
  const TensorMap answer = ReadAnswer(folder.path(), "probe");
  const AnalysisResult result = Analyzed(request);
  const size_t fits = std::get<ProbeOptions>(request.options).controls ? 3 : 1;
  EXPECT_EQ(answer.size(), fits * PlacesOf(request.subjects[0].config.model).size());
  for (const auto& [name, theirs] : answer) {
    EXPECT_NEAR(NumberIn(result, name), theirs.item<double>(), kTolerance) << name;
  }
  const std::string place = "/block.0";
  EXPECT_GT(NumberIn(result, "accuracy" + place), NumberIn(result, "majority") + 0.05)
      << "it reads something";
}

// Sentences of words of one or two letters, of which the first decides one of `labels` labels.
std::vector<TextSentence> SentencesOfLabels(size_t labels) {
  std::vector<TextSentence> sentences = DrawnSentences(240, "abcdefghi");
  for (TextSentence& sentence : sentences) {
    for (TextWord& word : sentence) {
      const auto letter = static_cast<size_t>(word.form[0] - 'a');
      // The exceptions of DrawnSentences.
      const bool exception = (letter < 4) != (word.upos == "NOUN");
      word.upos = absl::StrCat("L", (letter + (exception ? 1 : 0)) % labels);
    }
  }
  return sentences;
}

TEST(ProbeParityTest, MatchesScikitLearn) {
  for (const size_t labels : {2, 3, 5}) {
    for (const double c : {0.03, 1.0}) {
      ProbeOptions options;
      options.c = c;
      options.subtoken = labels == 3 ? Subtoken::kMean : Subtoken::kLast;
      SCOPED_TRACE(absl::StrCat(labels, " labels, C ", c));
      ExpectScikitLearns({options,
                          {SubjectOfCharacters("abcdefghiabcdefghi", 16)},
                          AllOf(Conllu(SentencesOfLabels(labels)))});
      if (IsSkipped()) return;
    }
  }
}

TEST(ProbeParityTest, MatchesScikitLearnOnTheEnglishWebTreebank) {
  const std::string path = ABLATE_TEST_DATA "/en_ewt-ud-dev.conllu";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const std::string sentences = process::ReadWholeFile(path);
  ProbeOptions options;
  options.subtoken = Subtoken::kMean;
  options.controls = false;
  ExpectScikitLearns({options, {SubjectOfCharacters(sentences, 256)}, AllOf(sentences)});
}

}  // namespace
}  // namespace ablate::engine
