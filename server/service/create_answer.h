// Writes the answers of CreateExperiment: about a plan, and about a stored experiment.
#ifndef ABLATE_SERVER_SERVICE_CREATE_ANSWER_H_
#define ABLATE_SERVER_SERVICE_CREATE_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "ablate/v1/experiment.pb.h"
#include "absl/status/status.h"
#include "server/lookup/page.h"
#include "server/service/services.h"
#include "server/submit/plan.h"

namespace ablate::service {

// Each leaves out what does not fit into `room`, with a note of how much.

// Adds notes, trainers, parameter counts, cells that differ only in evaluation, and the estimate.
void DescribePlan(const submit::Plan& plan, lookup::Room* room,
                  v1::CreateExperimentResponse* response);

// Returns the answer to validate_only.
v1::CreateExperimentResponse Preview(const std::string& owner, bool is_private,
                                     submit::Plan&& plan);

// Adds the parameter counts of each setting's runs, as DescribePlan does; seeds of one are
// adjacent.
absl::Status AddStoredParameters(storage::Store* store, const std::string& id, lookup::Room* room,
                                 v1::CreateExperimentResponse* response);

// Adds the stored part of an answer about an experiment with so many cells and reused ones.
absl::Status AddStored(const Backend& backend, const std::string& id, size_t cells, uint32_t reused,
                       lookup::Room* room, v1::CreateExperimentResponse* response);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_CREATE_ANSWER_H_
