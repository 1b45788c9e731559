// Makes a run of GPT-2's size for measurements on a GPU.
#ifndef ABLATE_TESTS_GPU_GPT2_RUN_H_
#define ABLATE_TESTS_GPU_GPT2_RUN_H_

#include <cstdint>
#include <string>

#include "server/engine/core/data/random.h"
#include "server/engine/task.h"
#include "tests/engine/train_configs.h"

namespace ablate::engine {

// Returns a text of 50,257 different characters, GPT-2's vocabulary.
inline std::string WideText() {
  constexpr uint64_t kVocabulary = 50257;
  std::string text;
  SplitMix64 generator(1);
  for (uint64_t i = 0; i < 4 * kVocabulary; ++i) {
    const uint64_t letter = i < kVocabulary ? i : generator.Below(kVocabulary);
    const uint64_t code = 0x20000 + letter;  // four bytes in UTF-8
    text += static_cast<char>(0xF0 | code >> 18);
    for (int shift = 12; shift >= 0; shift -= 6) {
      text += static_cast<char>(0x80 | (code >> shift & 0x3F));
    }
  }
  return text;
}

// GPT-2 of 124 million parameters: batches of 8 windows of 1,024 tokens.
inline RunConfig Gpt2Run() {
  RunConfig run = CharactersRun(*ReadTextTask(WideText(), 0.1));
  run.model.vocabulary = 50257;
  run.model.layers = 12;
  run.model.width = 768;
  run.model.heads = 12;
  run.model.context = 1024;
  run.model.hidden = 3072;
  run.model.activation = Activation::kGeluTanh;
  run.training.batch = 8;
  return run;
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_GPU_GPT2_RUN_H_
