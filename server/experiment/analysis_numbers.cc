#include "server/experiment/analysis_numbers.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "proto/reflect/text.h"
#include "server/experiment/analysis.h"

namespace ablate::spec {
namespace {

// A form of numbers of which an array by_sequence/NUMBER is stored.
struct SequenceNumber {
  absl::string_view kind, form;
};

constexpr SequenceNumber kBySequence[] = {
    {"predictions", "loss"},
    {"predictions", "accuracy"},
    {"robustness", "loss"},
    {"robustness", "{level}/loss"},
    {"robustness", "{level}/increase"},
    {"probe", "accuracy/embedding"},
    {"probe", "accuracy/block.{i}"},
};

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// Returns how many characters at the text's beginning match a placeholder of this name.
size_t PlaceholderSize(absl::string_view name, absl::string_view text) {
  const bool whole_number = name.size() == 1;
  const auto ends = [whole_number](char c) { return whole_number ? !IsDigit(c) : c == '/'; };
  return static_cast<size_t>(std::find_if(text.begin(), text.end(), ends) - text.begin());
}

}  // namespace

std::vector<std::string> NumberForms(const v1::AnalysisKind& analysis) {
  std::vector<std::string> forms;
  const google::protobuf::FieldDescriptor* kind = KindField(analysis);
  if (kind == nullptr) return forms;
  const google::protobuf::MessageOptions& options = kind->message_type()->options();
  for (int i = 0; i < options.ExtensionSize(v1::number); ++i) {
    const v1::NumberInfo& info = options.GetExtension(v1::number, i);
    forms.insert(forms.end(), info.name().begin(), info.name().end());
  }
  return forms;
}

std::vector<std::string> HeadlineForms(const v1::AnalysisKind& analysis) {
  const google::protobuf::FieldDescriptor* kind = KindField(analysis);
  if (kind == nullptr) return {};
  const auto& forms = kind->message_type()->options().GetRepeatedExtension(v1::headline);
  return {forms.begin(), forms.end()};
}

bool HasNumberForm(absl::string_view number, absl::string_view form) {
  while (!form.empty()) {
    if (form[0] != '{') {
      if (number.empty() || number[0] != form[0]) return false;
      form.remove_prefix(1);
      number.remove_prefix(1);
      continue;
    }
    const size_t end = form.find('}');
    const size_t size = PlaceholderSize(form.substr(1, end - 1), number);
    if (size == 0) return false;
    form.remove_prefix(end + 1);
    number.remove_prefix(size);
  }
  return number.empty();
}

bool IsStoredBySequence(const v1::AnalysisKind& analysis, absl::string_view number) {
  const std::string kind = KindName(analysis);
  return std::any_of(std::begin(kBySequence), std::end(kBySequence),
                     [&](const SequenceNumber& one) {
                       return kind == one.kind && HasNumberForm(number, one.form);
                     });
}

std::optional<std::pair<std::string, std::string>> NumberComplaint(const v1::AnalysisKind& analysis,
                                                                   const std::string& label,
                                                                   const std::string& number) {
  const std::vector<std::string> forms = NumberForms(analysis);
  const bool known = std::any_of(forms.begin(), forms.end(), [&number](const std::string& form) {
    return HasNumberForm(number, form);
  });
  if (known) return std::nullopt;
  const std::string nearest = reflect::Nearest(number, forms);
  return std::make_pair(
      absl::StrCat(
          reflect::Quoted(number.empty() ? label : absl::StrCat(label, "/", number)),
          " isn't a number of ", KindName(analysis),
          nearest.empty() ? "" : absl::StrCat(" (did you mean ", label, "/", nearest, "?)")),
      absl::StrCat(label, "/ followed by ", reflect::AnyOf(forms)));
}

}  // namespace ablate::spec
