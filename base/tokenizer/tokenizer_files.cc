#include "base/tokenizer/tokenizer_files.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/tokenizer/vocabulary.h"

namespace ablate::tokenizer {
namespace {

bool Has(const std::string& folder, const char* name) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::path(folder) / name, error);
}

// Adds to the error of a tokenizer.json that the folder has other files, too.
absl::Status WithOtherFiles(const absl::Status& status, const std::string& folder) {
  if (!Has(folder, kVocabularyFile) || !Has(folder, kMergesFile)) return status;
  return absl::Status(status.code(), absl::StrCat(status.message(), ". Without ", kJsonFile,
                                                  " the folder is read as GPT-2's ",
                                                  kVocabularyFile, " and ", kMergesFile));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const BytePairEncoding>> ParseFiles(const TokenizerFiles& files,
                                                                   absl::string_view prefix) {
  const auto text = [prefix](const char* name, absl::string_view bytes) {
    return FileText{absl::StrCat(prefix, name), std::string(bytes)};
  };
  if (!files.json.empty()) return BytePairEncoding::ParseJson(text(kJsonFile, files.json));
  return BytePairEncoding::Parse(text(kVocabularyFile, files.vocabulary),
                                 text(kMergesFile, files.merges));
}

std::vector<std::string> FileNamesIn(const std::string& folder) {
  if (Has(folder, kJsonFile)) return {kJsonFile};
  return {kVocabularyFile, kMergesFile};
}

absl::StatusOr<TokenizerFolder> ReadTokenizerFolder(const std::string& folder) {
  std::vector<FileText> files;
  for (const std::string& name : FileNamesIn(folder)) {
    ASSIGN_OR_RETURN(FileText file, ReadFileText(std::filesystem::path(folder) / name));
    files.push_back(std::move(file));
  }
  TokenizerFolder read;
  if (files.size() == 1) {
    auto encoding = BytePairEncoding::ParseJson(files[0]);
    if (!encoding.ok()) return WithOtherFiles(encoding.status(), folder);
    read.encoding = *std::move(encoding);
    read.json = std::move(files[0].text);
    return read;
  }
  ASSIGN_OR_RETURN(read.encoding, BytePairEncoding::Parse(files[0], files[1]));
  read.vocabulary = std::move(files[0].text);
  read.merges = std::move(files[1].text);
  return read;
}

}  // namespace ablate::tokenizer
