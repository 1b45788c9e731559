// Reads and writes config.json of GPT-2 models. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_PRETRAINED_GPT2_CONFIG_H_
#define ABLATE_SERVER_ENGINE_CORE_PRETRAINED_GPT2_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/config.h"
#include "server/engine/gpt2.h"

namespace ablate::engine {

inline constexpr char kGpt2ConfigName[] = "config.json";

struct Gpt2Config {
  // Without a record, kind, bias and sites of the norms are defaults; tied_head is
  // tie_word_embeddings.
  ModelConfig model;
  bool has_record = false;  // the file keeps kind, bias and sites of the norms
  std::vector<std::string> notes;
};

// Parses the bytes of config.json, at most 1 MiB. Missing members have transformers' defaults,
// except sizes, which must be there. Unknown members are ignored.
absl::StatusOr<Gpt2Config> ReadGpt2Config(absl::string_view bytes, const Gpt2Overrides& overrides);

// Returns config.json of a model that CheckGpt2Model accepts.
std::string WriteGpt2Config(const ModelConfig& model);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_PRETRAINED_GPT2_CONFIG_H_
