// Adds texts to a result: of tokens, for the figures of arrays by position, or of any axis.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_TOKEN_TEXT_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_TOKEN_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "server/engine/analysis.h"
#include "server/engine/config.h"

namespace ablate::engine {

// Adds two arrays: AXIS_text [byte], the bytes of all texts one after the other, and AXIS_ends
// [axis], where each text's bytes end among them.
void AddTexts(const std::string& axis, absl::Span<const std::string> texts, AnalysisResult* result);

// Adds the texts of tokens, with the axis `token`. A boundary has none. Adds nothing if tokens of
// the run's task have no text. The task's data must be loaded.
void AddTokenText(const RunConfig& config, absl::Span<const int64_t> tokens,
                  AnalysisResult* result);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_TOKEN_TEXT_H_
