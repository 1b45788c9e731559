// What the numbers of each kind of analysis are called: forms of names, which stand as (number) in
// analysis_options.proto.
#ifndef ABLATE_SERVER_SPEC_ANALYSIS_NUMBERS_H_
#define ABLATE_SERVER_SPEC_ANALYSIS_NUMBERS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/analysis_options.pb.h"
#include "absl/strings/string_view.h"

namespace ablate::spec {

// Of the kind that is given; none where it has arrays alone.
std::vector<std::string> NumberForms(const v1::AnalysisKind& analysis);

// Whether a number's name has the form, in which {i} stands for a whole number and {norm} for a
// name without a slash.
bool HasNumberForm(absl::string_view number, absl::string_view form);

// What is wrong with LABEL/`number`, where the label is of such analyses, and what is allowed:
// nothing if some of their numbers, of some model, is called so. That a model has the block or norm
// in it is not looked at.
std::optional<std::pair<std::string, std::string>> NumberComplaint(const v1::AnalysisKind& analysis,
                                                                   const std::string& label,
                                                                   const std::string& number);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_ANALYSIS_NUMBERS_H_
