// Reads the files of a tokenizer, from a folder or from a data set: tokenizer.json, or GPT-2's
// vocab.json and merges.txt.
#ifndef ABLATE_BASE_TOKENIZER_TOKENIZER_FILES_H_
#define ABLATE_BASE_TOKENIZER_TOKENIZER_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/dataset_file.h"
#include "base/tokenizer/byte_pair_encoding.h"

namespace ablate::tokenizer {

// Reads the files of a data set. `prefix` is what errors write before the name of a file.
absl::StatusOr<std::shared_ptr<const BytePairEncoding>> ParseFiles(const TokenizerFiles& files,
                                                                   absl::string_view prefix = "");

// Returns the names of the files that are read in a folder: tokenizer.json if it is there, because
// only it has the pattern of the words; otherwise vocab.json and merges.txt.
std::vector<std::string> FileNamesIn(const std::string& folder);

// The files of a folder that were read, and their encoding.
struct TokenizerFolder {
  std::string vocabulary, merges, json;  // as in TokenizerFiles
  std::shared_ptr<const BytePairEncoding> encoding;

  TokenizerFiles files() const { return {vocabulary, merges, json}; }
};

// Reads the files of a folder. Errors as of ReadFileText and BytePairEncoding's.
absl::StatusOr<TokenizerFolder> ReadTokenizerFolder(const std::string& folder);

}  // namespace ablate::tokenizer

#endif  // ABLATE_BASE_TOKENIZER_TOKENIZER_FILES_H_
