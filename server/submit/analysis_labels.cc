#include "server/submit/analysis_labels.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/analysis/inputs.h"
#include "server/experiment/analysis.h"
#include "server/experiment/experiment_analyses.h"
#include "server/lookup/errors.h"
#include "server/results/trained_grid.h"
#include "storage/store.h"

namespace ablate::submit {
namespace {

// Returns true if an entry of the experiment's file has this analysis' signature.
absl::StatusOr<bool> IsSame(storage::Store* store, const storage::ExperimentRecord& experiment,
                            const spec::AskedAnalysis& entry, const v1::Analysis& analysis) {
  // The file names data sets as its owner sees them.
  ASSIGN_OR_RETURN(const auto planned, analysis::SignatureOf({store, {experiment.owner}}, entry));
  return planned == spec::AnalysisSignature(analysis);
}

// Labels of an experiment's file belong to its own analyses, even before they are computed.
absl::Status CheckReserved(storage::Store* store, const results::StoredExperiment& experiment,
                           const ToLabel& asked) {
  for (const spec::AskedAnalysis& entry : spec::AskedAnalyses(experiment.spec)) {
    if (entry.label != asked.label) continue;
    ASSIGN_OR_RETURN(const auto same, IsSame(store, experiment.record, entry, *asked.analysis));
    if (same) continue;
    return absl::AlreadyExistsError(absl::StrCat(
        "label: ", asked.label, " is reserved in experiment ", experiment.record.id,
        " for another analysis, which its file declares (kind, options, inputs or seed differ). "
        "Choose another label"));
  }
  return absl::OkStatus();
}

absl::Status NotYours(const storage::ExperimentRecord& experiment, const std::string& label) {
  return lookup::WithReason(
      absl::PermissionDeniedError(absl::StrCat(
          "label: only ", experiment.owner, " or an admin may label metrics of ", experiment.owner,
          "'s experiment ", experiment.id, " (", label, "). Omit the label")),
      "NOT_YOURS");
}

}  // namespace

absl::StatusOr<MetricLabels> FindLabels(const lookup::View& view, const ToLabel& asked) {
  MetricLabels labels;
  if (!spec::HasNumbers(asked.analysis->analysis())) return labels;
  for (const std::string& id : *asked.experiments) {
    // The asking experiment is as private as the analysis, and its file reserves the label.
    if (id == asked.asked_by) {
      labels.experiments.push_back(id);
      continue;
    }
    ASSIGN_OR_RETURN(const auto experiment, results::LoadExperiment(view.store, id));
    const storage::ExperimentRecord& record = experiment.record;
    if (record.private_to != asked.private_to) continue;
    const bool may_label = view.viewer.sees_all || view.viewer.user == record.owner;
    if (!may_label && asked.label_is_given) return NotYours(record, asked.label);
    if (!may_label) {
      labels.unlabelled.push_back(id);
      continue;
    }
    RETURN_IF_ERROR(CheckReserved(view.store, experiment, asked));
    labels.experiments.push_back(id);
  }
  return labels;
}

}  // namespace ablate::submit
