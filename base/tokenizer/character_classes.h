// Classifies characters as GPT-2's pattern does: letters, numbers, white space and others.
#ifndef ABLATE_BASE_TOKENIZER_CHARACTER_CLASSES_H_
#define ABLATE_BASE_TOKENIZER_CHARACTER_CLASSES_H_

#include <cstdint>
#include <vector>

namespace ablate::tokenizer {

enum class CharacterClass : uint8_t { kOther, kLetter, kNumber, kSpace };

// A table of the classes in Unicode 16.0: general categories L and N, and the property White_Space.
// The version is fixed, because the ids of a text depend on it. Immutable.
class CharacterClasses {
 public:
  CharacterClasses();
  CharacterClass Of(char32_t code_point) const {
    return code_point < table_.size() ? table_[code_point] : CharacterClass::kOther;
  }

 private:
  std::vector<CharacterClass> table_;  // up to the last character that isn't kOther
};

}  // namespace ablate::tokenizer

#endif  // ABLATE_BASE_TOKENIZER_CHARACTER_CLASSES_H_
