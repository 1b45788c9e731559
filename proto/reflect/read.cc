#include "proto/reflect/read.h"

#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/decimal.h"

namespace ablate::reflect {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

}  // namespace

std::vector<const FieldDescriptor*> SetFields(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  return fields;
}

FieldValue Read(const Message& message, const FieldDescriptor* field, int index) {
  const Reflection* reflection = message.GetReflection();
  const auto take = [&](auto get, auto get_element) {
    return field->is_repeated() ? (reflection->*get_element)(message, field, index)
                                : (reflection->*get)(message, field);
  };
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return take(&Reflection::GetBool, &Reflection::GetRepeatedBool);
    case FieldDescriptor::CPPTYPE_INT32:
      return int64_t{take(&Reflection::GetInt32, &Reflection::GetRepeatedInt32)};
    case FieldDescriptor::CPPTYPE_INT64:
      return take(&Reflection::GetInt64, &Reflection::GetRepeatedInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return uint64_t{take(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32)};
    case FieldDescriptor::CPPTYPE_UINT64:
      return take(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return double{take(&Reflection::GetFloat, &Reflection::GetRepeatedFloat)};
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return take(&Reflection::GetDouble, &Reflection::GetRepeatedDouble);
    case FieldDescriptor::CPPTYPE_ENUM:
      // Not GetEnum, which permanently keeps a descriptor for each unknown number.
      return EnumNumber{take(&Reflection::GetEnumValue, &Reflection::GetRepeatedEnumValue),
                        field->enum_type()};
    case FieldDescriptor::CPPTYPE_STRING:
      return take(&Reflection::GetString, &Reflection::GetRepeatedString);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return field->is_repeated() ? &reflection->GetRepeatedMessage(message, field, index)
                              : &reflection->GetMessage(message, field);
}

std::string TextOf(const FieldValue& value) {
  return std::visit(
      [](const auto& one) -> std::string {
        using Type = std::decay_t<decltype(one)>;
        if constexpr (std::is_same_v<Type, bool>) {
          return one ? "true" : "false";
        } else if constexpr (std::is_same_v<Type, double>) {
          return text::ShortestDecimal(one);
        } else if constexpr (std::is_same_v<Type, EnumNumber>) {
          const auto* known = one.type->FindValueByNumber(one.number);
          return known == nullptr ? absl::StrCat(one.number) : known->name();
        } else if constexpr (std::is_same_v<Type, const Message*>) {
          return one->ShortDebugString();
        } else {
          return absl::StrCat(one);
        }
      },
      value);
}

std::string Below(absl::string_view path, absl::string_view field) {
  return path.empty() ? std::string(field) : absl::StrCat(path, ".", field);
}

FieldPath::FieldPath(const google::protobuf::Descriptor* type, absl::string_view path) {
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    fields_.push_back(type->FindFieldByName(std::string(name)));
    type = field()->message_type();
  }
}

const Message& FieldPath::Holder(const Message& root) const {
  const Message* message = &root;
  for (size_t i = 0; i + 1 < fields_.size(); ++i) {
    message = &message->GetReflection()->GetMessage(*message, fields_[i]);
  }
  return *message;
}

Message* FieldPath::MutableHolder(Message* root) const {
  for (size_t i = 0; i + 1 < fields_.size(); ++i) {
    root = root->GetReflection()->MutableMessage(root, fields_[i]);
  }
  return root;
}

bool FieldPath::IsSet(const Message& root) const {
  const Message& holder = Holder(root);
  const Reflection* reflection = holder.GetReflection();
  return field()->is_repeated() ? reflection->FieldSize(holder, field()) > 0
                                : reflection->HasField(holder, field());
}

}  // namespace ablate::reflect
