// What an analysis would read: the data set that it names, and what its worker would refuse of it.
#ifndef ABLATE_SERVER_ANALYSIS_INPUTS_H_
#define ABLATE_SERVER_ANALYSIS_INPUTS_H_

#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/analysis_options.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/analysis/subjects.h"
#include "server/engine/analysis.h"
#include "server/rpc/names.h"
#include "server/spec/experiment_analyses.h"
#include "server/spec/problems.h"
#include "server/spec/resolve.h"
#include "storage/store.h"

namespace ablate::analysis {

// Sets the name and the hash of the data set that resolved inputs name, if they name one; a problem
// in inputs.dataset if it can't be found. The user to whom that data set is private, or empty.
// Blocks on the store.
absl::StatusOr<std::string> FindInputs(const rpc::View& view, v1::AnalysisInputs* inputs,
                                       spec::Problems* problems);

// Returns the signature of an experiment entry's analyses; nothing if the entry, or the data set
// that it names, can't be. Blocks on the store.
absl::StatusOr<std::optional<std::string>> SignatureOf(const rpc::View& view,
                                                       spec::AskedAnalysis asked);

// The problem in inputs.dataset of one that is private to others than what would read it.
void CheckPrivacy(const std::string& dataset_private_to, const std::string& private_to,
                  const v1::AnalysisInputs& inputs, spec::Problems* problems);

// Says that a private data set is for its owner's private experiments alone.
std::string ForPrivateUse(absl::string_view dataset, absl::string_view private_to);

// Adds what is wrong with what these models would read. Data is looked at here up to some MB a data
// set, and only if something depends on it: what is wrong with more of it, or with data that can't
// be read, its worker says. Blocks on the store.
void CheckInputs(storage::Store* store, const engine::AnalysisOptions& options,
                 const v1::AnalysisInputs& inputs, const std::vector<AnalyzedModel>& models,
                 spec::Problems* problems);

// The same of every entry of an experiment's analyses before anything is trained, of the first 100
// of a grid's runs that read different data, or hold other sequences out. What an entry has wrong
// by itself, its data set included, and runs whose model or task have problems are left out. The
// experiment is `private_to` somebody, or empty. Errors as FindInputs'. Blocks on the store.
absl::Status CheckAskedInputs(const rpc::View& view, const std::string& private_to,
                              const spec::Resolution& resolution, spec::Problems* problems);

}  // namespace ablate::analysis

#endif  // ABLATE_SERVER_ANALYSIS_INPUTS_H_
