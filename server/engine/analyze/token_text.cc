#include "server/engine/analyze/token_text.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/core/analyses/sampling.h"

namespace ablate::engine {

void AddTexts(const std::string& axis, absl::Span<const std::string> texts,
              AnalysisResult* result) {
  std::string bytes, ends;
  for (const std::string& text : texts) {
    absl::StrAppend(&bytes, text);
    const auto end = static_cast<int64_t>(bytes.size());
    ends.append(reinterpret_cast<const char*>(&end), sizeof(end));
  }
  const auto size = static_cast<int64_t>(bytes.size());
  result->arrays.push_back(
      {absl::StrCat(axis, "_text"), {"byte"}, {size}, TensorType::kU8, std::move(bytes)});
  result->arrays.push_back({absl::StrCat(axis, "_ends"),
                            {axis},
                            {static_cast<int64_t>(texts.size())},
                            TensorType::kI64,
                            std::move(ends)});
}

void AddTokenText(const RunConfig& config, absl::Span<const int64_t> tokens,
                  AnalysisResult* result) {
  const absl::StatusOr<SampledData> data = SampledDataOf(config);
  if (!data.ok()) return;
  const TextCodec codec = data->codec();
  std::vector<std::string> texts;
  for (const int64_t token : tokens) texts.push_back(codec.BytesOf({static_cast<uint32_t>(token)}));
  AddTexts("token", texts, result);
}

}  // namespace ablate::engine
