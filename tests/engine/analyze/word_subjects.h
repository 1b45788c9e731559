// Makes models with random parameters that read words.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_WORD_SUBJECTS_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_WORD_SUBJECTS_H_

#include <memory>
#include <string>

#include "base/tokenizer/encoder.h"
#include "server/engine/core/data/whole_text.h"
#include "server/engine/task.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace ablate::engine {

// Returns words of one to six letters.
inline std::string TextOfWords() {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    for (int j = 0; j <= (i * i + i / 5) % 6; ++j) {
      text += static_cast<char>('a' + (i + j * j) % 9);
    }
    text += i % 11 == 3 ? "\n" : i % 7 == 2 ? "  " : " ";
  }
  return text;
}

// Returns a model with random parameters that reads words: documents of several lengths, or a text.
inline AnalysisSubject SubjectOfWords(bool documents, Precision precision = Precision::kFloat64) {
  RunConfig run = DrawnRun(0);
  run.task = ModelM().config.task;
  if (documents) {
    run.task = *ReadDocumentsTask(TextOfWords(), 8);
  } else {
    run.task = *ReadTextTask(TextOfWords(), 0.3);
  }
  run.model = ModelConfig();
  run.model.vocabulary = KindOf(run.task).shape(run.task)->vocabulary;
  run.model.layers = 2;
  run.model.width = 8;
  run.model.heads = 2;
  run.model.context = 24;
  run.model.hidden = 16;
  run.precision = precision;
  return SubjectOf(run, 3);
}

// Returns a model that reads the tokens of an encoding, one of which is special.
inline AnalysisSubject SubjectOfTokens() {
  auto text = std::make_shared<TokenizedText>();
  text->encoding =
      tokenizer::SmallTokenizer{{"Ġ a", "b c", "Ġa bc", "d e", "Ġ d"}, {"<|end|>"}}.Make();
  tokenizer::Encoder(text->encoding).Encode(TextOfWords(), &text->tokens);
  text->tokens[text->tokens.size() * 7 / 10 + 12] = text->encoding->special()[0];  // held out
  RunConfig run = SubjectOfWords(false).config;
  run.task = TextTask{true, text, 0.3};
  run.model.vocabulary = static_cast<int>(text->vocabulary());
  return SubjectOf(run, 4);
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_WORD_SUBJECTS_H_
