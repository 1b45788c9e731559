// Converts untyped values to numbers, text, booleans and enums, and checks them against their
// field.
#ifndef ABLATE_PROTO_REFLECT_SCALARS_H_
#define ABLATE_PROTO_REFLECT_SCALARS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/message.h"
#include "google/protobuf/struct.pb.h"
#include "proto/reflect/from_value.h"

namespace ablate::reflect {

// The reason for which a value is rejected, as MakeProblem takes it.
struct Refusal {
  std::string complaint;
  std::string allowed;
};

// Returns `refusal`, which allows the field's range in words if its option has one.
Refusal WithRange(const google::protobuf::FieldDescriptor* field, Refusal refusal);

// Parses "7200s" or "1.5s", with up to nine decimals; either sign, at most 315,576,000,000 s.
std::optional<google::protobuf::Duration> ToDuration(const google::protobuf::Value& value,
                                                     Refusal* refusal);

// The destination of one value: a singular field, or the next element of a repeated one.
struct Target {
  google::protobuf::Message* message;
  const google::protobuf::FieldDescriptor* field;

  template <typename T, typename Set, typename Add>
  bool Put(T value, Set set, Add add) const {
    const google::protobuf::Reflection* reflection = message->GetReflection();
    if (field->is_repeated()) {
      (reflection->*add)(message, field, std::move(value));
    } else {
      (reflection->*set)(message, field, std::move(value));
    }
    return true;
  }

  google::protobuf::Message* PutMessage() const {
    const google::protobuf::Reflection* reflection = message->GetReflection();
    return field->is_repeated() ? reflection->AddMessage(message, field)
                                : reflection->MutableMessage(message, field);
  }
};

// Each returns false after appending a problem at `path`.
bool PutScalar(const Target& target, const google::protobuf::Value& value, const std::string& path,
               std::vector<FieldProblem>* problems);
bool CheckUtf8(absl::string_view text, const std::string& path,
               std::vector<FieldProblem>* problems);
bool Refuse(const google::protobuf::Value& value, const std::string& path, const Refusal& refusal,
            std::vector<FieldProblem>* problems);

}  // namespace ablate::reflect

#endif  // ABLATE_PROTO_REFLECT_SCALARS_H_
