// Fuzzes the reader of tagged sentences with libFuzzer.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/conllu.h"
#include "base/utf8.h"

namespace ablate {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

// Checks that words lie in the sentence's text in order, and that labels are parts of the file.
void CheckSentence(const TaggedSentence& sentence) {
  Require(!sentence.words.empty() && sentence.words.size() <= kMaxSentenceWords);
  Require(sentence.line > 0 && text::IsUtf8(sentence.text));
  size_t begin = 0;
  for (const TaggedWord& word : sentence.words) {
    Require(begin <= word.begin && word.begin < word.end && word.end <= sentence.text.size());
    begin = word.begin;
    const absl::string_view part =
        absl::string_view(sentence.text).substr(word.begin, word.end - word.begin);
    Require(!word.form.empty() && text::IsUtf8(word.form) && text::IsUtf8(part));
    for (const char* label : {"upos", "xpos", "Number"}) Require(LabelOf(word, label) != "_");
  }
}

void Try(absl::string_view file) {
  IsConllu(file);
  ConlluReader reader(file);
  TaggedSentence sentence;
  while (true) {
    const auto found = reader.Next(sentence);
    if (!found.ok()) {
      Require(absl::StartsWith(found.status().message(), "line "));
      Require(found.status().message().size() < 200);
      return;
    }
    if (!*found) return;
    CheckSentence(sentence);
  }
}

}  // namespace
}  // namespace ablate

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ablate::Try(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
