// What is known of an uploaded text: counted when it comes, and again where it was not yet.
#ifndef ABLATE_SERVER_ANALYSIS_DOCUMENT_FACTS_H_
#define ABLATE_SERVER_ANALYSIS_DOCUMENT_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/task.h"
#include "storage/store.h"

namespace ablate::analysis {

// Reads a published blob once, in pieces. Errors as engine::DocumentInspector's, and the blobs'.
absl::StatusOr<engine::DocumentFacts> InspectBlob(storage::Blobs* blobs,
                                                  const storage::Blobs::Pin& blob);

// How long a data set's documents are; as engine::DocumentFacts says.
struct DocumentLengths {
  uint64_t longest = 0;          // 0: not known
  std::vector<uint64_t> counts;  // empty: not known
};

// As the store keeps them: "72 3:12 4:80 72:1", the longest and then documents by length.
std::string LengthsText(const DocumentLengths& lengths);
DocumentLengths ReadLengths(const std::string& text);

// Of a stored data set. Counts them if nobody has, which reads the whole text, and keeps them.
// Nothing is known where the store has no files. An error, naming the data set, if its text can't
// be read. Blocks on the store.
absl::StatusOr<DocumentLengths> LengthsOf(storage::Store* store,
                                          const storage::DatasetRecord& dataset);

// The same of all facts; those of the record are always known. What the data set has as one text
// is 0 where it is not known and not asked for `as_text`: counting takes a pass over the file.
absl::StatusOr<engine::DocumentFacts> FactsOf(storage::Store* store,
                                              const storage::DatasetRecord& dataset, bool as_text);

// What the store keeps of the facts of a data set.
storage::DatasetCounts CountsOf(const engine::DocumentFacts& facts);

}  // namespace ablate::analysis

#endif  // ABLATE_SERVER_ANALYSIS_DOCUMENT_FACTS_H_
