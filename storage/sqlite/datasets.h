// Data set rows.
#ifndef ABLATE_STORAGE_SQLITE_DATASETS_H_
#define ABLATE_STORAGE_SQLITE_DATASETS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/blobs.h"
#include "storage/records.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// ALREADY_EXISTS if the id is another data set's; FAILED_PRECONDITION if the blob is not published.
absl::StatusOr<DatasetRecord> AddDataset(Transaction& t, Blobs* blobs,
                                         const DatasetRecord& dataset);
absl::StatusOr<DatasetRecord> FindDataset(Connection& db, absl::string_view id_or_name);
std::vector<DatasetRecord> ListDatasets(Connection& db, absl::string_view after, uint32_t limit);
// "" before any were kept.
absl::StatusOr<std::string> DocumentLengths(Connection& db, absl::string_view id);
absl::Status KeepDocumentLengths(Transaction& t, absl::string_view id, absl::string_view lengths);
absl::Status DeleteDataset(Transaction& t, absl::string_view id);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_DATASETS_H_
