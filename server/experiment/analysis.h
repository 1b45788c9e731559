// Resolves requests of analyses: sets defaults and ranges from analysis_options.proto, checks them
// against the models that they are about, and computes their fingerprint.
#ifndef ABLATE_SERVER_EXPERIMENT_ANALYSIS_H_
#define ABLATE_SERVER_EXPERIMENT_ANALYSIS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ablate/v1/analysis.pb.h"
#include "ablate/v1/analysis_options.pb.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/dataset_file.h"
#include "server/config/analysis_options.h"
#include "server/config/problems.h"
#include "server/engine/analysis.h"
#include "server/engine/config.h"

namespace ablate::spec {

// Limit on the state that a worker's analyses keep between pieces, over all of them.
inline constexpr uint64_t kMaxStateBytes = 8'000'000'000;

// Sets every unset option to its default, and adds problems of the others in fields below `path`.
// Returns false if no kind is given.
bool ResolveAnalysis(v1::AnalysisKind* analysis, const std::string& path, Problems* problems);

// Does the same for the inputs, in field inputs: at most one of tokens, documents and prompt may be
// given; sets tokens if none is. A kind is given. Clears the fields that the server sets.
void ResolveInputs(const v1::AnalysisKind& analysis, v1::AnalysisInputs* inputs,
                   Problems* problems);

// Adds a problem in inputs.dataset if the kind, which is given, can't read data sets of that kind.
void CheckDatasetKind(const v1::AnalysisKind& analysis, const std::string& dataset,
                      DatasetKind kind, Problems* problems);

// Returns the first parts of the metric keys that training records, which can't be an analysis's
// label.
absl::Span<const absl::string_view> RecordedFamilies();

// Adds problems of the label that numbers have as metrics; empty means the kind's name.
void CheckLabel(const std::string& label, const std::string& path, Problems* problems);

// Returns the largest number of tokens that resolved inputs read with this context. A prompt counts
// by its characters; a tokenizer makes more tokens of few prompts only. `text_bytes` is the size of
// the texts of the data set that they name; 0: unknown.
uint64_t MostTokens(const v1::AnalysisInputs& inputs, uint64_t text_bytes, int context);

// Adds problems of the analysis for these models: their number, options that don't apply to them, a
// prompt that is too long, a data set that they can't read, too much memory. If only some of
// several subjects have one, names them. Data need not have been read into the configs; text_bytes
// as in MostTokens. Returns the cost of the whole analysis.
engine::AnalysisCost CheckSubjects(const engine::AnalysisOptions& options,
                                   const v1::AnalysisInputs& inputs, uint64_t text_bytes,
                                   absl::Span<const engine::RunConfig> subjects,
                                   const std::string& path, Problems* problems);

// Returns the name of the kind that is given, as in analysis_options.proto; empty if none is.
std::string KindName(const v1::AnalysisKind& analysis);

// Returns true if it has numbers, which a label is for; capture has arrays only.
bool HasNumbers(const v1::AnalysisKind& analysis);

// Returns true if the kind, which is given, isn't of a model.
bool TakesNoSubject(const v1::AnalysisKind& analysis);

// Returns true if the kind, which is given, is of several checkpoints of one run.
bool TakesStepsOfOneRun(const v1::AnalysisKind& analysis);

// Returns the fingerprint of an analysis: 12 characters of [a-z2-7], equal for equal analyses.
// `asked` has kind, inputs with the hash of their data set, seed and subjects, all resolved.
std::string AnalysisFingerprint(const v1::Analysis& asked);
// Returns the fingerprint of everything except the subjects.
std::string AnalysisSignature(const v1::Analysis& asked);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_ANALYSIS_H_
