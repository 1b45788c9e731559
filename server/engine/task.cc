#include "server/engine/task.h"

#include <algorithm>
#include <bitset>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "server/engine/data/batches.h"
#include "server/engine/data/documents.h"
#include "text/utf8.h"

namespace ablate::engine {

namespace {

absl::StatusOr<std::shared_ptr<const TaskData>> ReadDocuments(absl::string_view file) {
  absl::StatusOr<TokenizedDocuments> documents = TokenizeDocuments(file);
  if (!documents.ok()) return documents.status();
  return std::make_shared<const TokenizedDocuments>(*std::move(documents));
}

void SetDocuments(std::shared_ptr<const TaskData> data, TaskConfig* task) {
  std::get<DocumentsTask>(*task).documents =
      std::static_pointer_cast<const TokenizedDocuments>(std::move(data));
}

absl::StatusOr<TaskShape> ShapeOfDocuments(const TaskConfig& task) {
  const TokenizedDocuments* documents = std::get<DocumentsTask>(task).documents.get();
  if (documents == nullptr) return absl::InvalidArgumentError("task: its documents were not read");
  DocumentFacts facts;
  facts.characters = static_cast<uint32_t>(documents->alphabet.size());
  return DocumentsShape(facts);
}

std::string DocumentsVocabulary(const TaskConfig& task) {
  const TokenizedDocuments& documents = *std::get<DocumentsTask>(task).documents;
  using Json = nlohmann::ordered_json;
  Json characters = Json::array();
  for (const char32_t point : documents.alphabet) characters.push_back(text::EncodeUtf8(point));
  return Json{{"characters", characters}, {"bos", documents.bos()}}.dump();
}

absl::StatusOr<TaskShape> ShapeOfLegacyRecall(const TaskConfig& task) {
  return LegacyRecallShape(std::get<LegacyRecallTask>(task));
}

std::string NoVocabulary(const TaskConfig&) { return ""; }

// In the order of TaskConfig's alternatives.
constexpr TaskKind kTasks[] = {
    {"documents", ReadDocuments, SetDocuments, ShapeOfDocuments, MakeDocumentBatches,
     DocumentsVocabulary},
    {"legacy_recall", nullptr, nullptr, ShapeOfLegacyRecall, MakeLegacyRecallBatches, NoVocabulary},
};
static_assert(std::size(kTasks) == std::variant_size_v<TaskConfig>);

}  // namespace

const TaskKind& KindOf(const TaskConfig& task) { return kTasks[task.index()]; }

absl::StatusOr<DocumentsTask> ReadDocumentsTask(absl::string_view text, uint32_t held_out) {
  absl::StatusOr<TokenizedDocuments> documents = TokenizeDocuments(text);
  if (!documents.ok()) return documents.status();
  return DocumentsTask{std::make_shared<const TokenizedDocuments>(*std::move(documents)), held_out};
}

bool DocumentsTask::operator==(const DocumentsTask& other) const {
  if (held_out != other.held_out) return false;
  if (documents == other.documents) return true;
  return documents != nullptr && other.documents != nullptr && *documents == *other.documents;
}

struct DocumentInspector::Characters {
  std::bitset<0x110000> seen;  // by code point
};

DocumentInspector::DocumentInspector() : characters_(std::make_unique<Characters>()) {}
DocumentInspector::~DocumentInspector() = default;

absl::Status DocumentInspector::Add(absl::string_view piece) {
  const size_t end = piece.rfind('\n');
  if (end == absl::string_view::npos) {
    line_.append(piece.data(), piece.size());
    return absl::OkStatus();
  }
  absl::string_view lines = piece.substr(0, end + 1);
  if (!line_.empty()) {
    const size_t rest = lines.find('\n') + 1;
    line_.append(lines.data(), rest);
    if (absl::Status status = Inspect(line_); !status.ok()) return status;
    lines.remove_prefix(rest);
  }
  line_ = std::string(piece.substr(end + 1));
  return Inspect(lines);
}

absl::StatusOr<DocumentFacts> DocumentInspector::Finish() {
  if (absl::Status status = Inspect(line_); !status.ok()) return status;
  if (facts_.documents == 0) {
    return absl::InvalidArgumentError("the text has no document (a non-empty line)");
  }
  facts_.characters = static_cast<uint32_t>(characters_->seen.count());
  return facts_;
}

absl::Status DocumentInspector::Inspect(absl::string_view lines) {
  DocumentReader reader(lines, inspected_);
  inspected_ += lines.size();
  std::u32string document;
  while (true) {
    const absl::StatusOr<bool> found = reader.Next(document);
    if (!found.ok()) return found.status();
    if (!*found) return absl::OkStatus();
    ++facts_.documents;
    facts_.code_points += document.size();
    facts_.longest = std::max<uint64_t>(facts_.longest, document.size());
    const size_t length = std::min(document.size(), DocumentFacts::kCountedLength);
    if (length >= facts_.lengths.size()) facts_.lengths.resize(length + 1);
    ++facts_.lengths[length];
    for (const char32_t point : document) characters_->seen.set(point);
  }
}

absl::StatusOr<DocumentFacts> InspectDocuments(absl::string_view text) {
  DocumentInspector inspector;
  if (absl::Status status = inspector.Add(text); !status.ok()) return status;
  return inspector.Finish();
}

uint64_t CutDocuments(const std::vector<uint64_t>& lengths, uint64_t context) {
  const size_t first = std::min<uint64_t>(context, DocumentFacts::kCountedLength);
  if (first >= lengths.size()) return 0;
  return std::accumulate(lengths.begin() + static_cast<ptrdiff_t>(first), lengths.end(),
                         uint64_t{0});
}

TaskShape DocumentsShape(const DocumentFacts& facts) {
  return {static_cast<int>(facts.characters) + 1, 0, LossPositions::kAll};
}

TaskShape LegacyRecallShape(const LegacyRecallTask& task) {
  return {task.keys + 2, task.draw + 1, LossPositions::kLast};
}

}  // namespace ablate::engine
