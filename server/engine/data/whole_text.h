// Tokenizes a text as a whole, by characters.
#ifndef ABLATE_SERVER_ENGINE_DATA_WHOLE_TEXT_H_
#define ABLATE_SERVER_ENGINE_DATA_WHOLE_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/task.h"

namespace ablate::engine {

struct TokenizedText : TaskData {
  std::u32string alphabet;  // code point of each token id, ascending; a line end is a line feed
  std::vector<uint32_t> tokens;

  uint64_t bytes() const override;

  bool operator==(const TokenizedText& other) const;
};

// Returns INVALID_ARGUMENT as LineReader::Next, and if the text is empty.
absl::StatusOr<TokenizedText> TokenizeText(absl::string_view text);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_DATA_WHOLE_TEXT_H_
