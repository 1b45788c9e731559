// Finds the most particular place that a field comes from.
#include "server/spec/sources.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"

namespace ablate::spec {
namespace {

// Whether the field at `path`, without a subscript, is set.
bool IsSet(const google::protobuf::Message& root, absl::string_view path) {
  path = path.substr(0, path.find('['));
  const google::protobuf::Message* message = &root;
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    const auto* reflection = message->GetReflection();
    const auto* field = message->GetDescriptor()->FindFieldByName(std::string(name));
    if (field->is_repeated()) return reflection->FieldSize(*message, field) > 0;
    if (!reflection->HasField(*message, field)) return false;
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      message = &reflection->GetMessage(*message, field);
    }
  }
  return true;
}

}  // namespace

std::string WrittenBy(const std::vector<Write>& writes, const std::string& path) {
  for (const Write& write : writes) {
    if (!absl::StartsWith(path, write.path)) continue;
    const absl::string_view rest = absl::string_view(path).substr(write.path.size());
    if (rest.empty() || rest.front() == '.' || rest.front() == '[') {
      return absl::StrCat(write.source, rest);
    }
  }
  return "";
}

Source Sources::Find(const std::string& path, const v1::BaseSpec& merged) const {
  for (const std::vector<Write>* writes : points_) {
    std::string source = WrittenBy(*writes, path);
    if (!source.empty()) return {Rank::kAxis, std::move(source)};
  }
  std::string source = WrittenBy(overrides_, path);
  if (!source.empty()) return {Rank::kOverride, std::move(source)};
  return {IsSet(merged, path) ? Rank::kBase : Rank::kDefault, absl::StrCat("base.", path)};
}

void Apply(const std::vector<Write>& writes, v1::BaseSpec* base, std::vector<Problem>* problems) {
  for (const Write& write : writes) {
    reflect::SetPath(write.path, write.value, write.source, base, problems);
  }
}

}  // namespace ablate::spec
