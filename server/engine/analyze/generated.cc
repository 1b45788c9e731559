// Prompts to tokens, tokens to text, and the search in the training data.
#include "server/engine/analyze/generated.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "server/engine/data/random.h"
#include "text/utf8.h"

namespace ablate::engine {
namespace {

using Tokens = absl::Span<const uint32_t>;

struct Lexical {
  using is_transparent = void;
  bool operator()(Tokens a, Tokens b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  }
};

Tokens DocumentOf(const TokenizedDocuments& documents, uint32_t document) {
  const size_t start = documents.starts[document];
  return Tokens(documents.tokens).subspan(start, documents.starts[document + 1] - start);
}

// Which of `wanted` are documents of `training`: one pass over the data, however many are wanted.
std::set<Tokens, Lexical> Found(const TokenizedDocuments& documents,
                                const std::vector<uint32_t>& training,
                                const std::vector<Draft>& wanted) {
  std::set<Tokens, Lexical> sought, found;
  for (const Draft& draft : wanted) sought.insert(Tokens(draft.tokens));
  for (const uint32_t document : training) {
    const auto hit = sought.find(DocumentOf(documents, document));
    if (hit != sought.end()) found.insert(*hit);
  }
  return found;
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> EncodePrompt(absl::string_view prompt,
                                                   const std::u32string& alphabet, uint32_t most) {
  std::vector<uint32_t> tokens;
  for (size_t offset = 0; offset < prompt.size();) {
    const size_t start = offset;
    const char32_t point = text::DecodeUtf8(prompt, offset);
    if (point == text::kNotUtf8) {
      return absl::InvalidArgumentError(
          absl::StrCat("prompt: it is not UTF-8 at byte ", start, "; allowed: text in UTF-8"));
    }
    const auto place = std::lower_bound(alphabet.begin(), alphabet.end(), point);
    if (place == alphabet.end() || *place != point) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "prompt: character %d, %sU+%04X, is not in the run's data; allowed: its %d characters",
          tokens.size() + 1,
          text::IsControl(point) ? std::string()
                                 : absl::StrCat("\"", prompt.substr(start, offset - start), "\" "),
          static_cast<uint32_t>(point), alphabet.size()));
    }
    tokens.push_back(static_cast<uint32_t>(place - alphabet.begin()));
  }
  if (tokens.size() <= most) return tokens;
  return absl::InvalidArgumentError(absl::StrCat("prompt: it has ", tokens.size(),
                                                 " characters; allowed: at most ", most,
                                                 ", one less than the model's context"));
}

SampleWriter::SampleWriter(const TokenizedDocuments& documents, uint32_t held_out, uint32_t seed)
    : documents_(documents) {
  const size_t count = documents.documents();
  training_ = PythonShuffle(static_cast<uint32_t>(count), seed);
  training_.resize(count - std::min<size_t>(held_out, count));
}

std::vector<Sample> SampleWriter::Write(const std::vector<Draft>& drafts) {
  const std::set<Tokens, Lexical> found = Found(documents_, training_, drafts);
  std::vector<Sample> samples;
  samples.reserve(drafts.size());
  for (const Draft& draft : drafts) {
    Sample& sample = samples.emplace_back();
    sample.index = next_++;
    sample.text = TextOf(draft);
    sample.tokens = draft.drawn;
    sample.ended = draft.ended;
    sample.in_training_data = found.count(Tokens(draft.tokens)) > 0;
    counts_.in_training_data += sample.in_training_data ? 1 : 0;
    counts_.distinct += texts_.insert(sample.text).second ? 1 : 0;
  }
  return samples;
}

std::string SampleWriter::TextOf(const Draft& draft) const {
  std::string text;
  for (const uint32_t token : draft.tokens) text += text::EncodeUtf8(documents_.alphabet[token]);
  return text;
}

}  // namespace ablate::engine
