// Compares a planned experiment with stored ones: an identical one, and the one that it extends.
#ifndef ABLATE_SERVER_SUBMIT_RELATED_H_
#define ABLATE_SERVER_SUBMIT_RELATED_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/lookup/names.h"
#include "server/submit/plan.h"
#include "storage/store.h"

namespace ablate::submit {

// Returns true if a submission of this spec may only repeat the experiment: it has an equal spec
// and name, and none of its runs and analyses FAILED or was CANCELLED.
bool IsRepeatedBy(const storage::ExperimentRecord& experiment, const v1::ExperimentSpec& spec);

// Returns the newest experiment of the viewer's that has the plan's spec and its runs in every
// cell, none of them FAILED or CANCELLED; empty if there is none. `private_to` is as in
// storage::NewExperiment, also below.
absl::StatusOr<std::string> FindIdentical(const lookup::View& view, const std::string& private_to,
                                          const Plan& plan);

// Finds the experiment that a plan is to extend, and appends a problem, at `extends`, unless each
// of its cells is also in the plan, by labels and seed, with the same training or a longer one.
// PERMISSION_DENIED unless the viewer may change it.
absl::StatusOr<storage::ExperimentRecord> CheckExtension(const lookup::View& view,
                                                         const std::string& private_to,
                                                         const std::string& name, const Plan& plan,
                                                         std::vector<spec::Problem>* problems);

}  // namespace ablate::submit

#endif  // ABLATE_SERVER_SUBMIT_RELATED_H_
