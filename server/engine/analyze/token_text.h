// Adds the text of tokens to a result, for the figures of arrays by position.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_TOKEN_TEXT_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_TOKEN_TEXT_H_

#include <cstdint>

#include "absl/types/span.h"
#include "server/engine/analysis.h"
#include "server/engine/config.h"

namespace ablate::engine {

// Adds two arrays: token_text [byte], the bytes of all tokens one after the other, and token_ends
// [token], where each token's bytes end among them. A boundary has none. Adds nothing if tokens of
// the run's task have no text. The task's data must be loaded.
void AddTokenText(const RunConfig& config, absl::Span<const int64_t> tokens,
                  AnalysisResult* result);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_TOKEN_TEXT_H_
