// Sets one field at a dotted path, or changes nothing.
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "proto/reflect/from_value.h"
#include "proto/reflect/set_field.h"

namespace ablate::reflect {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Value;
using Problems = std::vector<FieldProblem>;

// The fields along `path` below `type`; empty if there is a problem.
std::vector<const FieldDescriptor*> FieldsAlong(absl::string_view path, const Descriptor* type,
                                                const Value& value, const std::string& reported_as,
                                                Problems* problems) {
  std::vector<const FieldDescriptor*> fields;
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    if (type == nullptr) {
      problems->push_back(
          MakeProblem(reported_as, ShortText(value),
                      absl::StrCat(fields.back()->name(), " has no field ", Quoted(name)),
                      absl::StrCat("a path that ends at ", fields.back()->name())));
      return {};
    }
    const FieldDescriptor* field = type->FindFieldByName(std::string(name));
    if (field == nullptr) {
      problems->push_back(UnknownField(type, name, absl::StrCat(Quoted(name), " is no field"),
                                       reported_as, ShortText(value)));
      return {};
    }
    fields.push_back(field);
    const bool descend = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
                         !field->is_repeated() &&
                         field->message_type()->file()->package() != "google.protobuf";
    type = descend ? field->message_type() : nullptr;
  }
  return fields;
}

// The message that holds the last of `fields`; null if it is absent and not to be made.
Message* Holder(const std::vector<const FieldDescriptor*>& fields, bool make, Message* message) {
  for (size_t i = 0; i + 1 < fields.size(); ++i) {
    const auto* reflection = message->GetReflection();
    if (!make && !reflection->HasField(*message, fields[i])) return nullptr;
    message = reflection->MutableMessage(message, fields[i]);
  }
  return message;
}

}  // namespace

void SetPath(absl::string_view path, const Value& value, const std::string& reported_as,
             Message* message, Problems* problems) {
  const auto fields = FieldsAlong(path, message->GetDescriptor(), value, reported_as, problems);
  if (fields.empty()) return;
  const FieldDescriptor* last = fields.back();
  if (value.has_null_value()) {
    Message* holder = Holder(fields, false, message);
    if (holder != nullptr) holder->GetReflection()->ClearField(holder, last);
    return;
  }
  // On a message of its own first, so that a problem leaves everything as it was.
  const Descriptor* type = last->containing_type();
  const std::unique_ptr<Message> scratch(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  const size_t before = problems->size();
  SetField(last, value, reported_as, static_cast<int>(fields.size()), scratch.get(), problems);
  if (problems->size() != before) return;
  Message* holder = Holder(fields, true, message);
  holder->GetReflection()->ClearField(holder, last);
  holder->GetReflection()->SwapFields(scratch.get(), holder, {last});
}

}  // namespace ablate::reflect
