// Removes, in slices, what was deleted, and sweeps blobs that no row names.
#ifndef ABLATE_STORAGE_SQLITE_REMOVAL_H_
#define ABLATE_STORAGE_SQLITE_REMOVAL_H_

#include <cstddef>
#include <string>
#include <vector>

#include "storage/blobs.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// Each returns false if there was nothing to do.

// Cells of deleted experiments. A run that loses its last cell goes at once; its points and the
// like wait for RemoveDeadRuns.
bool RemoveCells(Transaction& t);
bool RemoveDeadRuns(Transaction& t);
// Blobs that lost a name. Adds to `trashed` how many went into the trash, as SweepUnnamed.
bool SweepLoose(Transaction& t, Blobs* blobs, size_t* trashed);

// Sweeps those of the blobs that no row names once the transaction is durable, and counts in
// `trashed` those that went into the trash. A row that names one later was written after its blob
// was pinned, so that it is spared: pins last until the naming request has been answered, and no
// other request runs between this one's commit and the removal. `blobs` may be null; `trashed`
// lasts until the request is answered.
void SweepUnnamed(Transaction& t, Blobs* blobs, Worth worth, const std::vector<std::string>& hashes,
                  size_t* trashed);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_REMOVAL_H_
