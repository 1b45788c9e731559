// The kinds of analyses on the command line: a line about each, and their options as the API's
// descriptors have them.
#ifndef ABLATE_CLIENT_ANALYSIS_KINDS_H_
#define ABLATE_CLIENT_ANALYSIS_KINDS_H_

#include <string>
#include <vector>

#include "ablate/v1/analysis_options.pb.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ablate::client {

enum class Subjects {
  kEach,   // one analysis of each model
  kAll,    // one of all models
  kSteps,  // one of each run, of several of its checkpoints
  kNone,   // of no model
};

struct AnalysisKindRow {
  const char* name;  // of the member of AnalysisKind
  const char* help;  // what it computes, in a line
  Subjects subjects;
};

// In the order of AnalysisKind's members.
absl::Span<const AnalysisKindRow> AnalysisKindTable();

// The row of a kind. INVALID_ARGUMENT lists the kinds there are.
absl::StatusOr<const AnalysisKindRow*> FindAnalysisKind(absl::string_view name);

// The kind with the options that --set gives it. INVALID_ARGUMENT says all that is wrong with them.
absl::StatusOr<v1::AnalysisKind> MakeAnalysisKind(const AnalysisKindRow& row,
                                                  const std::vector<std::string>& set);

// The name of the kind that is set; empty if none is that this program knows.
std::string AnalysisKindName(const v1::AnalysisKind& kind);

// For help: a line for each kind, and of one its options with type, range, default and meaning, and
// its numbers.
std::string AnalysisKindsText();
std::string AnalysisOptionsText(const AnalysisKindRow& row);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_ANALYSIS_KINDS_H_
