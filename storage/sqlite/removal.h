// Removes, in slices, what was deleted, and sweeps blobs that no row names.
#ifndef ABLATE_STORAGE_SQLITE_REMOVAL_H_
#define ABLATE_STORAGE_SQLITE_REMOVAL_H_

#include <string>
#include <vector>

#include "storage/blobs.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// Each returns false if there was nothing to do.

// Cells of deleted experiments. A run that loses its last cell goes at once; its points and the
// like wait for RemoveDeadRuns.
bool RemoveCells(Transaction& t);
bool RemoveDeadRuns(Transaction& t);
// Blobs that lost a name.
bool SweepLoose(Transaction& t, Blobs* blobs);

// Removes those of the blobs that no row names once the transaction is durable. A row that names
// one later was written after its blob was pinned, so that it is spared: pins last until the naming
// request has been answered, and no other request runs between this one's commit and the removal.
// `blobs` may be null.
void SweepUnnamed(Transaction& t, Blobs* blobs, const std::vector<std::string>& hashes);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_REMOVAL_H_
