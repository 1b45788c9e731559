// Checks data sets that aren't plain text, and divides texts into tokens for experiments.
#ifndef ABLATE_SERVER_SUBMIT_TOKEN_DATASETS_H_
#define ABLATE_SERVER_SUBMIT_TOKEN_DATASETS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/dataset_file.h"
#include "server/engine/task.h"
#include "server/lookup/names.h"
#include "server/submit/backend.h"
#include "storage/blobs.h"
#include "storage/store.h"

namespace ablate::submit {

// The largest text that an experiment may have divided into tokens.
inline constexpr uint64_t kMaxEncodedText = uint64_t{256} << 20;

// Facts of a file that isn't plain text.
struct FileFacts {
  DatasetKind kind = DatasetKind::kTokenizer;
  engine::DocumentFacts facts;  // as spec::DatasetFacts; a tokenizer has no code points
};

// Checks a published file completely. INVALID_ARGUMENT with its problem. Blocks on the store.
absl::StatusOr<FileFacts> InspectFile(storage::Blobs* blobs, const storage::Blobs::Pin& blob);

// Counts of tagged sentences (base/conllu.h).
struct TaggedFacts {
  uint64_t sentences = 0;
  uint64_t text_bytes = 0;
};

// Checks a published file of tagged sentences completely. INVALID_ARGUMENT with its problem. Blocks
// on the store.
absl::StatusOr<TaggedFacts> InspectTagged(storage::Blobs* blobs, const storage::Blobs::Pin& blob);

// A data set's id: the name without its extension, and the beginning of the hash. A private one has
// 'p' and digits of the user: the ID that others get must not show that it exists.
std::string DatasetId(absl::string_view display_name, absl::string_view sha256,
                      absl::string_view private_to);

// The tokens of a text or its documents, which the store may have already.
struct EncodedText {
  storage::DatasetRecord record;
  engine::DocumentFacts facts;  // as spec::DatasetFacts
  std::string file;             // empty if the store has it
};

// Divides a text, or each of its documents, into tokens unless the store has them. The tokens are
// private if the text or the tokenizer is, also if only until an experiment uses them.
// INVALID_ARGUMENT if the text is too large; DATA_LOSS if one can't be read. Changes nothing.
// Blocks on the store, some seconds for a large text.
absl::StatusOr<EncodedText> EncodeText(const lookup::View& view, const storage::DatasetRecord& text,
                                       const storage::DatasetRecord& tokenizer, bool documents);

// Stores the tokens unless that has happened. RESOURCE_EXHAUSTED if the owner's quota or the disk
// is too small. Blocks on the store.
absl::Status StoreEncoded(const Backend& backend, const EncodedText& encoded);

}  // namespace ablate::submit

#endif  // ABLATE_SERVER_SUBMIT_TOKEN_DATASETS_H_
