// What can be wrong with axes before a server sees them: paths that do not exist, values that do
// not fit.
#ifndef ABLATE_CLIENT_AXIS_CHECK_H_
#define ABLATE_CLIENT_AXIS_CHECK_H_

#include <vector>

#include "ablate/v1/spec.pb.h"
#include "proto/reflect/from_value.h"

namespace ablate::client {

// Tries every setting and value of every axis on an empty base. The server checks them again, and
// what they mean together.
std::vector<reflect::FieldProblem> CheckAxes(const v1::ExperimentSpec& spec);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_AXIS_CHECK_H_
