#include "base/tokenizer/character_classes.h"

#include <algorithm>
#include <iterator>

#include "absl/types/span.h"

namespace ablate::tokenizer {
namespace {

struct CharacterRange {
  char32_t first, last;
};

#include "base/tokenizer/character_ranges.inc"

}  // namespace

CharacterClasses::CharacterClasses() {
  const auto set = [this](absl::Span<const CharacterRange> ranges, CharacterClass value) {
    table_.resize(std::max<size_t>(table_.size(), ranges.back().last + 1), CharacterClass::kOther);
    for (const CharacterRange& range : ranges) {
      std::fill(table_.begin() + range.first, table_.begin() + range.last + 1, value);
    }
  };
  set(kLetters, CharacterClass::kLetter);
  set(kNumbers, CharacterClass::kNumber);
  set(kSpaces, CharacterClass::kSpace);
}

}  // namespace ablate::tokenizer
