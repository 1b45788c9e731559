// Walks a whole message for what no schema check catches.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/unknown_field_set.h"
#include "server/spec/validate.h"
#include "text/utf8.h"

namespace ablate::spec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// No list of messages and no map in a spec may have more entries.
constexpr int kMostWalked = 1000;

class Walker {
 public:
  explicit Walker(Problems* problems) : problems_(problems) {}

  void Walk(const Message& message, const std::string& path) {
    const auto& unknown = message.GetReflection()->GetUnknownFields(message);
    for (int i = 0; i < unknown.field_count() && !problems_->full(); ++i) {
      problems_->Add(path, absl::StrCat(unknown.field(i).number()),
                     absl::StrCat("field number ", unknown.field(i).number(), " is unknown"),
                     "the fields that this server knows");
    }
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      Visit(message, field, path.empty() ? field->name() : absl::StrCat(path, ".", field->name()));
    }
  }

 private:
  void Visit(const Message& message, const FieldDescriptor* field, const std::string& path) {
    const auto* reflection = message.GetReflection();
    if (!field->is_repeated()) return VisitOne(message, field, -1, path);
    const int size = reflection->FieldSize(message, field);
    if (size > kMostWalked)
      return;  // that there are so many is the problem, told by who reads them
    for (int i = 0; i < size && !problems_->full(); ++i) {
      VisitOne(message, field, i, field->is_map() ? path : absl::StrCat(path, "[", i, "]"));
    }
  }

  // Element `index` of a repeated field, or the singular field if it is −1.
  void VisitOne(const Message& message, const FieldDescriptor* field, int index,
                const std::string& path) {
    const auto* reflection = message.GetReflection();
    std::string scratch;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return VisitMessage(index < 0 ? reflection->GetMessage(message, field)
                                      : reflection->GetRepeatedMessage(message, field, index),
                            field, path);
      case FieldDescriptor::CPPTYPE_ENUM:
        return CheckEnum(index < 0 ? reflection->GetEnumValue(message, field)
                                   : reflection->GetRepeatedEnumValue(message, field, index),
                         field->enum_type(), path);
      case FieldDescriptor::CPPTYPE_STRING:
        return CheckText(
            index < 0 ? reflection->GetStringReference(message, field, &scratch)
                      : reflection->GetRepeatedStringReference(message, field, index, &scratch),
            path);
      default:
        return;
    }
  }

  void VisitMessage(const Message& message, const FieldDescriptor* field, const std::string& path) {
    if (message.GetDescriptor() == google::protobuf::Value::descriptor()) {
      std::vector<Problem> found;
      reflect::CheckValue(static_cast<const google::protobuf::Value&>(message), path, &found);
      return problems_->Add(std::move(found));
    }
    if (!field->is_map()) return Walk(message, path);
    const auto* reflection = message.GetReflection();
    std::string scratch;
    const std::string& key =
        reflection->GetStringReference(message, field->message_type()->map_key(), &scratch);
    const std::string below = absl::StrCat(path, reflect::Subscript(key));
    CheckText(key, below);
    VisitOne(message, field->message_type()->map_value(), -1, below);
  }

  void CheckText(const std::string& text, const std::string& path) {
    if (text::IsUtf8(text)) return;
    problems_->Add(path, reflect::ShortText(text),
                   absl::StrCat(reflect::Quoted(text), " is not UTF-8"), "text in UTF-8");
  }

  void CheckEnum(int number, const google::protobuf::EnumDescriptor* type,
                 const std::string& path) {
    if (number != 0 && type->FindValueByNumber(number) != nullptr) return;
    std::vector<std::string> names;
    for (int i = 1; i < type->value_count(); ++i) names.push_back(type->value(i)->name());
    problems_->Add(path, absl::StrCat(number), absl::StrCat(number, " is unknown"),
                   absl::StrJoin(names, ", "));
  }

  Problems* problems_;
};

}  // namespace

void CheckWellFormed(const v1::ExperimentSpec& spec, Problems* problems) {
  Walker(problems).Walk(spec, "");
}

}  // namespace ablate::spec
