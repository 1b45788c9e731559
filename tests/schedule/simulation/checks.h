// Is what the store shows of a run one consistent history?
#ifndef ABLATE_TESTS_SCHEDULE_SIMULATION_CHECKS_H_
#define ABLATE_TESTS_SCHEDULE_SIMULATION_CHECKS_H_

#include <string>

#include "ablate/worker/v1/worker.pb.h"
#include "storage/store.h"
#include "tests/schedule/simulation/histories.h"

namespace ablate::simulation {

// Empty if it is: points of steps 0, 1, 2, … without gaps, all of one history; evaluations and
// checkpoints of the same; summaries that agree; all of it complete if the run is DONE.
std::string CheckRun(storage::Store& store, const Histories& histories, const std::string& run);

// Empty if the store has the run of a grant under its lease.
std::string CheckHandedOut(storage::Store& store, const worker::v1::Grant& grant);

// Empty if no run is under two leases.
std::string CheckLeases(storage::Store& store);

}  // namespace ablate::simulation

#endif  // ABLATE_TESTS_SCHEDULE_SIMULATION_CHECKS_H_
