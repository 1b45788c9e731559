// Creating, cancelling and deleting experiments.
#ifndef ABLATE_STORAGE_SQLITE_EXPERIMENTS_H_
#define ABLATE_STORAGE_SQLITE_EXPERIMENTS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/records.h"
#include "storage/sqlite/writer.h"
#include "storage/store.h"

namespace ablate::storage {

// As the store's.
absl::StatusOr<std::optional<CreatedExperiment>> FindRequest(Connection& db, absl::string_view id,
                                                             absl::string_view hash);
absl::StatusOr<CreatedExperiment> CreateExperiment(Transaction& t, const NewExperiment& experiment);
absl::StatusOr<std::vector<Withdrawal>> CancelExperiment(Transaction& t, absl::string_view name);
// Hides it; Maintenance removes its rows.
absl::Status DeleteExperiment(Transaction& t, absl::string_view name);

// Axis names and labels as a cell's row has them.
std::string EncodeLabels(const std::vector<std::pair<std::string, std::string>>& labels);
std::vector<std::pair<std::string, std::string>> DecodeLabels(absl::string_view bytes);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_EXPERIMENTS_H_
