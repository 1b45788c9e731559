// Decides under which labels an analysis's numbers become metrics of its subjects' experiments.
#ifndef ABLATE_SERVER_SUBMIT_ANALYSIS_LABELS_H_
#define ABLATE_SERVER_SUBMIT_ANALYSIS_LABELS_H_

#include <set>
#include <string>
#include <vector>

#include "ablate/v1/analysis.pb.h"
#include "absl/status/statusor.h"
#include "server/lookup/names.h"

namespace ablate::submit {

// An analysis that may become metrics of experiments.
struct ToLabel {
  const v1::Analysis* analysis = nullptr;              // resolved: kind, inputs, seed
  const std::set<std::string>* experiments = nullptr;  // IDs that its subjects name
  std::string label;
  bool label_is_given = false;  // from the request; otherwise the label is the kind
  std::string private_to;
  std::string asked_by;  // the experiment whose file asks for it, or empty
};

struct MetricLabels {
  std::vector<std::string> experiments;  // IDs: the numbers become their metrics
  std::vector<std::string> unlabelled;   // IDs: they are other users'
};

// Returns which experiments get the numbers as metrics. A label in an experiment is given by its
// owner and admins. Public experiments get none of a private analysis, because a taken label would
// show others that it exists. PERMISSION_DENIED if a label is given for another user's experiment;
// ALREADY_EXISTS if an experiment's file reserves the label for another analysis. Blocks on the
// store.
absl::StatusOr<MetricLabels> FindLabels(const lookup::View& view, const ToLabel& asked);

}  // namespace ablate::submit

#endif  // ABLATE_SERVER_SUBMIT_ANALYSIS_LABELS_H_
