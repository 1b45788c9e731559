// Writes tagged sentences for tests.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_TAGGED_TEXT_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_TAGGED_TEXT_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/analysis.h"

namespace ablate::engine {

struct TextWord {
  std::string form;
  std::string upos;
  std::string features = "_";
  std::string head = "_";
  std::string relation = "_";
};
using TextSentence = std::vector<TextWord>;

// Returns sentences in CoNLL-U. Words are not separated by spaces unless `spaces`.
inline std::string Conllu(const std::vector<TextSentence>& sentences, bool spaces = false) {
  std::string text;
  for (const TextSentence& sentence : sentences) {
    for (size_t i = 0; i < sentence.size(); ++i) {
      absl::StrAppend(&text, i + 1, "\t", sentence[i].form, "\t_\t", sentence[i].upos, "\t_\t",
                      sentence[i].features, "\t", sentence[i].head, "\t", sentence[i].relation,
                      "\t_\t", spaces ? "_" : "SpaceAfter=No", "\n");
    }
    text += "\n";
  }
  return text;
}

// Returns inputs that read all of a file.
inline AnalysisInputs AllOf(const std::string& text) {
  AnalysisInputs inputs;
  inputs.documents = 1'000'000;
  inputs.text = std::make_shared<const std::string>(text);
  return inputs;
}

// Returns `count` sentences of one to four words of one or two of these letters. The first letter
// decides the label, with some exceptions. The head of a word is an earlier one, the first word's
// the root.
inline std::vector<TextSentence> DrawnSentences(size_t count, const std::string& letters) {
  std::vector<TextSentence> sentences;
  for (size_t i = 0; i < count; ++i) {
    TextSentence& sentence = sentences.emplace_back();
    for (size_t j = 0; j <= (i * i + i / 3) % 4; ++j) {
      const size_t draw = 7 * i + 5 * j * j + i * j + i / 5;
      std::string form(1, letters[draw % letters.size()]);
      if (draw % 3 == 1) form += letters[(draw / 3) % letters.size()];
      const bool noun = (draw % letters.size() < letters.size() / 2) != (draw % 11 == 0);
      sentence.push_back({form, noun ? "NOUN" : "VERB", draw % 5 == 0 ? "Number=Sing" : "_",
                          absl::StrCat(j == 0 ? 0 : 1 + draw % j), j == 0 ? "root" : "dep"});
    }
  }
  return sentences;
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_TAGGED_TEXT_H_
