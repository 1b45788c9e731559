#include "server/engine/analyze/token_text.h"

#include <string>
#include <utility>
#include <vector>

#include "server/engine/analyze/sampling.h"

namespace ablate::engine {

void AddTokenText(const RunConfig& config, absl::Span<const int64_t> tokens,
                  AnalysisResult* result) {
  const absl::StatusOr<SampledData> data = SampledDataOf(config);
  if (!data.ok()) return;
  const TextCodec codec = data->codec();
  const std::vector<uint32_t> ids(tokens.begin(), tokens.end());
  std::string text = codec.BytesOf(ids);
  std::string ends;
  for (const size_t end : codec.EndsOf(ids)) {
    const auto element = static_cast<int64_t>(end);
    ends.append(reinterpret_cast<const char*>(&element), sizeof(element));
  }
  const auto bytes = static_cast<int64_t>(text.size());
  result->arrays.push_back({"token_text", {"byte"}, {bytes}, TensorType::kU8, std::move(text)});
  result->arrays.push_back({"token_ends",
                            {"token"},
                            {static_cast<int64_t>(ids.size())},
                            TensorType::kI64,
                            std::move(ends)});
}

}  // namespace ablate::engine
