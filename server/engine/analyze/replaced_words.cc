#include "server/engine/analyze/replaced_words.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "base/utf8.h"
#include "server/engine/core/data/characters.h"
#include "server/engine/core/data/random.h"

namespace ablate::engine {
namespace {

constexpr size_t kLettersOfAWord = 3;
// Numbers that are drawn for a word: its rank in the order, and its letters.
constexpr uint64_t kDrawsOfAWord = 1 + kLettersOfAWord;

bool IsWhitespace(char32_t c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::vector<std::string> LettersOf(const TextCodec& codec) {
  std::vector<std::string> letters, others;
  for (char letter = 'a'; codec.encoding != nullptr && letter <= 'z'; ++letter) {
    letters.emplace_back(1, letter);
  }
  if (codec.encoding != nullptr) return letters;
  for (const char32_t c : *codec.alphabet) {
    if (IsWhitespace(c)) continue;
    (c >= 'a' && c <= 'z' ? letters : others).push_back(text::EncodeUtf8(c));
  }
  return letters.empty() ? others : letters;
}

// Returns which of the words are replaced.
std::vector<bool> ChooseWords(size_t words, size_t count, uint64_t seed) {
  std::vector<size_t> order(words);
  std::iota(order.begin(), order.end(), size_t{0});
  const auto drawn = [seed](size_t word) {
    return SplitMix64::UniformAt(seed, word * kDrawsOfAWord);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return drawn(a) < drawn(b); });
  std::vector<bool> chosen(words, false);
  for (size_t i = 0; i < count; ++i) chosen[order[i]] = true;
  return chosen;
}

// Returns true if the last token of a row is followed by a target.
bool HasLastTarget(const TokenBatch& row) { return row.targets.back() != TokenBatch::kIgnored; }

std::vector<uint32_t> TokensOf(const TokenBatch& row) {
  std::vector<uint32_t> tokens(row.inputs.begin(), row.inputs.end());
  if (HasLastTarget(row)) tokens.push_back(static_cast<uint32_t>(row.targets.back()));
  return tokens;
}

// Returns a row of tokens, the last of which is its last target if `has_last`.
TokenBatch RowOf(const std::vector<uint32_t>& tokens, bool has_last) {
  TokenBatch row;
  row.rows = 1;
  row.length = static_cast<int64_t>(tokens.size() - (has_last ? 1 : 0));
  row.lengths = {row.length};
  row.inputs.assign(tokens.begin(), tokens.begin() + row.length);
  row.targets.assign(tokens.begin() + 1, tokens.end());
  if (!has_last) row.targets.push_back(TokenBatch::kIgnored);
  return row;
}

}  // namespace

size_t ReplacedCount(double fraction, size_t words) {
  if (fraction <= 0 || words == 0) return 0;
  const auto count = static_cast<size_t>(std::floor(fraction * static_cast<double>(words) + 1e-9));
  return std::clamp<size_t>(count, 1, words);
}

WordReplacer::WordReplacer(TextCodec codec, int64_t context)
    : codec_(std::move(codec)),
      context_(static_cast<size_t>(context)),
      letters_(LettersOf(codec_)) {
  if (codec_.encoding != nullptr) encoder_.emplace(codec_.encoding);
}

SequenceWords WordReplacer::WordsOf(const TokenBatch& row) const {
  return FindWords(TokensOf(row));
}

bool WordReplacer::IsBoundary(uint32_t token) const {
  if (codec_.encoding == nullptr) return token >= codec_.alphabet->size();
  const absl::Span<const uint32_t> special = codec_.encoding->special();
  return std::binary_search(special.begin(), special.end(), token) ||
         codec_.encoding->TextOf(token).empty();
}

SequenceWords WordReplacer::FindWords(absl::Span<const uint32_t> tokens) const {
  SequenceWords found;
  for (size_t begin = 0; begin < tokens.size();) {
    size_t end = begin;
    while (end < tokens.size() && !IsBoundary(tokens[end])) ++end;
    AddWordsOf(tokens.subspan(begin, end - begin), begin, &found);
    begin = end + 1;
  }
  return found;
}

// Adds the words of tokens without boundaries, the first of which is token `first` of the sequence.
void WordReplacer::AddWordsOf(absl::Span<const uint32_t> tokens, size_t first,
                              SequenceWords* found) const {
  const std::string bytes = codec_.BytesOf(tokens);
  const std::vector<size_t> ends = codec_.EndsOf(tokens);
  const auto start_of = [&](size_t token) { return token == 0 ? 0 : ends[token - 1]; };
  const auto token_of = [&](size_t byte) {
    return static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), byte) - ends.begin());
  };
  const auto is_white = [](char c) { return IsWhitespace(static_cast<unsigned char>(c)); };
  std::vector<TokenWord> words;
  for (auto begin = bytes.begin(); begin != bytes.end();) {
    begin = std::find_if_not(begin, bytes.end(), is_white);
    const auto end = std::find_if(begin, bytes.end(), is_white);
    if (begin == end) break;
    const auto from = static_cast<size_t>(begin - bytes.begin());
    const auto to = static_cast<size_t>(end - bytes.begin());
    TokenWord word;
    word.first = token_of(from);
    word.end = token_of(to - 1) + 1;
    // Encoders merge a word with the space before it.
    const bool space = word.first > 0 && start_of(word.first) == from &&
                       codec_.BytesOf(tokens.subspan(word.first - 1, 1)) == " ";
    word.replaced = word.first - (space ? 1 : 0);
    word.before = bytes.substr(start_of(word.replaced), from - start_of(word.replaced));
    word.after = bytes.substr(to, ends[word.end - 1] - to);
    words.push_back(std::move(word));
    begin = end;
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const bool shares = (i > 0 && words[i - 1].end > words[i].first) ||
                        (i + 1 < words.size() && words[i].end > words[i + 1].first);
    if (shares) {
      ++found->left_out;
      continue;
    }
    found->words.push_back(words[i]);
    TokenWord& word = found->words.back();
    word.first += first;
    word.end += first;
    word.replaced += first;
  }
}

