// A spec as a flat list of paths and values, to be compared with another.
#ifndef ABLATE_SERVER_SPEC_FIELD_VALUES_H_
#define ABLATE_SERVER_SPEC_FIELD_VALUES_H_

#include <map>
#include <string>

#include "ablate/v1/spec.pb.h"

namespace ablate::spec {

// Every scalar and every list that is set, by dotted path: model.norm.placement → pre,
// training.betas → [0.9, 0.999]. Numbers are shortest decimals.
using FieldValues = std::map<std::string, std::string>;
FieldValues ValuesOf(const v1::BaseSpec& base);

// What `spec` has at each path where it differs from `base`; "" where it is not set and `base` is.
FieldValues Difference(const FieldValues& spec, const FieldValues& base);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_FIELD_VALUES_H_
