// Reads the arrays of stored analyses, which a file in safetensors holds.
#ifndef ABLATE_SERVER_RESULTS_ARRAYS_H_
#define ABLATE_SERVER_RESULTS_ARRAYS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/safetensors.h"
#include "server/lookup/cancelled.h"
#include "storage/store.h"

namespace ablate::results {

// Returns the error for arrays of an analysis that can't be read: DATA_LOSS.
absl::Status DamagedArrays(const std::string& id, absl::string_view why);

// Returns the file of an analysis's arrays; its bytes are verified against its hash. DATA_LOSS if
// it is missing or damaged; RESOURCE_EXHAUSTED above kMaxFigureArtifactBytes. Blocks on the store.
absl::StatusOr<std::string> ReadArtifact(storage::Store* store, const std::string& id,
                                         const lookup::Cancelled& cancelled);

// Reads an array of floating-point numbers or, with `whole`, also one of I64 or U8.
// INVALID_ARGUMENT if it is missing, has other elements or an empty dimension, or has other axes
// (not checked if `axes` is empty).
absl::Status ReadTensor(const SafetensorsFile& file, absl::string_view name, absl::string_view axes,
                        bool whole, std::vector<size_t>* shape, std::vector<double>* values);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_ARRAYS_H_
