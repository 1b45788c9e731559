// Lists of the fields of a spec in expected messages, so that a new field changes no expectation.
#ifndef ABLATE_TESTS_REFLECT_FIELD_LISTS_H_
#define ABLATE_TESTS_REFLECT_FIELD_LISTS_H_

#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/descriptor.h"

namespace ablate {

// Returns the text with each {NAME} of a message of spec.proto or of AnalysisKind replaced by
// "a, b or c", the names of its fields in their order; {NAME, kind} by those of its oneof; and
// {NAME, all} by "a, b, c".
inline std::string WithFieldLists(std::string text) {
  const auto any_of = [](std::vector<std::string> names) {
    if (names.size() < 2) return absl::StrJoin(names, "");
    const std::string last = names.back();
    names.pop_back();
    return absl::StrCat(absl::StrJoin(names, ", "), " or ", last);
  };
  const auto replace = [&](const google::protobuf::Descriptor* message) {
    std::vector<std::string> fields, kinds;
    for (int i = 0; i < message->field_count(); ++i) {
      const google::protobuf::FieldDescriptor* field = message->field(i);
      fields.push_back(field->name());
      if (field->real_containing_oneof() != nullptr) kinds.push_back(field->name());
    }
    const std::string& name = message->name();
    absl::StrReplaceAll({{absl::StrCat("{", name, "}"), any_of(fields)},
                         {absl::StrCat("{", name, ", kind}"), any_of(kinds)},
                         {absl::StrCat("{", name, ", all}"), absl::StrJoin(fields, ", ")}},
                        &text);
  };
  const google::protobuf::FileDescriptor* spec = v1::ExperimentSpec::descriptor()->file();
  for (int i = 0; i < spec->message_type_count(); ++i) replace(spec->message_type(i));
  replace(v1::AnalysisKind::descriptor());
  return text;
}

}  // namespace ablate

#endif  // ABLATE_TESTS_REFLECT_FIELD_LISTS_H_
