// The fields of messages as plain values: the one place that reads a message by its descriptor.
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

// A value of an enum, which need not be one that this program knows.
struct EnumNumber {
  int number = 0;
  const google::protobuf::EnumDescriptor* type = nullptr;
};

// One value: numbers are widened, a message is the one inside the message that was read.
using FieldValue = std::variant<bool, int64_t, uint64_t, double, EnumNumber, std::string,
                                const google::protobuf::Message*>;

// The fields of `message` that are set, and lists that are not empty, in the order of their
// numbers.
std::vector<const google::protobuf::FieldDescriptor*> SetFields(
    const google::protobuf::Message& message);

// What a singular field has, its type's default if it is not set; of a repeated one or a map
// element `index`, which there must be.
FieldValue Read(const google::protobuf::Message& message,
                const google::protobuf::FieldDescriptor* field, int index = 0);

// As people write it: true, 16, 0.001, pre; a text as it is; an enum's value that is not known as
// its number; a message as text format on one line.
std::string TextOf(const FieldValue& value);

// The path of a field in the message at `path`: model, model.norm.
std::string Below(absl::string_view path, absl::string_view field);

// The way from a message to a field below it, through messages that are no list.
class FieldPath {
 public:
  // `path` is dotted and must name a field below `type`.
  FieldPath(const google::protobuf::Descriptor* type, absl::string_view path);
  // At least one, each of the message that the one before holds.
  explicit FieldPath(std::vector<const google::protobuf::FieldDescriptor*> fields)
      : fields_(std::move(fields)) {}

  const google::protobuf::FieldDescriptor* field() const { return fields_.back(); }
  // Whether the field is set in `root`; of a list whether it is not empty.
  bool IsSet(const google::protobuf::Message& root) const;
  // Of a singular field, as reflect::Read.
  FieldValue Read(const google::protobuf::Message& root) const {
    return reflect::Read(Holder(root), field());
  }
  // The message that has the field, made if it is absent.
  google::protobuf::Message* MutableHolder(google::protobuf::Message* root) const;

 private:
  // Empty if it is absent.
  const google::protobuf::Message& Holder(const google::protobuf::Message& root) const;

  std::vector<const google::protobuf::FieldDescriptor*> fields_;
};

}  // namespace ablate::reflect

#endif  // ABLATE_PROTO_REFLECT_READ_H_
