// Numbers and durations from plain values, checked against the type they are for.
#ifndef ABLATE_PROTO_REFLECT_NUMBERS_H_
#define ABLATE_PROTO_REFLECT_NUMBERS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::reflect {

// Why a value can't be used, as MakeProblem wants it.
struct Refusal {
  std::string complaint;
  std::string allowed;
};

// Each returns the value, or nothing and the reason.
std::optional<int64_t> ToInt(const google::protobuf::Value& value, int64_t low, int64_t high,
                             Refusal* refusal);
std::optional<int64_t> ToInt64(const google::protobuf::Value& value, Refusal* refusal);
std::optional<uint64_t> ToUint64(const google::protobuf::Value& value, Refusal* refusal);
// At most `largest` in magnitude, and finite.
std::optional<double> ToDouble(const google::protobuf::Value& value, double largest,
                               Refusal* refusal);
// "7200s" or "1.5s", up to nine decimals; either sign, at most 315,576,000,000 s.
std::optional<google::protobuf::Duration> ToDuration(const google::protobuf::Value& value,
                                                     Refusal* refusal);

}  // namespace ablate::reflect

#endif  // ABLATE_PROTO_REFLECT_NUMBERS_H_
