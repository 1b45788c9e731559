#include "client/submit/token_bins.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/dataset_file.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "base/text_split.h"
#include "base/tokenizer/tokenizer_files.h"

namespace ablate::client {
namespace {

namespace fs = std::filesystem;

constexpr char kTrainFile[] = "train.bin", kValFile[] = "val.bin", kMetaFile[] = "meta.pkl";
constexpr uint32_t kNarrowVocabulary = 65'536;

// Returns the bytes of an id of a vocabulary.
uint64_t IdBytes(uint32_t vocabulary) { return vocabulary > kNarrowVocabulary ? 4 : 2; }

bool Has(const std::string& folder, const std::string& name) {
  std::error_code error;
  return fs::exists(fs::path(folder) / name, error);
}

bool HasTokenizer(const std::string& folder) {
  return Has(folder, kJsonFile) || Has(folder, kVocabularyFile);
}

// Checks that the folder has all four files.
absl::Status CheckComplete(const std::string& folder) {
  if (!HasTokenizer(folder) && Has(folder, kMetaFile)) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder, " has ", kMetaFile, " and no ", kVocabularyFile,
        ": its ids are characters; expected the text itself, such as input.txt. `ablate data add "
        "FILE` uploads it, and a text task reads its characters"));
  }
  std::vector<std::string> names = {kTrainFile, kValFile};
  for (const std::string& name : tokenizer::FileNamesIn(folder)) names.push_back(name);
  for (const std::string& name : names) {
    if (Has(folder, name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        folder, " has no ", name, "; expected ", kTrainFile, " and ", kValFile, ", and ", kJsonFile,
        ", or ", kVocabularyFile, " and ", kMergesFile, ", of the tokenizer that made them"));
  }
  return absl::OkStatus();
}

absl::Status TooLarge(const std::string& path, uint64_t bytes) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": too large (", text::Grouped(bytes), " bytes); expected at most ",
                   text::Grouped(kMaxDatasetFileBytes), " bytes of ids and tokenizer together"));
}

// Checks the size of a file of ids before it is read.
absl::StatusOr<uint64_t> SizeOf(const std::string& path, uint64_t id_bytes) {
  const std::string expected =
      absl::StrCat("; expected ids of ", id_bytes == 2 ? "two" : "four", " bytes each");
  std::error_code error;
  const bool is_file = fs::is_regular_file(path, error);
  if (error) return absl::PermissionDeniedError(absl::StrCat(path, ": ", error.message()));
  if (!is_file) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a file; expected a file of ids"));
  }
  const uint64_t bytes = fs::file_size(path, error);
  if (error) return absl::PermissionDeniedError(absl::StrCat(path, ": ", error.message()));
  if (bytes > kMaxDatasetFileBytes) return TooLarge(path, bytes);
  if (bytes == 0) return absl::InvalidArgumentError(absl::StrCat(path, ": it is empty", expected));
  if (bytes % id_bytes == 0) return bytes;
  return absl::InvalidArgumentError(absl::StrCat(path, ": it ends within an id, after ",
                                                 text::Grouped(bytes), " bytes", expected));
}

// Refuses ids that were read with fewer bytes than they have.
absl::Status CheckWidth(const std::string& path, absl::Span<const uint32_t> ids,
                        uint64_t id_bytes) {
  const size_t found = FindIdBytes(ids, id_bytes);
  if (found == id_bytes) return absl::OkStatus();
  const std::string file = absl::StrCat("\"", path, "\"");
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": its ids have ", found, " bytes each, because every second number of ", id_bytes,
      " bytes is 0; expected ids of ", id_bytes, " bytes, by the size of the vocabulary. Convert ",
      "the file: `python3 -c 'import numpy; numpy.fromfile(", file, ", \"<u", found,
      "\").astype(\"<u", id_bytes, "\").tofile(", file, ")'`"));
}

