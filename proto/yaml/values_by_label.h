// Replaces the values that an axis has per label of another axis, `by: optimizer, values: {adamw:
// [0.001], sgd: [0.1]}`, by a list of all of them and exclusions of the combinations not listed.
#ifndef ABLATE_PROTO_YAML_VALUES_BY_LABEL_H_
#define ABLATE_PROTO_YAML_VALUES_BY_LABEL_H_

#include <vector>

#include "google/protobuf/struct.pb.h"
#include "proto/reflect/from_value.h"

namespace ablate::yaml {

// Replaces them in each axis that has `by`; `root` is the tree of an experiment with a list of
// axes. Values are in the order of the other axis's labels; that axis may have `by` itself if it
// comes before. A mapping's member that isn't a list counts as reported. Appends problems; the axis
// then keeps the values that could be read.
void ExpandValuesByLabel(google::protobuf::Value* root,
                         std::vector<reflect::FieldProblem>* problems);

}  // namespace ablate::yaml

#endif  // ABLATE_PROTO_YAML_VALUES_BY_LABEL_H_
