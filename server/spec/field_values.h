// A spec as a flat list of paths and values, to be compared with another.
#ifndef ABLATE_SERVER_SPEC_FIELD_VALUES_H_
#define ABLATE_SERVER_SPEC_FIELD_VALUES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "google/protobuf/message.h"
#include "server/spec/writes.h"

namespace ablate::spec {

// Every scalar and every list that is set, by dotted path: model.norm.placement → pre,
// training.betas → [0.9, 0.999]. Numbers are shortest decimals.
using FieldValues = std::map<std::string, std::string>;
FieldValues ValuesOf(const google::protobuf::Message& spec);

// Those of `base` with `writes` applied and its defaults filled in; `cuda` as FillDefaults'. Empty
// if a write can't be applied.
FieldValues FilledValues(v1::BaseSpec base, const std::vector<Write>& writes, bool cuda);

// What `spec` has at each path where it differs from `base`; "" where it is not set and `base` is.
FieldValues Difference(const FieldValues& spec, const FieldValues& base);

// What a run's metrics are computed on, by the path of the field that says so: two runs of equal
// seed are scored alike exactly if these are equal. `filled` has its defaults. For documents the
// hash of the data set, how many of them are held out, and the context as far as it cuts any of
// them, the longest of which has `longest` characters (0: not known); for a text the hash, how it
// is split and tokenized, the context, and how many batches are evaluated; for generated data what
// generates it. Not the batch: it draws other rows of the same kind.
FieldValues ScoredData(const v1::BaseSpec& filled, const std::string& dataset_sha256,
                       uint64_t longest);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_FIELD_VALUES_H_
