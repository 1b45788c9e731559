// What is asked of an analysis: defaults and ranges as analysis_options.proto has them, checks
// against the models that it is about, its fingerprint, and the engine's options.
#ifndef ABLATE_SERVER_SPEC_ANALYSIS_H_
#define ABLATE_SERVER_SPEC_ANALYSIS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ablate/v1/analysis.pb.h"
#include "ablate/v1/analysis_options.pb.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "google/protobuf/descriptor.h"
#include "server/engine/analysis.h"
#include "server/engine/config.h"
#include "server/spec/problems.h"

namespace ablate::spec {

// The most that the analyses of a worker may carry from piece to piece, one of them or several.
inline constexpr uint64_t kMaxStateBytes = 8'000'000'000;

// Sets every option that has none to its default, and says what is wrong with the others in fields
// below `path`. False if no kind is given.
bool ResolveAnalysis(v1::AnalysisKind* analysis, const std::string& path, Problems* problems);

// The same of what is read, in field inputs: at most one of tokens, documents and prompt is given,
// and tokens are set if none is. A kind is given. What the server sets is cleared.
void ResolveInputs(const v1::AnalysisKind& analysis, v1::AnalysisInputs* inputs,
                   Problems* problems);

// What the keys of metrics begin with that training records: no label of an analysis.
absl::Span<const absl::string_view> RecordedFamilies();

// What is wrong with what numbers are called as metrics; empty is the kind's name.
void CheckLabel(const std::string& label, const std::string& path, Problems* problems);

// The most tokens that are read of resolved inputs, where a model's context has so many.
uint64_t MostTokens(const v1::AnalysisInputs& inputs, int context);

// What can't be asked of these models: how many there are, options that they have no use for, a
// prompt that is too long for them, a data set that they can't read, what takes too much memory.
// Where it is of some of several subjects, it says of which. Data need not have been read into the
// configs. The cost is of all of it.
engine::AnalysisCost CheckSubjects(const engine::AnalysisOptions& options,
                                   const v1::AnalysisInputs& inputs,
                                   absl::Span<const engine::RunConfig> subjects,
                                   const std::string& path, Problems* problems);

// Of a kind that ResolveAnalysis accepted. What this program does not know, as a newer server may
// send it, is UNIMPLEMENTED; a value of an enum INVALID_ARGUMENT.
absl::StatusOr<engine::AnalysisOptions> ToEngineOptions(const v1::AnalysisKind& analysis);

// The options of the kind that is given; null if none is.
const google::protobuf::FieldDescriptor* KindField(const v1::AnalysisKind& analysis);

// The name of the kind that is given, as in analysis_options.proto; empty if none is.
std::string KindName(const v1::AnalysisKind& analysis);

// Whether it has numbers, which a label is for: capture has arrays alone.
bool HasNumbers(const v1::AnalysisKind& analysis);

// Whether it is of no model. A kind is given.
bool TakesNoSubject(const v1::AnalysisKind& analysis);

// Whether it is of several checkpoints of one run. A kind is given.
bool TakesStepsOfOneRun(const v1::AnalysisKind& analysis);

// What makes two analyses the same: 12 characters of [a-z2-7]. `asked` has kind, inputs with the
// hash of their data set, seed and subjects, all resolved.
std::string AnalysisFingerprint(const v1::Analysis& asked);
// The same of all but the subjects.
std::string AnalysisSignature(const v1::Analysis& asked);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_ANALYSIS_H_
