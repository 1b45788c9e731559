// Changes when an experiment's runs are granted.
#ifndef ABLATE_STORAGE_SQLITE_QUEUEING_H_
#define ABLATE_STORAGE_SQLITE_QUEUEING_H_

#include <cstdint>

#include "storage/records.h"
#include "storage/sqlite/database.h"

namespace ablate::storage {

// Pauses an experiment or lets it proceed, changes its priority, and moves its queued runs, as the
// update says.
void ChangeQueueing(Transaction& t, int64_t experiment, const ExperimentUpdate& update);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_QUEUEING_H_