void WordReplacer::Encode(absl::string_view text, std::vector<uint32_t>* tokens) {
  if (encoder_.has_value()) return encoder_->Encode(text, tokens);
  for (size_t offset = 0; offset < text.size();) {
    // All characters are of the alphabet.
    tokens->push_back(*RankOf(text::DecodeUtf8(text, offset), *codec_.alphabet));
  }
}

ReplacedRow WordReplacer::Replace(const TokenBatch& row, double fraction, uint64_t seed) {
  const std::vector<uint32_t> original = TokensOf(row);
  const std::vector<TokenWord> words = FindWords(original).words;
  const std::vector<bool> chosen =
      ChooseWords(words.size(), ReplacedCount(fraction, words.size()), seed);
  // The new tokens, and where the words that stay begin among them.
  std::vector<uint32_t> tokens;
  std::vector<size_t> begins(words.size(), 0);
  size_t copied = 0;  // tokens of the original
  const auto copy_to = [&](size_t end) {
    tokens.insert(tokens.end(), original.begin() + static_cast<ptrdiff_t>(copied),
                  original.begin() + static_cast<ptrdiff_t>(end));
    copied = end;
  };
  for (size_t i = 0; i < words.size(); ++i) {
    if (!chosen[i]) {
      copy_to(words[i].first);
      begins[i] = tokens.size();
      continue;
    }
    copy_to(words[i].replaced);
    std::string text = words[i].before;
    for (uint64_t letter = 1; letter <= kLettersOfAWord; ++letter) {
      const double u = SplitMix64::UniformAt(seed, i * kDrawsOfAWord + letter);
      text += letters_[static_cast<size_t>(u * static_cast<double>(letters_.size()))];
    }
    Encode(text + words[i].after, &tokens);
    copied = words[i].end;
  }
  copy_to(original.size());

  const bool has_last = HasLastTarget(row) && tokens.size() > 1;
  tokens.resize(std::min(tokens.size(), context_ + (has_last ? 1 : 0)));
  ReplacedRow replaced;
  replaced.row = RowOf(tokens, has_last);
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t size = words[i].end - words[i].first;
    if (chosen[i] || begins[i] + size > tokens.size()) continue;
    for (size_t token = 0; token < size; ++token) {
      // A target is predicted one position before it; the first token is none.
      const auto original_at = static_cast<int64_t>(words[i].first + token);
      const auto at = static_cast<int64_t>(begins[i] + token);
      if (original_at > 0 && at > 0) replaced.stayed.push_back({at - 1, original_at - 1});
    }
  }
  return replaced;
}

size_t WordReplacer::MostTokens(const TokenBatch& row, double fraction) const {
  std::vector<size_t> added;  // by each word; a token has a byte at least
  for (const TokenWord& word : WordsOf(row).words) {
    const size_t bytes = word.before.size() + kLettersOfAWord + word.after.size();
    const size_t tokens = word.end - word.replaced;
    added.push_back(bytes - std::min(bytes, tokens));
  }
  std::sort(added.begin(), added.end(), std::greater<>());
  const auto end = added.begin() + static_cast<ptrdiff_t>(ReplacedCount(fraction, added.size()));
  return std::min(context_, std::accumulate(added.begin(), end, row.inputs.size()));
}

}  // namespace ablate::engine
