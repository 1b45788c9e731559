// Reads the files of a tokenizer: vocab.json and merges.txt.
#ifndef ABLATE_BASE_TOKENIZER_VOCABULARY_H_
#define ABLATE_BASE_TOKENIZER_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::tokenizer {

inline constexpr uint32_t kMaxVocabulary = 1 << 20;  // ids are smaller
inline constexpr size_t kMaxFileBytes = 64 << 20;
inline constexpr size_t kMaxNameBytes = 1024;  // of a token's name in vocab.json

// A file that was read, and the name that its errors begin with.
struct FileText {
  std::string name;
  std::string text;
};

// Reads a file of at most kMaxFileBytes.
absl::StatusOr<FileText> ReadFileText(const std::string& path);

// Quotes `text` for an error: escapes what isn't UTF-8 or printable, shortens long text.
std::string Quoted(absl::string_view text);

// Ids by name: names as in the file, in which characters stand for bytes (byte_alphabet.h).
using Vocabulary = absl::flat_hash_map<std::string, uint32_t>;

// Collects the entries of a vocabulary. An error has only the problem.
class VocabularyBuilder {
 public:
  static absl::Status CheckName(absl::string_view name);
  // Adds an entry. Its name must be one that CheckName accepts.
  absl::Status Add(const std::string& name, uint64_t id);
  // Returns the error of an entry whose id is another value than an integer.
  static absl::Status WrongId(absl::string_view name, absl::string_view value);
  Vocabulary Take() && { return std::move(ids_); }

 private:
  Vocabulary ids_;
  absl::flat_hash_set<uint32_t> used_;
};

// Reads a JSON object of names and ids. Ids are different integers below kMaxVocabulary, and some
// may be missing in between. INVALID_ARGUMENT names the file and the first bad entry.
absl::StatusOr<Vocabulary> ParseVocabulary(const FileText& file);

// Replaces the two neighbours `left` and `right` by `result`.
struct Merge {
  uint32_t left, right, result;
};

// Reads a merge per line, in the order of their rank: two names with a space between them. Lines
// end with LF or CR LF. The first line may be a comment, "#version" and more; the last lines may be
// empty. Both names and the joined one must be in the vocabulary, and the joined one must consist
// of characters that stand for bytes. INVALID_ARGUMENT names the file and the first bad line.
absl::StatusOr<std::vector<Merge>> ParseMerges(const FileText& file, const Vocabulary& vocabulary);

// Collects merges in the order of their rank.
class MergesBuilder {
 public:
  // `place` is the word for the place of a merge: "line".
  MergesBuilder(const Vocabulary* vocabulary, absl::string_view place)
      : vocabulary_(*vocabulary), place_(place) {}

  // Adds the merge at place `number`: two names with a space between them. An error has only the
  // problem.
  absl::Status Add(absl::string_view merge, size_t number);
  std::vector<Merge> Take() && { return std::move(merges_); }

 private:
  const Vocabulary& vocabulary_;
  const std::string place_;
  std::vector<Merge> merges_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, size_t> numbers_;
};

}  // namespace ablate::tokenizer

#endif  // ABLATE_BASE_TOKENIZER_VOCABULARY_H_
