#include "server/config/analysis_options.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "server/config/field_reader.h"

namespace ablate::spec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Returns the alternative whose row in the engine's table has this name, with default values.
template <size_t index = 0>
std::optional<engine::AnalysisOptions> OptionsNamed(const std::string& name) {
  if constexpr (index < std::variant_size_v<engine::AnalysisOptions>) {
    if (engine::AnalysisKinds()[index].name == name) {
      return engine::AnalysisOptions(std::in_place_index<index>);
    }
    return OptionsNamed<index + 1>(name);
  } else {
    return std::nullopt;
  }
}

}  // namespace

const FieldDescriptor* KindField(const v1::AnalysisKind& analysis) {
  const auto* kinds = v1::AnalysisKind::descriptor()->oneof_decl(0);
  return analysis.GetReflection()->GetOneofFieldDescriptor(analysis, kinds);
}

absl::StatusOr<engine::AnalysisOptions> ToEngineOptions(const v1::AnalysisKind& analysis) {
  const FieldDescriptor* kind = KindField(analysis);
  auto options = kind == nullptr ? std::nullopt : OptionsNamed(kind->name());
  if (!options.has_value()) {
    return absl::UnimplementedError("this program does not know the kind of analysis");
  }
  const Message& message = analysis.GetReflection()->GetMessage(analysis, kind);
  if (!message.GetReflection()->GetUnknownFields(message).empty()) {
    return absl::UnimplementedError(
        absl::StrCat("this program does not know all options of ", kind->name()));
  }
  RETURN_IF_ERROR(std::visit([&](auto& of) { return ReadFields(message, "", &of); }, *options));
  return *std::move(options);
}

}  // namespace ablate::spec
