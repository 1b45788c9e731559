#include "server/engine/core/analyses/tagged_rows.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/tokenizer/encoder.h"
#include "base/utf8.h"
#include "server/engine/core/data/batches.h"
#include "server/engine/core/data/characters.h"

namespace ablate::engine {
namespace {

// Returns a problem of the file, given the reader's message.
SequencesRead MalformedSentences(absl::string_view message) {
  constexpr absl::string_view kExpected = "; expected ";
  const size_t expected = message.find(kExpected);
  if (expected == absl::string_view::npos) {
    return UnreadableInputs("inputs.dataset", std::string(message), "sentences in CoNLL-U");
  }
  return UnreadableInputs("inputs.dataset", std::string(message.substr(0, expected)),
                          std::string(message.substr(expected + kExpected.size())));
}

// Converts sentences to rows: inputs and targets of one sequence, and the tokens of its words.
class SentenceEncoder {
 public:
  SentenceEncoder(const SampledData& own, int64_t context)
      : codec_(own.codec()), context_(static_cast<size_t>(context)) {
    if (own.documents != nullptr) boundary_ = own.documents->bos();
    if (codec_.encoding != nullptr) encoder_.emplace(codec_.encoding);
  }

  // Converts the `number`-th sentence. Returns the problem of its first unknown character, if any;
  // the row then has token 0 there.
  std::optional<SequencesRead> Encode(const TaggedSentence& sentence, size_t number) {
    tokens_.clear();
    // No more tokens than inputs and their targets need.
    const size_t most = boundary_.has_value() ? context_ : context_ + 1;
    std::optional<SequencesRead> wrong;
    if (encoder_.has_value()) {
      encoder_->EncodeBeginning(sentence.text, most, &tokens_);
    } else {
      wrong = EncodeCharacters(sentence, number, most);
    }
    batch_ = {};
    std::vector<uint32_t> all;  // the tokens between boundaries, if there are such
    if (boundary_.has_value()) all.push_back(*boundary_);
    all.insert(all.end(), tokens_.begin(), tokens_.end());
    const size_t length = std::min(all.size(), context_);
    batch_.inputs.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(length));
    batch_.targets.assign(all.begin() + 1, all.begin() + static_cast<std::ptrdiff_t>(
                                                             std::min(all.size(), length + 1)));
    if (batch_.targets.size() < length) {
      batch_.targets.push_back(boundary_.has_value() ? int64_t{*boundary_} : TokenBatch::kIgnored);
    }
    batch_.rows = 1;
    batch_.length = static_cast<int64_t>(length);
    batch_.lengths = {batch_.length};
    return wrong;
  }

  // The last sentence's row.
  const TokenBatch& batch() const { return batch_; }

  // Returns the tokens of the last sentence's words that are wholly within the row.
  std::vector<TokenSpan> Words(const TaggedSentence& sentence) const {
    const std::vector<size_t> ends = codec_.EndsOf(tokens_);
    const int64_t first = boundary_.has_value() ? 1 : 0;  // position of the sentence's first token
    const absl::string_view text = sentence.text;
    const tokenizer::Nfc* const nfc = codec_.encoding == nullptr ? nullptr : codec_.encoding->nfc();
    const bool changes = nfc != nullptr && nfc->Of(text) != text;
    // Returns a place of the sentence in the normal text, which the tokens have. Places ascend, so
    // that each call goes on where the last one was certain.
    size_t certain = 0, normal = 0;  // bytes of the sentence and of the normal text
    const auto in_tokens = [&](size_t byte) {
      if (!changes) return byte;
      std::string next;
      certain += nfc->Append(text.substr(certain, byte - certain), /*is_last=*/false, &next);
      normal += next.size();
      return normal + nfc->Of(text.substr(certain, byte - certain)).size();
    };
    std::vector<TokenSpan> words;
    for (const TaggedWord& word : sentence.words) {
      const auto begin = std::upper_bound(ends.begin(), ends.end(), in_tokens(word.begin));
      const auto end = std::lower_bound(ends.begin(), ends.end(), in_tokens(word.end));
      if (end == ends.end()) break;
      const TokenSpan span = {first + (begin - ends.begin()), first + (end - ends.begin())};
      if (span.last >= batch_.length) break;
      words.push_back(span);
    }
    return words;
  }

 private:
  std::optional<SequencesRead> EncodeCharacters(const TaggedSentence& sentence, size_t number,
                                                size_t most) {
    std::optional<SequencesRead> wrong;
    for (size_t offset = 0; offset < sentence.text.size() && tokens_.size() < most;) {
      const char32_t point = text::DecodeUtf8(sentence.text, offset);
      const std::optional<uint32_t> token = RankOf(point, *codec_.alphabet);
      if (!token.has_value() && !wrong.has_value()) {
        wrong = UnknownCharacter(absl::StrCat("sentence ", number, " (line ", sentence.line, ")"),
                                 tokens_.size() + 1, point, *codec_.alphabet);
      }
      tokens_.push_back(token.value_or(0));
    }
    return wrong;
  }

  const TextCodec codec_;
  const size_t context_;
  std::optional<uint32_t> boundary_;  // of documents
  std::optional<tokenizer::Encoder> encoder_;
  std::vector<uint32_t> tokens_;  // of the last sentence, without boundaries
  TokenBatch batch_;
};

// Appends a row to the last batch if it has the same length and room, or to a new one.
void AppendRow(const TokenBatch& row, std::vector<TokenBatch>* batches) {
  if (batches->empty() || batches->back().length != row.length ||
      batches->back().rows == BatchSource::kMaxEvaluationBatch) {
    batches->push_back(row);
    return;
  }
  TokenBatch& last = batches->back();
  ++last.rows;
  last.inputs.insert(last.inputs.end(), row.inputs.begin(), row.inputs.end());
  last.targets.insert(last.targets.end(), row.targets.begin(), row.targets.end());
  last.lengths.push_back(row.length);
}

}  // namespace

absl::StatusOr<SequencesRead> ReadTaggedSentences(const SampledData& own, int64_t context,
                                                  const AnalysisInputs& inputs) {
  auto tagged = std::make_shared<TaggedRows>();
  tagged->file = inputs.text;
  SentenceEncoder encoder(own, context);
  ConlluReader reader(*tagged->file);
  std::vector<TokenBatch> batches;  // of one row, in the file's order
  std::vector<TaggedRow> rows;
  uint64_t taken = 0;
  while (inputs.documents == 0 || batches.size() < inputs.documents) {
    TaggedSentence sentence;
    const absl::StatusOr<bool> found = reader.Next(sentence);
    if (!found.ok()) return MalformedSentences(found.status().message());
    if (!*found) break;
    auto wrong = encoder.Encode(sentence, batches.size() + 1);
    const uint64_t length = encoder.batch().tokens();
    if (inputs.documents == 0 && !batches.empty() && taken + length > inputs.tokens) break;
    if (wrong.has_value()) return *std::move(wrong);
    taken += length;
    if (inputs.documents > 0 && taken > kMaxReadTokens) return TooManyTokens(inputs);
    batches.push_back(encoder.batch());
    rows.push_back({tagged->sentences.size(), encoder.Words(sentence)});
    sentence.text = std::string();  // it isn't needed any more
    tagged->sentences.push_back(std::move(sentence));
  }
  std::vector<size_t> order(batches.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return batches[a].length < batches[b].length; });
  SequencesRead read;
  for (const size_t i : order) {
    AppendRow(batches[i], &read.batches);
    tagged->rows.push_back(std::move(rows[i]));
  }
  read.tagged = std::move(tagged);
  return read;
}

}  // namespace ablate::engine
