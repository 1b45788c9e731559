// Checks of single fields: ranges, and the sizes and elements of lists.
#ifndef ABLATE_SERVER_SPEC_CHECK_FIELDS_H_
#define ABLATE_SERVER_SPEC_CHECK_FIELDS_H_

#include <functional>
#include <set>
#include <string>

#include "ablate/v1/spec.pb.h"
#include "server/spec/problems.h"

namespace ablate::spec {

// Where a path below BaseSpec is to be reported.
using ReportedAs = std::function<std::string(const std::string& path)>;

// Checks what is set in `base`, each field by itself. Returns the paths with problems.
std::set<std::string> CheckFields(const v1::BaseSpec& base, const ReportedAs& reported_as,
                                  Problems* problems);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_CHECK_FIELDS_H_
