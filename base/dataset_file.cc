#include "base/dataset_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/safetensors.h"
#include "base/status_macros.h"

namespace ablate {
namespace {

constexpr char kTokenizerName[] = "tokenizer", kTokensName[] = "tokens";
constexpr char kTokensTensor[] = "tokens", kLengthsTensor[] = "lengths";
constexpr uint32_t kNarrow = 65'536;  // tokens of such a vocabulary have 16 bits

std::vector<TensorView> FileTensors(const TokenizerFiles& tokenizer) {
  std::vector<TensorView> tensors;
  for (const auto& [name, bytes] : tokenizer.parts()) {
    tensors.push_back({name, TensorType::kU8, {static_cast<int64_t>(bytes.size())}, bytes});
  }
  return tensors;
}

// Returns the bytes of a file that is stored as a tensor.
absl::StatusOr<absl::string_view> FindPart(const SafetensorsFile& file, const char* name) {
  const TensorView* tensor = file.Find(name);
  if (tensor == nullptr) return absl::InvalidArgumentError(absl::StrCat("it has no ", name));
  if (tensor->type != TensorType::kU8 || tensor->shape.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " isn't stored as bytes; expected a tensor of type U8 with one axis"));
  }
  return tensor->bytes;
}

template <typename Number>
std::vector<uint32_t> Widened(absl::string_view bytes) {
  std::vector<uint32_t> numbers(bytes.size() / sizeof(Number));
  for (size_t i = 0; i < numbers.size(); ++i) {
    Number number;
    std::memcpy(&number, bytes.data() + i * sizeof(Number), sizeof(Number));
    numbers[i] = number;
  }
  return numbers;
}

absl::StatusOr<std::vector<uint32_t>> FindTokens(const SafetensorsFile& file) {
  const TensorView* tensor = file.Find(kTokensTensor);
  if (tensor == nullptr) return absl::InvalidArgumentError("it has no tensor tokens");
  const bool narrow = tensor->type == TensorType::kU16;
  if ((!narrow && tensor->type != TensorType::kU32) || tensor->shape.size() != 1) {
    return absl::InvalidArgumentError(
        "tokens has another form; expected a tensor of type U16 or U32 with one axis");
  }
  if (tensor->bytes.empty()) return absl::InvalidArgumentError("it has no tokens");
  return narrow ? Widened<uint16_t>(tensor->bytes) : Widened<uint32_t>(tensor->bytes);
}

// Returns the lengths of documents with so many tokens together; none if the file has none.
absl::StatusOr<std::vector<uint32_t>> FindLengths(const SafetensorsFile& file, size_t tokens) {
  const TensorView* tensor = file.Find(kLengthsTensor);
  if (tensor == nullptr) return std::vector<uint32_t>();
  if (tensor->type != TensorType::kU32 || tensor->shape.size() != 1) {
    return absl::InvalidArgumentError(
        "lengths has another form; expected a tensor of type U32 with one axis");
  }
  std::vector<uint32_t> lengths = Widened<uint32_t>(tensor->bytes);
  const uint64_t sum = std::accumulate(lengths.begin(), lengths.end(), uint64_t{0});
  const bool empty = std::find(lengths.begin(), lengths.end(), 0u) != lengths.end();
  if (sum == tokens && !empty) return lengths;
  return absl::InvalidArgumentError(
      absl::StrCat("lengths doesn't divide the tokens into documents; expected numbers of at least "
                   "1 that add up to ",
                   tokens));
}

}  // namespace

bool IsText(absl::string_view beginning) {
  return beginning.substr(0, 8).find('\0') == absl::string_view::npos;
}

std::vector<std::pair<const char*, absl::string_view>> TokenizerFiles::parts() const {
  if (!json.empty()) return {{kJsonFile, json}};
  return {{kVocabularyFile, vocabulary}, {kMergesFile, merges}};
}

std::string WriteTokenizerFile(const TokenizerFiles& tokenizer) {
  return *WriteSafetensors(FileTensors(tokenizer), {{kDatasetKindKey, kTokenizerName}});
}

std::string WriteTokenFile(const TokenizerFiles& tokenizer, uint32_t vocabulary,
                           absl::Span<const uint32_t> tokens, absl::Span<const uint32_t> lengths) {
  TensorView view{kTokensTensor, TensorType::kU32, {static_cast<int64_t>(tokens.size())}, {}};
  std::vector<uint16_t> narrow;
  if (vocabulary <= kNarrow) {
    narrow.assign(tokens.begin(), tokens.end());
    view.type = TensorType::kU16;
    view.bytes = {reinterpret_cast<const char*>(narrow.data()), narrow.size() * sizeof(uint16_t)};
  } else {
    view.bytes = {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(uint32_t)};
  }
  std::vector<TensorView> views = FileTensors(tokenizer);
  views.push_back(view);
  if (!lengths.empty()) {
    views.push_back(
        {kLengthsTensor,
         TensorType::kU32,
         {static_cast<int64_t>(lengths.size())},
         {reinterpret_cast<const char*>(lengths.data()), lengths.size() * sizeof(uint32_t)}});
  }
  return *WriteSafetensors(views, {{kDatasetKindKey, kTokensName}});
}

size_t FindIdBytes(absl::Span<const uint32_t> ids, size_t id_bytes) {
  constexpr size_t kFewest = 16;
  size_t step = 1;  // only every step-th id isn't 0
  while (step < 4 && ids.size() >= kFewest && ids.size() % (2 * step) == 0) {
    bool zeros = true, all = true;
    for (size_t i = 0; i < ids.size(); i += step) {
      const bool zero = ids[i] == 0;
      if (i % (2 * step) != 0) zeros &= zero;
      all &= zero;
    }
    if (!zeros || all) break;
    step *= 2;
  }
  return step * id_bytes;
}

absl::StatusOr<DatasetFile> ReadDatasetFile(absl::string_view bytes) {
  ASSIGN_OR_RETURN(const SafetensorsFile file, ParseSafetensors(bytes));
  const auto kind = file.metadata.find(kDatasetKindKey);
  DatasetFile read;
  if (kind != file.metadata.end() && kind->second == kFileSetName) {
    read.kind = DatasetKind::kFiles;
    return read;
  }
  if (kind != file.metadata.end() && kind->second == kTokensName) {
    read.kind = DatasetKind::kTokens;
  } else if (kind == file.metadata.end() || kind->second != kTokenizerName) {
    return absl::InvalidArgumentError(absl::StrCat("its metadata don't say what it is; expected ",
                                                   kDatasetKindKey, " to be ", kTokenizerName, ", ",
                                                   kTokensName, " or ", kFileSetName));
  }
  if (file.Find(kJsonFile) != nullptr) {
    ASSIGN_OR_RETURN(read.tokenizer.json, FindPart(file, kJsonFile));
    if (read.tokenizer.json.empty())
      return absl::InvalidArgumentError("its tokenizer.json is empty");
  } else {
    ASSIGN_OR_RETURN(read.tokenizer.vocabulary, FindPart(file, kVocabularyFile));
    ASSIGN_OR_RETURN(read.tokenizer.merges, FindPart(file, kMergesFile));
  }
  if (read.kind == DatasetKind::kTokenizer) return read;
  ASSIGN_OR_RETURN(auto tokens, FindTokens(file));
  ASSIGN_OR_RETURN(auto lengths, FindLengths(file, tokens.size()));
  read.tokens = std::move(tokens);
  read.lengths = std::move(lengths);
  return read;
}

}  // namespace ablate