// Appends the ids of a file of that size. `vocabulary` is the number of tokens.
absl::Status AppendIds(const std::string& path, uint64_t bytes, uint32_t vocabulary,
                       std::vector<uint32_t>* ids) {
  std::string read(bytes, '\0');
  std::ifstream in(path, std::ios::binary);
  if (!in.read(read.data(), static_cast<std::streamsize>(read.size()))) {
    return absl::PermissionDeniedError(absl::StrCat(path, ": can't be read"));
  }
  const uint64_t id_bytes = IdBytes(vocabulary);
  const size_t before = ids->size();
  for (size_t i = 0; i < read.size(); i += id_bytes) {
    uint32_t id = 0;
    for (size_t j = 0; j < id_bytes; ++j) {
      id |= uint32_t{static_cast<uint8_t>(read[i + j])} << (8 * j);
    }
    if (id >= vocabulary) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": id ", id, " at position ", i / id_bytes,
                       " is not in the vocabulary; expected ids below ", vocabulary, ", its size"));
    }
    ids->push_back(id);
  }
  return CheckWidth(path, absl::MakeConstSpan(*ids).subspan(before), id_bytes);
}

}  // namespace

bool HasTokenBins(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return false;
  return Has(folder, kTrainFile) || Has(folder, kValFile) ||
         (Has(folder, kMetaFile) && !HasTokenizer(folder));
}

absl::StatusOr<TokenBins> ReadTokenBins(const std::string& folder) {
  RETURN_IF_ERROR(CheckComplete(folder));
  ASSIGN_OR_RETURN(const auto tokenizer, tokenizer::ReadTokenizerFolder(folder));
  const std::string train = fs::path(folder) / kTrainFile, val = fs::path(folder) / kValFile;
  const uint32_t tokens = tokenizer.encoding->vocabulary();
  const uint64_t id_bytes = IdBytes(tokens);
  const absl::StatusOr<uint64_t> train_bytes = SizeOf(train, id_bytes),
                                 val_bytes = SizeOf(val, id_bytes);
  for (const absl::Status& status : {train_bytes.status(), val_bytes.status()}) {
    if (!status.ok()) return status;
  }
  const uint64_t bytes = *train_bytes + *val_bytes;
  if (bytes > kMaxDatasetFileBytes) return TooLarge(folder, bytes);
  std::vector<uint32_t> ids;
  ids.reserve(bytes / id_bytes);
  absl::Status read = AppendIds(train, *train_bytes, tokens, &ids);
  if (read.ok()) read = AppendIds(val, *val_bytes, tokens, &ids);
  if (!read.ok()) return read;
  TokenBins bins;
  bins.training = *train_bytes / id_bytes;
  bins.validation = *val_bytes / id_bytes;
  bins.file = WriteTokenFile(tokenizer.files(), tokens, ids);
  if (bins.file.size() > kMaxDatasetFileBytes) return TooLarge(folder, bins.file.size());
  return bins;
}

absl::StatusOr<TokenBinFiles> WriteTokenBins(absl::Span<const uint32_t> ids, uint32_t vocabulary,
                                             double validation) {
  if (!(validation > 0 && validation < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--validation: ", validation, "; expected a number above 0 and below 1"));
  }
  const uint64_t training = TrainingTokens(ids.size(), validation);
  if (training == 0 || training == ids.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--validation: ", validation, " of ", text::Grouped(ids.size()),
                     " tokens leaves a file empty; expected tokens for both"));
  }
  const uint64_t id_bytes = IdBytes(vocabulary);
  const auto write = [&](absl::Span<const uint32_t> part, std::string* bytes) {
    bytes->reserve(part.size() * id_bytes);
    for (const uint32_t id : part) {
      for (size_t i = 0; i < id_bytes; ++i) bytes->push_back(static_cast<char>(id >> (8 * i)));
    }
  };
  TokenBinFiles files;
  files.validation = ids.size() - training;
  write(ids.first(training), &files.train);
  write(ids.subspan(training), &files.val);
  return files;
}

bool IsTokenizersFile(const std::string& name) {
  for (const char* const one : {kTrainFile, kValFile, kVocabularyFile, kMergesFile, kJsonFile}) {
    if (name == one) return true;
  }
  return false;
}

}  // namespace ablate::client
