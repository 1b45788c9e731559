// Divides the tokens of a text into those to train on and those to validate on.
#ifndef ABLATE_BASE_TEXT_SPLIT_H_
#define ABLATE_BASE_TEXT_SPLIT_H_

#include <cstdint>
#include <string>

namespace ablate {

// Returns the number of tokens to train on, which come first: ⌊tokens · (1 − validation)⌋.
// `validation` is above 0 and below 1.
uint64_t TrainingTokens(uint64_t tokens, double validation);

// Returns the shortest decimal, such as 0.1, that TrainingTokens takes for `validation` to leave
// exactly `held_out` of the tokens. `held_out` is above 0 and below `tokens`, which are at most
// 2³⁰.
std::string ValidationOf(uint64_t held_out, uint64_t tokens);

}  // namespace ablate

#endif  // ABLATE_BASE_TEXT_SPLIT_H_
