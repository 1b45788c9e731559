// What is known of an uploaded text: counted when it comes, and again where it was not yet.
#ifndef ABLATE_SERVER_ANALYSIS_DOCUMENT_FACTS_H_
#define ABLATE_SERVER_ANALYSIS_DOCUMENT_FACTS_H_

#include "absl/status/statusor.h"
#include "server/engine/task.h"
#include "storage/store.h"

namespace ablate::analysis {

// Reads a published blob once, in pieces. Errors as engine::DocumentInspector's, and the blobs'.
absl::StatusOr<engine::DocumentFacts> InspectBlob(storage::Blobs* blobs,
                                                  const storage::Blobs::Pin& blob);

// Returns the facts of a stored data set. Counts what nobody has counted, which reads the whole
// text, and keeps it.
// Lengths are 0 and empty where the store has no files; what the data set has as one text is 0
// where it is not known and not asked for `as_text`. An error, naming the data set, if its text
// can't be read. Blocks on the store.
absl::StatusOr<engine::DocumentFacts> FactsOf(storage::Store* store,
                                              const storage::DatasetRecord& dataset, bool as_text);

// What the store keeps of the facts of a data set.
storage::DatasetCounts CountsOf(const engine::DocumentFacts& facts);

}  // namespace ablate::analysis

#endif  // ABLATE_SERVER_ANALYSIS_DOCUMENT_FACTS_H_
