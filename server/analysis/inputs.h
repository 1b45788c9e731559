// Checks the inputs of analyses: the data set that they name, and everything in it that a worker
// would refuse.
#ifndef ABLATE_SERVER_ANALYSIS_INPUTS_H_
#define ABLATE_SERVER_ANALYSIS_INPUTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/analysis_options.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/analysis/subjects.h"
#include "server/config/problems.h"
#include "server/engine/analysis.h"
#include "server/experiment/experiment_analyses.h"
#include "server/experiment/resolution.h"
#include "server/lookup/names.h"
#include "storage/store.h"

namespace ablate::analysis {

// Facts about the data set that inputs name.
struct FoundInputs {
  std::string private_to;       // the user to whom it is private, or empty
  bool becomes_public = false;  // as in its record
  uint64_t text_bytes = 0;      // of its texts; 0: unknown
};

// Sets the name and the hash of the data set that an analysis's resolved inputs name, if any; adds
// a problem in inputs.dataset if it can't be found, or is of a kind that the analysis can't read.
// Blocks on the store.
absl::StatusOr<FoundInputs> FindInputs(const lookup::View& view, const v1::AnalysisKind& analysis,
                                       v1::AnalysisInputs* inputs, spec::Problems* problems);

// Returns the signature of an experiment entry's analyses; nothing if the entry or its data set is
// invalid. Blocks on the store.
absl::StatusOr<std::optional<std::string>> SignatureOf(const lookup::View& view,
                                                       spec::AskedAnalysis asked);

// Adds a problem in inputs.dataset if the data set is private to anyone except the reader.
void CheckPrivacy(const std::string& dataset_private_to, const std::string& private_to,
                  const v1::AnalysisInputs& inputs, spec::Problems* problems);

// Returns the error text for a private data set: only its owner's private experiments may use it.
std::string ForPrivateUse(absl::string_view dataset, absl::string_view private_to);

// Adds problems of the inputs of these models. Looks at data only if the answer depends on it, and
// only up to some MB per data set; the worker reports problems of larger or unreadable data. Blocks
// on the store.
void CheckInputs(storage::Store* store, const engine::AnalysisOptions& options,
                 const v1::AnalysisInputs& inputs, const std::vector<AnalyzedModel>& models,
                 spec::Problems* problems);

// Bytes of data sets that aren't stored yet, by SHA-256.
using UnstoredData = std::map<std::string, absl::string_view>;

// Checks the inputs of every entry of an experiment's analyses before training, on the first 100 of
// a grid's runs that read different data or hold out different sequences. Leaves out entries with
// problems of their own (the data set's included) and runs whose model or task has problems. The
// experiment is private to `private_to`, or public if that is empty. Errors as FindInputs's. Blocks
// on the store.
absl::Status CheckAskedInputs(const lookup::View& view, const std::string& private_to,
                              const spec::Resolution& resolution, const UnstoredData& unstored,
                              spec::Problems* problems);

}  // namespace ablate::analysis

#endif  // ABLATE_SERVER_ANALYSIS_INPUTS_H_
