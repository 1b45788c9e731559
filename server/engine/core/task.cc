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
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text_split.h"
#include "base/utf8.h"
#include "server/engine/core/data/batches.h"
#include "server/engine/core/data/documents.h"
#include "server/engine/core/data/whole_text.h"

namespace ablate::engine {

namespace {

using Json = nlohmann::ordered_json;

// Reads a data set as `Data`, parsed from a file by `tokenize`.
template <typename Data, absl::StatusOr<Data> (*tokenize)(absl::string_view file)>
absl::StatusOr<std::shared_ptr<const TaskData>> ReadAs(absl::string_view file) {
  ASSIGN_OR_RETURN(Data data, tokenize(file));
  return std::make_shared<const Data>(std::move(data));
}

// Stores the parsed data in the task's member.
template <typename Task, typename Data, std::shared_ptr<const Data> Task::*member>
void SetData(std::shared_ptr<const TaskData> data, TaskConfig* task) {
  std::get<Task>(*task).*member = std::static_pointer_cast<const Data>(std::move(data));
}

// Returns the shape of a task that generates its data.
template <typename Task, TaskShape (*shape)(const Task& task)>
absl::StatusOr<TaskShape> ShapeOfGenerated(const TaskConfig& task) {
  return shape(std::get<Task>(task));
}

absl::StatusOr<TaskShape> ShapeOfDocuments(const TaskConfig& task) {
  const TokenizedDocuments* documents = std::get<DocumentsTask>(task).documents.get();
  if (documents == nullptr) return absl::InvalidArgumentError("task: its documents were not read");
  return DocumentsShape(documents->vocabulary());
}

absl::StatusOr<TaskShape> ShapeOfText(const TaskConfig& task) {
  const TokenizedText* text = std::get<TextTask>(task).text.get();
  if (text == nullptr) return absl::InvalidArgumentError("task: its text was not read");
  return TextShape({text->tokens.size(), text->vocabulary()});
}

Json Characters(const std::u32string& alphabet) {
  Json characters = Json::array();
  for (const char32_t point : alphabet) characters.push_back(text::EncodeUtf8(point));
  return characters;
}

// Returns a hash of the texts of all tokens: FNV-1a, 64 bits, over the length of each text, as four
// bytes from the lowest on, and its bytes. In hex.
std::string HashOfTexts(const tokenizer::BytePairEncoding& encoding) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3; };
  for (uint32_t id = 0; id < encoding.vocabulary(); ++id) {
    const absl::string_view text = encoding.TextOf(id);
    for (int shift = 0; shift < 32; shift += 8)
      add(static_cast<unsigned char>(text.size() >> shift));
    for (const char byte : text) add(static_cast<unsigned char>(byte));
  }
  return absl::StrCat(absl::Hex(hash, absl::kZeroPad16));
}

// Returns the meaning of the tokens of a text or of documents, without their boundary.
template <typename Data>
Json VocabularyJson(const Data& data) {
  if (data.encoding == nullptr) return Json{{"characters", Characters(data.alphabet)}};
  return Json{{"tokenizer", "byte_level_bpe"},
              {"tokens", data.encoding->vocabulary()},
              {"hash", HashOfTexts(*data.encoding)}};
}

std::string DocumentsVocabulary(const TaskConfig& task) {
  const TokenizedDocuments& documents = *std::get<DocumentsTask>(task).documents;
  Json json = VocabularyJson(documents);
  json["bos"] = documents.bos();
  return json.dump();
}

std::string TextVocabulary(const TaskConfig& task) {
  return VocabularyJson(*std::get<TextTask>(task).text).dump();
}

std::string NoVocabulary(const TaskConfig&) { return ""; }

// In the order of TaskConfig's alternatives.
constexpr TaskKind kTasks[] = {
    {"documents", ReadAs<TokenizedDocuments, ReadDocuments>,
     SetData<DocumentsTask, TokenizedDocuments, &DocumentsTask::documents>, ShapeOfDocuments,
     MakeDocumentBatches, DocumentsVocabulary},
    {"legacy_recall", nullptr, nullptr, ShapeOfGenerated<LegacyRecallTask, LegacyRecallShape>,
     MakeLegacyRecallBatches, NoVocabulary},
    {"recall", nullptr, nullptr, ShapeOfGenerated<RecallTask, RecallShape>, MakeRecallBatches,
     NoVocabulary},
    {"text", ReadAs<TokenizedText, ReadText>, SetData<TextTask, TokenizedText, &TextTask::text>,
     ShapeOfText, MakeTextBatches, TextVocabulary},
};
static_assert(std::size(kTasks) == std::variant_size_v<TaskConfig>);

template <typename Data>
bool SaySame(const std::shared_ptr<const Data>& a, const std::shared_ptr<const Data>& b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

// Adds a document of so many code points or tokens.
void CountDocument(size_t size, DocumentFacts* facts) {
  ++facts->documents;
  facts->code_points += size;
  facts->longest = std::max<uint64_t>(facts->longest, size);
  const size_t length = std::min(size, DocumentFacts::kCountedLength);
  if (length >= facts->lengths.size()) facts->lengths.resize(length + 1);
  ++facts->lengths[length];
}

}  // namespace

const TaskKind& KindOf(const TaskConfig& task) { return kTasks[task.index()]; }

