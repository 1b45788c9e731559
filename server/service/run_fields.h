// Gives the store the fields of resolved specs, by which runs are found.
#ifndef ABLATE_SERVER_SERVICE_RUN_FIELDS_H_
#define ABLATE_SERVER_SERVICE_RUN_FIELDS_H_

#include <stop_token>
#include <vector>

#include "server/experiment/resolution.h"
#include "storage/store.h"

namespace ablate::service {

// Returns the fields of a resolved grid.
storage::CellFields FieldsOf(const std::vector<spec::ResolvedCell>& cells);

// Writes the fields of experiments that were stored before there were any, newest first, until it
// is stopped. Takes a second for some ten thousand runs, once. Logs experiments that can't be read,
// which stay without fields.
void DescribeStoredExperiments(storage::Store* store, const std::stop_token& stop);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_RUN_FIELDS_H_
