// Checks that the store's data of a run are one consistent history.
#ifndef ABLATE_TESTS_SCHEDULE_SIMULATION_CHECKS_H_
#define ABLATE_TESTS_SCHEDULE_SIMULATION_CHECKS_H_

#include <string>

#include "ablate/worker/v1/worker.pb.h"
#include "storage/store.h"
#include "tests/schedule/simulation/histories.h"

namespace ablate::simulation {

// Returns what is inconsistent; empty if nothing is: points of steps 0, 1, 2, … without gaps,
// evaluations and checkpoints all of one history; summaries that agree; and all of it complete if
// the run is DONE.
std::string CheckRun(storage::Store& store, const Histories& histories, const std::string& run);

// Returns an error unless the store has the run of a grant under its lease; empty if it has.
std::string CheckHandedOut(storage::Store& store, const worker::v1::Grant& grant);

// Returns an error if a run is under two leases; empty otherwise.
std::string CheckLeases(storage::Store& store);

}  // namespace ablate::simulation

#endif  // ABLATE_TESTS_SCHEDULE_SIMULATION_CHECKS_H_
