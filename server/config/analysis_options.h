// Converts an analysis to the engine's options.
#ifndef ABLATE_SERVER_CONFIG_ANALYSIS_OPTIONS_H_
#define ABLATE_SERVER_CONFIG_ANALYSIS_OPTIONS_H_

#include "ablate/v1/analysis_options.pb.h"
#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"
#include "server/engine/analysis.h"

namespace ablate::spec {

// Returns the field of the kind that is given; null if none is.
const google::protobuf::FieldDescriptor* KindField(const v1::AnalysisKind& analysis);

// Converts a kind that ResolveAnalysis (experiment/analysis.h) accepted. UNIMPLEMENTED for fields
// unknown to this program, which a newer server may send; INVALID_ARGUMENT for an unknown enum
// value.
absl::StatusOr<engine::AnalysisOptions> ToEngineOptions(const v1::AnalysisKind& analysis);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_CONFIG_ANALYSIS_OPTIONS_H_
