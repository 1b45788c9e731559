// The kinds of data sets. Reads and writes the files of those that aren't text: a tokenizer, and a
// text that is divided into tokens. Both are safetensors files; docs/reference/tokenizers.md has
// the format.
#ifndef ABLATE_BASE_DATASET_FILE_H_
#define ABLATE_BASE_DATASET_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ablate {

// Tagged sentences are text, too (base/conllu.h).
// A file set is in base/file_set.h.
enum class DatasetKind { kText, kTokenizer, kTokens, kTagged, kFiles };

// The key of the kind in the metadata of a file that isn't text, and its value for a file set.
inline constexpr char kDatasetKindKey[] = "ablate.dataset";
inline constexpr char kFileSetName[] = "files";

// The names of a tokenizer's files, in a folder and in a data set.
inline constexpr char kVocabularyFile[] = "vocab.json", kMergesFile[] = "merges.txt";
inline constexpr char kJsonFile[] = "tokenizer.json";

// The files of a tokenizer: those of GPT-2, or one file.
struct TokenizerFiles {
  absl::string_view vocabulary;  // vocab.json
  absl::string_view merges;      // merges.txt
  absl::string_view json = {};   // tokenizer.json; the other two are empty then

  // Returns the name and the bytes of each file.
  std::vector<std::pair<const char*, absl::string_view>> parts() const;
};

// The contents of a file. The views point into the file's bytes.
struct DatasetFile {
  DatasetKind kind = DatasetKind::kTokenizer;
  TokenizerFiles tokenizer;
  std::vector<uint32_t> tokens;  // of kind kTokens; not checked against the vocabulary
  // The number of tokens of each document, at least 1; empty if the tokens are of a whole text.
  std::vector<uint32_t> lengths;
};

// The largest such file, except a file set. It is read as a whole.
inline constexpr uint64_t kMaxDatasetFileBytes = uint64_t{256} << 20;

// Returns false for a file that ReadDatasetFile may accept, given its first eight bytes. Such a
// file isn't text: it begins with a number that has zero bytes.
bool IsText(absl::string_view beginning);

// Returns the file of a tokenizer.
std::string WriteTokenizerFile(const TokenizerFiles& tokenizer);

// Returns the file of a text's tokens: 16 bits each if the vocabulary has at most 65,536, else 32.
// Every token must be below `vocabulary`. `lengths` as in DatasetFile.
std::string WriteTokenFile(const TokenizerFiles& tokenizer, uint32_t vocabulary,
                           absl::Span<const uint32_t> tokens,
                           absl::Span<const uint32_t> lengths = {});

// Returns the bytes of an id in the file that `ids` were read from, `id_bytes` each: more than
// `id_bytes` if every second one is 0, because ids of twice or four times the width leave such
// zeros. At least 16 ids decide; fewer, or zeros alone, have the width that they were read with.
size_t FindIdBytes(absl::Span<const uint32_t> ids, size_t id_bytes);

// Returns INVALID_ARGUMENT with the problem. Doesn't read the tokenizer's files. Of a file set it
// returns only the kind.
absl::StatusOr<DatasetFile> ReadDatasetFile(absl::string_view file);

}  // namespace ablate

#endif  // ABLATE_BASE_DATASET_FILE_H_
