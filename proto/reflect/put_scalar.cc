// Puts checked scalars through reflection.
#include "proto/reflect/put_scalar.h"

#include <cfloat>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "text/utf8.h"

namespace ablate::reflect {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;
using google::protobuf::Value;
using Problems = std::vector<FieldProblem>;

bool PutEnum(const Target& target, const Value& value, const std::string& path,
             Problems* problems) {
  const google::protobuf::EnumDescriptor* type = target.field->enum_type();
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) {
    if (type->value(i)->number() == 0) continue;  // unspecified
    names.push_back(type->value(i)->name());
    if (value.has_string_value() && value.string_value() == names.back()) {
      return target.Put(type->value(i)->number(), &Reflection::SetEnumValue,
                        &Reflection::AddEnumValue);
    }
  }
  const std::string guess = DidYouMean(value.string_value(), names, " (", ")");
  return Refuse(value, path,
                {absl::StrCat(Quoted(value), " is unknown", guess), absl::StrJoin(names, ", ")},
                problems);
}

bool PutString(const Target& target, const Value& value, const std::string& path,
               Problems* problems) {
  if (!value.has_string_value()) {
    return Refuse(value, path,
                  {absl::StrCat(ShortText(value), " is not text"),
                   "text, in quotes if it looks like something else"},
                  problems);
  }
  std::string text = value.string_value();
  if (target.field->type() == FieldDescriptor::TYPE_BYTES) {
    if (!absl::Base64Unescape(value.string_value(), &text)) {
      return Refuse(value, path, {absl::StrCat(Quoted(value), " is not base64"), "bytes in base64"},
                    problems);
    }
  } else if (!CheckUtf8(text, path, problems)) {
    return false;
  }
  return target.Put(text, &Reflection::SetString, &Reflection::AddString);
}

bool PutInteger(const Target& target, const Value& value, Refusal* refusal) {
  switch (target.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      if (const auto number = ToInt(value, INT32_MIN, INT32_MAX, refusal)) {
        return target.Put(static_cast<int32_t>(*number), &Reflection::SetInt32,
                          &Reflection::AddInt32);
      }
      return false;
    case FieldDescriptor::CPPTYPE_UINT32:
      if (const auto number = ToInt(value, 0, UINT32_MAX, refusal)) {
        return target.Put(static_cast<uint32_t>(*number), &Reflection::SetUInt32,
                          &Reflection::AddUInt32);
      }
      return false;
    case FieldDescriptor::CPPTYPE_INT64:
      if (const auto number = ToInt64(value, refusal)) {
        return target.Put(*number, &Reflection::SetInt64, &Reflection::AddInt64);
      }
      return false;
    default:
      if (const auto number = ToUint64(value, refusal)) {
        return target.Put(*number, &Reflection::SetUInt64, &Reflection::AddUInt64);
      }
      return false;
  }
}

bool PutNumber(const Target& target, const Value& value, const std::string& path,
               Problems* problems) {
  Refusal refusal;
  bool ok = false;
  if (target.field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
    const auto number = ToDouble(value, DBL_MAX, &refusal);
    ok = number && target.Put(*number, &Reflection::SetDouble, &Reflection::AddDouble);
  } else if (target.field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
    const auto number = ToDouble(value, FLT_MAX, &refusal);
    ok = number &&
         target.Put(static_cast<float>(*number), &Reflection::SetFloat, &Reflection::AddFloat);
  } else {
    ok = PutInteger(target, value, &refusal);
  }
  return ok || Refuse(value, path, refusal, problems);
}

bool PutBool(const Target& target, const Value& value, const std::string& path,
             Problems* problems) {
  if (value.has_bool_value()) {
    return target.Put(value.bool_value(), &Reflection::SetBool, &Reflection::AddBool);
  }
  return Refuse(value, path, {absl::StrCat(Quoted(value), " is not a boolean"), "true or false"},
                problems);
}

}  // namespace

bool Refuse(const Value& value, const std::string& path, const Refusal& refusal,
            Problems* problems) {
  problems->push_back(MakeProblem(path, ShortText(value), refusal.complaint, refusal.allowed));
  return false;
}

bool CheckUtf8(absl::string_view text, const std::string& path, Problems* problems) {
  if (text::IsUtf8(text)) return true;
  problems->push_back(MakeProblem(path, ShortText(text),
                                  absl::StrCat(Quoted(text), " is not UTF-8"), "text in UTF-8"));
  return false;
}

bool PutScalar(const Target& target, const Value& value, const std::string& path,
               Problems* problems) {
  switch (target.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_ENUM:
      return PutEnum(target, value, path, problems);
    case FieldDescriptor::CPPTYPE_STRING:
      return PutString(target, value, path, problems);
    case FieldDescriptor::CPPTYPE_BOOL:
      return PutBool(target, value, path, problems);
    default:
      return PutNumber(target, value, path, problems);
  }
}

}  // namespace ablate::reflect
