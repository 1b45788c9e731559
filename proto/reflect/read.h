// Reads fields of messages as untyped values. Only this file reads messages by their descriptors.
#ifndef ABLATE_PROTO_REFLECT_READ_H_
#define ABLATE_PROTO_REFLECT_READ_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace ablate::reflect {

// A value of an enum, possibly unknown to this program.
struct EnumNumber {
  int number = 0;
  const google::protobuf::EnumDescriptor* type = nullptr;
};

// One value. Numbers are widened; a message points into the message that was read.
using FieldValue = std::variant<bool, int64_t, uint64_t, double, EnumNumber, std::string,
                                const google::protobuf::Message*>;

// Returns the set fields and non-empty lists of `message`, in the order of their numbers.
std::vector<const google::protobuf::FieldDescriptor*> SetFields(
    const google::protobuf::Message& message);

// Returns the value of a singular field, which is its type's default if unset, or element `index`
// of a repeated field or map; the element must exist.
FieldValue Read(const google::protobuf::Message& message,
                const google::protobuf::FieldDescriptor* field, int index = 0);

// Returns the value as people write it: true, 16, 0.001, pre; a text unchanged; an unknown enum
// value as its number; a message as text format on one line.
std::string TextOf(const FieldValue& value);

// Returns the path of a field in the message at `path`: model, model.norm.
std::string Below(absl::string_view path, absl::string_view field);

// The path from a message to a field below it, through singular messages.
class FieldPath {
 public:
  // `path` is dotted and must name a field below `type`.
  FieldPath(const google::protobuf::Descriptor* type, absl::string_view path);
  // At least one field; each belongs to the message in the previous one.
  explicit FieldPath(std::vector<const google::protobuf::FieldDescriptor*> fields)
      : fields_(std::move(fields)) {}

  const google::protobuf::FieldDescriptor* field() const { return fields_.back(); }
  // Returns true if the field is set in `root`, or a list isn't empty.
  bool IsSet(const google::protobuf::Message& root) const;
  // Returns the value of a singular field, as reflect::Read.
  FieldValue Read(const google::protobuf::Message& root) const {
    return reflect::Read(Holder(root), field());
  }
  // Returns the message that has the field, creating it if absent.
  google::protobuf::Message* MutableHolder(google::protobuf::Message* root) const;

 private:
  // Returns an empty message if it is absent.
  const google::protobuf::Message& Holder(const google::protobuf::Message& root) const;

  std::vector<const google::protobuf::FieldDescriptor*> fields_;
};

}  // namespace ablate::reflect

#endif  // ABLATE_PROTO_REFLECT_READ_H_
