// Inspects a task's data and derives what it fixes in the model.
#include "server/engine/task.h"

#include <algorithm>
#include <bitset>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/engine/data/documents.h"

namespace ablate::engine {

absl::StatusOr<DocumentFacts> InspectDocuments(absl::string_view text) {
  constexpr size_t kCodePoints = 0x110000;
  const auto seen = std::make_unique<std::bitset<kCodePoints>>();  // 136 KiB: not for the stack
  DocumentFacts facts;
  DocumentReader reader(text);
  std::u32string document;
  while (true) {
    const absl::StatusOr<bool> found = reader.Next(document);
    if (!found.ok()) return found.status();
    if (!*found) break;
    ++facts.documents;
    facts.code_points += document.size();
    facts.longest = std::max<uint64_t>(facts.longest, document.size());
    for (const char32_t point : document) seen->set(point);
  }
  if (facts.documents == 0) {
    return absl::InvalidArgumentError("the text has no document (a non-empty line)");
  }
  facts.characters = static_cast<uint32_t>(seen->count());
  return facts;
}

TaskShape DocumentsShape(const DocumentFacts& facts) {
  return {static_cast<int>(facts.characters) + 1, 0, LossPositions::kAll};
}

TaskShape LegacyRecallShape(const LegacyRecallTask& task) {
  return {task.keys + 2, task.draw + 1, LossPositions::kLast};
}

}  // namespace ablate::engine
