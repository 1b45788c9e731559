// Names of the numbers of each kind of analysis: the forms that analysis_options.proto declares
// with (number).
#ifndef ABLATE_SERVER_EXPERIMENT_ANALYSIS_NUMBERS_H_
#define ABLATE_SERVER_EXPERIMENT_ANALYSIS_NUMBERS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/analysis_options.pb.h"
#include "absl/strings/string_view.h"

namespace ablate::spec {

// Returns the forms of the kind that is given; none if it has arrays only.
std::vector<std::string> NumberForms(const v1::AnalysisKind& analysis);

// Returns the forms or names of those that tables of reports show, in their order; none if no few
// numbers speak for the others.
std::vector<std::string> HeadlineForms(const v1::AnalysisKind& analysis);

// Returns true if a number's name has the form, in which {i} stands for a whole number and {norm}
// for a name without a slash.
bool HasNumberForm(absl::string_view number, absl::string_view form);

// Returns true if analyses of the kind store the number also by sequence, as the array
// by_sequence/`number`, so that runs can be compared over sequences.
bool IsStoredBySequence(const v1::AnalysisKind& analysis, absl::string_view number);

// Returns a problem of the key LABEL/`number` and what is allowed, if the label is of such
// analyses; nothing if one of their numbers, for some model, has this name. Doesn't check that the
// model has the block or norm.
std::optional<std::pair<std::string, std::string>> NumberComplaint(const v1::AnalysisKind& analysis,
                                                                   const std::string& label,
                                                                   const std::string& number);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_ANALYSIS_NUMBERS_H_
