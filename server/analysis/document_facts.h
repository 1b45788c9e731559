// Counts of an uploaded text (documents, lengths, characters): computed on upload, or later if
// missing.
#ifndef ABLATE_SERVER_ANALYSIS_DOCUMENT_FACTS_H_
#define ABLATE_SERVER_ANALYSIS_DOCUMENT_FACTS_H_

#include "absl/status/statusor.h"
#include "server/engine/task.h"
#include "storage/store.h"

namespace ablate::analysis {

// Reads a published blob once, in pieces. Errors as engine::DocumentInspector's and the blobs'.
absl::StatusOr<engine::DocumentFacts> InspectBlob(storage::Blobs* blobs,
                                                  const storage::Blobs::Pin& blob);

// Returns the size of the texts of a stored data set of tagged sentences; 0 for others. Errors are
// the store's.
absl::StatusOr<uint64_t> TextBytesOf(storage::Store* store, const storage::DatasetRecord& dataset);

// Returns the facts of a stored data set, of tokens as spec::DatasetFacts has them. If they aren't
// stored yet, reads the whole text, counts and stores them. Lengths are 0 and empty if the store
// has no files; the counts as one text are 0 if they are unknown and `as_text` is false. If the
// text can't be read, the error names the data set. Blocks on the store.
absl::StatusOr<engine::DocumentFacts> FactsOf(storage::Store* store,
                                              const storage::DatasetRecord& dataset, bool as_text);

// Returns the part of a data set's facts that the store keeps.
storage::DatasetCounts CountsOf(const engine::DocumentFacts& facts);

}  // namespace ablate::analysis

#endif  // ABLATE_SERVER_ANALYSIS_DOCUMENT_FACTS_H_
