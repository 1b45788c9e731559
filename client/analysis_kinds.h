// Describes the kinds of analyses for the command line: a line for each, and options from the
// descriptors of the API.
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

// Returns the row of a kind. INVALID_ARGUMENT lists all kinds.
absl::StatusOr<const AnalysisKindRow*> FindAnalysisKind(absl::string_view name);

// Returns the kind with the options of --set. INVALID_ARGUMENT lists all problems with them.
absl::StatusOr<v1::AnalysisKind> MakeAnalysisKind(const AnalysisKindRow& row,
                                                  const std::vector<std::string>& set);

// Returns the name of the kind that is set, or "" if this program has no such kind.
std::string AnalysisKindName(const v1::AnalysisKind& kind);

// Return help: a line for each kind; for one kind its options, with type, range, default and
// meaning, and its numbers.
std::string AnalysisKindsText();
std::string AnalysisOptionsText(const AnalysisKindRow& row);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_ANALYSIS_KINDS_H_
