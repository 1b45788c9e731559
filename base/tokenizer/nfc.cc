#include "base/tokenizer/nfc.h"

#include <algorithm>
#include <iterator>

#include "absl/container/flat_hash_set.h"
#include "base/tokenizer/word_splitter.h"
#include "base/utf8.h"

namespace ablate::tokenizer {
namespace {

struct CombiningRange {
  char32_t first, last;
  uint8_t combining_class;
};

// `second` is 0 if one character replaces another.
struct Decomposition {
  char32_t composed, first, second = 0;
};

#include "base/tokenizer/nfc_tables.inc"

// Kinds that aren't combining classes, which are 1 to 240.
constexpr uint8_t kInert = 0;  // begins a sequence and is in normal form
constexpr uint8_t kMayChange =
    255;  // of class 0: combines with characters before it, or is replaced

constexpr char32_t kLead = 0x1100, kVowel = 0x1161, kTail = 0x11A7, kSyllable = 0xAC00;
constexpr char32_t kLeads = 19, kVowels = 21, kTails = 28, kSyllables = kLeads * kVowels * kTails;

constexpr size_t kLongestCharacter = 4;

bool IsIn(char32_t point, char32_t first, char32_t count) {
  return point >= first && point < first + count;
}

}  // namespace

Nfc::Nfc() {
  const auto set = [this](char32_t point, uint8_t kind) {
    if (kinds_.size() <= point) kinds_.resize(point + 1, kInert);
    if (kinds_[point] == kInert) kinds_[point] = kind;
  };
  for (const CombiningRange& range : kCombining) {
    for (char32_t point = range.first; point <= range.last; ++point) {
      set(point, range.combining_class);
    }
  }
  const absl::flat_hash_set<char32_t> never(std::begin(kNeverComposed), std::end(kNeverComposed));
  for (const Decomposition& one : kDecompositions) {
    decompositions_.emplace(one.composed, std::pair(one.first, one.second));
    if (one.second == 0 || never.contains(one.composed)) {
      set(one.composed, kMayChange);
    } else {
      compositions_.emplace(std::pair(one.first, one.second), one.composed);
      set(one.second, kMayChange);
    }
  }
  for (char32_t i = 0; i < kVowels; ++i) set(kVowel + i, kMayChange);
  for (char32_t i = 1; i < kTails; ++i) set(kTail + i, kMayChange);
}

inline uint8_t Nfc::KindOf(char32_t point) const {
  return point < kinds_.size() ? kinds_[point] : kInert;
}

uint8_t Nfc::ClassOf(char32_t point) const {
  const uint8_t kind = KindOf(point);
  return kind == kMayChange ? uint8_t{0} : kind;
}

void Nfc::Decompose(char32_t point, std::u32string* out) const {
  if (IsIn(point, kSyllable, kSyllables)) {
    const char32_t rank = point - kSyllable, tail = rank % kTails;
    *out += static_cast<char32_t>(kLead + rank / (kVowels * kTails));
    *out += static_cast<char32_t>(kVowel + rank / kTails % kVowels);
    if (tail != 0) *out += static_cast<char32_t>(kTail + tail);
    return;
  }
  const auto found = decompositions_.find(point);
  if (found == decompositions_.end()) {
    *out += point;
    return;
  }
  Decompose(found->second.first, out);
  if (found->second.second != 0) Decompose(found->second.second, out);
}

char32_t Nfc::Composed(char32_t first, char32_t second) const {
  if (IsIn(first, kLead, kLeads) && IsIn(second, kVowel, kVowels)) {
    return kSyllable + ((first - kLead) * kVowels + second - kVowel) * kTails;
  }
  if (IsIn(first, kSyllable, kSyllables) && (first - kSyllable) % kTails == 0 &&
      IsIn(second, kTail + 1, kTails - 1)) {
    return first + second - kTail;
  }
  const auto found = compositions_.find(std::pair(first, second));
  return found == compositions_.end() ? 0 : found->second;
}

void Nfc::AppendSequence(absl::string_view sequence, std::string* out) const {
  std::u32string points;
  for (size_t offset = 0; offset < sequence.size();) {
    const char32_t point = text::DecodeUtf8(sequence, offset);
    if (point == text::kNotUtf8) {  // it is the first byte, and combines with nothing
      *out += sequence[offset++];
    } else {
      Decompose(point, &points);
    }
  }
  const auto is_starter = [this](char32_t point) { return ClassOf(point) == 0; };
  for (auto begin = points.begin(); begin != points.end();) {
    begin = std::find_if_not(begin, points.end(), is_starter);
    const auto end = std::find_if(begin, points.end(), is_starter);
    std::stable_sort(begin, end,
                     [this](char32_t a, char32_t b) { return ClassOf(a) < ClassOf(b); });
    begin = end;
  }
  std::u32string composed;
  size_t starter = std::u32string::npos;
  uint8_t last = 0;  // the class of the last character
  for (const char32_t point : points) {
    const uint8_t own = ClassOf(point);
    const bool follows = starter != std::u32string::npos && composed.size() == starter + 1;
    if (follows || (starter != std::u32string::npos && last < own)) {
      if (const char32_t one = Composed(composed[starter], point); one != 0) {
        composed[starter] = one;
        continue;
      }
    }
    if (own == 0) starter = composed.size();
    last = own;
    composed += point;
  }
  for (const char32_t point : composed) *out += text::EncodeUtf8(point);
}

std::string Nfc::Of(absl::string_view text) const {
  std::string normal;
  Append(text, /*is_last=*/true, &normal);
  return normal;
}

size_t Nfc::Append(absl::string_view text, bool is_last, std::string* out) const {
  size_t done = 0;   // of `text`
  size_t begin = 0;  // of the sequence at `at`
  bool may_change = false;
  const auto end_sequence = [&](size_t end) {
    if (may_change) {
      out->append(text.data() + done, begin - done);
      AppendSequence(text.substr(begin, end - begin), out);
      done = end;
      may_change = false;
    }
    begin = end;
  };
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      end_sequence(at++);
      continue;
    }
    size_t end = at;
    const char32_t point = text::DecodeUtf8(text, end);
    if (point == text::kNotUtf8) {
      if (!is_last && text.size() - at < kLongestCharacter) break;
      end = at + 1;
    }
    if (KindOf(point) == kInert || end - begin > WordSplitter::kMaxWordBytes) end_sequence(at);
    if (KindOf(point) != kInert) may_change = true;
    at = end;
  }
  if (is_last) end_sequence(text.size());
  out->append(text.data() + done, begin - done);
  return begin;
}

}  // namespace ablate::tokenizer
