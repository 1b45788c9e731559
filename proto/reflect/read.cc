#include "proto/reflect/read.h"

#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "text/decimal.h"

namespace ablate::reflect {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Where a value comes from: a singular field, or an element of a repeated one.
struct Place {
  const Message& message;
  const FieldDescriptor* field;
  int index;

  template <typename Get, typename GetElement>
  auto Take(Get get, GetElement get_element) const {
    const Reflection* reflection = message.GetReflection();
    return field->is_repeated() ? (reflection->*get_element)(message, field, index)
                                : (reflection->*get)(message, field);
  }
};

const Message* MessageAt(const Place& place) {
  const Reflection* reflection = place.message.GetReflection();
  return place.field->is_repeated()
             ? &reflection->GetRepeatedMessage(place.message, place.field, place.index)
             : &reflection->GetMessage(place.message, place.field);
}

}  // namespace

std::vector<const FieldDescriptor*> SetFields(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  return fields;
}

FieldValue Read(const Message& message, const FieldDescriptor* field, int index) {
  const Place place{message, field, index};
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return place.Take(&Reflection::GetBool, &Reflection::GetRepeatedBool);
    case FieldDescriptor::CPPTYPE_INT32:
      return int64_t{place.Take(&Reflection::GetInt32, &Reflection::GetRepeatedInt32)};
    case FieldDescriptor::CPPTYPE_INT64:
      return place.Take(&Reflection::GetInt64, &Reflection::GetRepeatedInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return uint64_t{place.Take(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32)};
    case FieldDescriptor::CPPTYPE_UINT64:
      return place.Take(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return double{place.Take(&Reflection::GetFloat, &Reflection::GetRepeatedFloat)};
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return place.Take(&Reflection::GetDouble, &Reflection::GetRepeatedDouble);
    case FieldDescriptor::CPPTYPE_ENUM:
      // Not GetEnum, which keeps a descriptor for good of each number that is not known.
      return EnumNumber{place.Take(&Reflection::GetEnumValue, &Reflection::GetRepeatedEnumValue),
                        field->enum_type()};
    case FieldDescriptor::CPPTYPE_STRING:
      return place.Take(&Reflection::GetString, &Reflection::GetRepeatedString);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return MessageAt(place);
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

bool FieldPath::IsSet(const Message& root) const {
  const Message* message = &root;
  for (const FieldDescriptor* one : fields_) {
    const Reflection* reflection = message->GetReflection();
    if (one->is_repeated()) return reflection->FieldSize(*message, one) > 0;
    if (!reflection->HasField(*message, one)) return false;
    if (one != field()) message = &reflection->GetMessage(*message, one);
  }
  return true;
}

FieldValue FieldPath::Read(const Message& root) const {
  const Message* message = &root;
  for (const FieldDescriptor* one : fields_) {
    if (one != field()) message = &message->GetReflection()->GetMessage(*message, one);
  }
  return reflect::Read(*message, field());
}

Message* FieldPath::MutableHolder(Message* root) const {
  Message* message = root;
  for (const FieldDescriptor* one : fields_) {
    if (one != field()) message = message->GetReflection()->MutableMessage(message, one);
  }
  return message;
}

}  // namespace ablate::reflect
