// Finds the models that samples are drawn from: runs at their checkpoints, and imported models with
// a tokenizer.
#ifndef ABLATE_SERVER_ANALYSIS_SAMPLED_MODELS_H_
#define ABLATE_SERVER_ANALYSIS_SAMPLED_MODELS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "ablate/v1/spec.pb.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/lookup/names.h"
#include "storage/store.h"

namespace ablate::analysis {

// A checkpoint, and what its worker needs to draw text from it.
struct SampledModel {
  std::string run;       // runs/ID; empty for an imported model
  std::string imported;  // models/NAME; empty for a run
  uint32_t step = 0;     // of a run's checkpoint
  // Every applicable field is set. The task of an imported model is one of text with stored tokens:
  // those of its tokenizer.
  v1::RunSpec spec;
  std::string checkpoint_blob;
  std::string dataset_blob;  // gives the tokens their meaning
  uint64_t parameters = 0;
};

// Returns a run, given its ID, at its last checkpoint or that of `step`. NOT_FOUND or
// FAILED_PRECONDITION if the run is unknown, has no such checkpoint, or its task has no text.
absl::StatusOr<SampledModel> FindSampledRun(storage::Store* store, const std::string& run,
                                            std::optional<uint32_t> step);

// Returns an imported model. `tokenizer` names a data set of a tokenizer or of tokens. NOT_FOUND if
// the caller sees no such model or data set; INVALID_ARGUMENT if the data set has another kind, or
// more tokens than the model.
absl::StatusOr<SampledModel> FindSampledImport(const lookup::View& view, absl::string_view model,
                                               absl::string_view tokenizer);

}  // namespace ablate::analysis

#endif  // ABLATE_SERVER_ANALYSIS_SAMPLED_MODELS_H_