bool HasStoredTokens(const TaskConfig& task) {
  const auto* documents = std::get_if<DocumentsTask>(&task);
  const auto* text = std::get_if<TextTask>(&task);
  return documents != nullptr ? documents->stored : text != nullptr && text->stored;
}

absl::StatusOr<DocumentsTask> ReadDocumentsTask(absl::string_view text, uint32_t held_out) {
  ASSIGN_OR_RETURN(TokenizedDocuments documents, TokenizeDocuments(text));
  return DocumentsTask{false, std::make_shared<const TokenizedDocuments>(std::move(documents)),
                       held_out};
}

absl::StatusOr<TextTask> ReadTextTask(absl::string_view text, double validation) {
  ASSIGN_OR_RETURN(TokenizedText whole, TokenizeText(text));
  TextTask task;
  task.text = std::make_shared<const TokenizedText>(std::move(whole));
  task.validation = validation;
  return task;
}

bool DocumentsTask::operator==(const DocumentsTask& other) const {
  return stored == other.stored && held_out == other.held_out &&
         SaySame(documents, other.documents);
}

bool TextTask::operator==(const TextTask& other) const {
  return stored == other.stored && validation == other.validation && SaySame(text, other.text);
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
    RETURN_IF_ERROR(Inspect(line_));
    lines.remove_prefix(rest);
  }
  line_ = std::string(piece.substr(end + 1));
  return Inspect(lines);
}

absl::StatusOr<DocumentFacts> DocumentInspector::Finish() {
  RETURN_IF_ERROR(Inspect(line_));
  if (!problems_.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems_, "; "));
  if (facts_.documents == 0) {
    return absl::InvalidArgumentError("the text has no document (a non-empty line)");
  }
  facts_.characters = static_cast<uint32_t>(characters_->seen.count());
  return facts_;
}

absl::Status DocumentInspector::Inspect(absl::string_view lines) {
  constexpr size_t kMostProblems = 10;
  DocumentReader reader(lines, facts_.line_ends + 1);
  facts_.line_ends += static_cast<uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
  std::u32string document;
  while (true) {
    const absl::StatusOr<bool> found = reader.Next(document);
    if (!found.ok()) {
      const bool full = problems_.size() == kMostProblems;
      problems_.emplace_back(full ? "and more" : found.status().message());
      if (full) return absl::InvalidArgumentError(absl::StrJoin(problems_, "; "));
      continue;
    }
    if (!*found) return absl::OkStatus();
    CountDocument(document.size(), &facts_);
    for (const char32_t point : document) characters_->seen.set(point);
  }
}

absl::StatusOr<DocumentFacts> InspectDocuments(absl::string_view text) {
  DocumentInspector inspector;
  RETURN_IF_ERROR(inspector.Add(text));
  return inspector.Finish();
}

DocumentFacts FactsOfEncoded(const TokenizedDocuments& documents) {
  DocumentFacts facts;
  facts.characters = documents.vocabulary();
  for (size_t i = 0; i < documents.documents(); ++i) {
    CountDocument(documents.starts[i + 1] - documents.starts[i], &facts);
  }
  return facts;
}

uint64_t CutDocuments(const std::vector<uint64_t>& lengths, uint64_t context) {
  const size_t first = std::min<uint64_t>(context, DocumentFacts::kCountedLength);
  if (first >= lengths.size()) return 0;
  return std::accumulate(lengths.begin() + static_cast<ptrdiff_t>(first), lengths.end(),
                         uint64_t{0});
}

TaskShape DocumentsShape(uint32_t vocabulary) {
  return {static_cast<int>(vocabulary), 0, LossPositions::kAll};
}

TextFacts FactsOfText(const DocumentFacts& facts) {
  return {facts.code_points + facts.line_ends, facts.characters + (facts.line_ends > 0 ? 1 : 0)};
}

TextSplit SplitText(uint64_t tokens, double validation, uint64_t context) {
  TextSplit split;
  split.training = TrainingTokens(tokens, validation);
  split.validation = tokens - split.training;
  // Every window needs the target of its last position, too.
  if (split.training > context) split.starts = split.training - context;
  if (split.validation > 0) split.windows = (split.validation - 1) / context;
  return split;
}

EvaluatedWindows WindowsToEvaluate(const TextSplit& split, uint64_t context,
                                   const EvaluationConfig& evaluation) {
  if (evaluation.tokens > 0) {
    const uint64_t wanted = (evaluation.tokens + context - 1) / context;
    return {std::min(split.windows, wanted),
            std::clamp<uint64_t>(kTokensTogether / context, 1, kEvaluatedTogether)};
  }
  const uint64_t batches = evaluation.batches;
  return {batches == 0 ? split.windows : std::min(split.windows, batches * kEvaluatedTogether),
          kEvaluatedTogether};
}

TaskShape LegacyRecallShape(const LegacyRecallTask& task) {
  return {task.keys + 2, task.draw + 1, LossPositions::kLast};
}

TaskShape RecallShape(const RecallTask& task) {
  return {task.entities * task.attributes + task.entities + task.attributes, task.pairs + 1,
          LossPositions::kLast};
}

TaskShape TextShape(const TextFacts& facts) {
  return {static_cast<int>(facts.characters), 0, LossPositions::kAll};
}

}  // namespace ablate::engine
