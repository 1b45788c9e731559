#include "client/analysis_kinds.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "client/output/format.h"
#include "client/submit/experiment_file.h"
#include "google/protobuf/descriptor.h"
#include "proto/reflect/from_value.h"
#include "proto/reflect/option.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

using google::protobuf::FieldDescriptor;

constexpr AnalysisKindRow kKinds[] = {
    {"spectrum", "Number of directions that a representation uses", Subjects::kEach},
    {"cka", "Similarity of representations, within a model or between models", Subjects::kAll},
    {"activations", "Scale and shape of the values at hook points (sites)", Subjects::kEach},
    {"weights", "Scale and shape of each parameter tensor", Subjects::kEach},
    {"capture", "Values at hook points (sites), as arrays", Subjects::kEach},
    {"loss_landscape", "Loss around a solution, along random directions", Subjects::kEach},
    {"hessian", "Curvature of the loss at a solution", Subjects::kEach},
    {"gradient_flow", "Size of the gradient over depth", Subjects::kEach},
    {"gradient_alignment", "Agreement of a run's learning signal with backpropagation",
     Subjects::kEach},
    {"norm_jacobian", "Effect of the parts of a norm's Jacobian on its gradient", Subjects::kEach},
    {"norm_statistics", "Statistics of the input and output of each norm", Subjects::kEach},
    {"norm_response", "Response of norms to one random vector, without a model", Subjects::kNone},
    {"attention", "Attention patterns of heads", Subjects::kEach},
    {"remove", "Loss of the model without one of its parts", Subjects::kEach},
    {"trajectory", "Loss on the plane of a run's checkpoints, and their path", Subjects::kSteps},
    {"logit_lens", "Prediction at each depth of the model", Subjects::kEach},
    {"predictions", "Calibration of predictions, and their loss over a sequence", Subjects::kEach},
    {"induction", "Heads that continue a repeated sequence", Subjects::kEach},
    {"patch", "Activations that carry the difference between two prompts", Subjects::kEach},
    {"robustness", "Growth of the loss when words or embeddings are perturbed", Subjects::kEach},
    {"probe", "Labels of words that can be read linearly from each depth", Subjects::kEach}};

const FieldDescriptor* MemberOf(const AnalysisKindRow& row) {
  return v1::AnalysisKind::descriptor()->FindFieldByName(row.name);
}

std::string Padded(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, text.size()), ' ');
}

// Returns the type of one value of the field, such as "whole number" or "raw, unit or layer".
std::string ValueText(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_STRING:
      return "text";
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return "number";
    case FieldDescriptor::CPPTYPE_ENUM:
      break;
    default:
      return "whole number";
  }
  std::vector<std::string> names;
  for (int i = 0; i < field->enum_type()->value_count(); ++i) {
    const google::protobuf::EnumValueDescriptor* value = field->enum_type()->value(i);
    if (value->number() != 0) names.push_back(value->name());
  }
  return reflect::AnyOf(names);
}

// Returns type, range and default, such as "whole number, 1 to 20 [1]".
std::string TypeText(const FieldDescriptor* field) {
  const v1::OptionInfo& info = reflect::OptionOf(field);
  const std::string range = reflect::RangeText(info);
  std::string text = absl::StrCat(ValueText(field), range.empty() ? "" : ", ", range);
  if (field->is_repeated()) text = absl::StrCat("list of ", text);
  if (info.most() > 0) absl::StrAppend(&text, "; at most ", text::Grouped(info.most()));
  if (!info.default_().empty()) absl::StrAppend(&text, " [", info.default_(), "]");
  return text;
}

// Returns names and meaning of the numbers of a kind.
std::string NumbersText(const google::protobuf::MessageOptions& options) {
  const int count = options.ExtensionSize(v1::number);
  if (count == 0) return "It has no numbers, only arrays.\n";
  std::string text = "Its numbers, metrics of the experiment as LABEL/NUMBER:\n";
  for (int i = 0; i < count; ++i) {
    const v1::NumberInfo& info = options.GetExtension(v1::number, i);
    absl::StrAppend(&text, "  ", absl::StrJoin(info.name(), ", "), "\n    ", info.help(), "\n");
  }
  return text;
}

}  // namespace

absl::Span<const AnalysisKindRow> AnalysisKindTable() { return kKinds; }

absl::StatusOr<const AnalysisKindRow*> FindAnalysisKind(absl::string_view name) {
  std::vector<std::string> names;
  for (const AnalysisKindRow& row : kKinds) {
    if (row.name == name) return &row;
    names.emplace_back(row.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("KIND: ", reflect::Quoted(name),
                                                 " is unknown; expected ", reflect::AnyOf(names),
                                                 reflect::DidYouMean(name, names)));
}

absl::StatusOr<v1::AnalysisKind> MakeAnalysisKind(const AnalysisKindRow& row,
                                                  const std::vector<std::string>& set) {
  ASSIGN_OR_RETURN(const Overrides overrides, ParseOverrides(set, "signal=rule"));
  v1::AnalysisKind kind;
  google::protobuf::Message* options = kind.GetReflection()->MutableMessage(&kind, MemberOf(row));
  std::vector<reflect::FieldProblem> problems;
  for (const auto& [path, value] : overrides) {
    reflect::SetPath(path, value, absl::StrCat("--set ", path), options, &problems);
  }
  if (problems.empty()) return kind;
  return absl::InvalidArgumentError(
      absl::StrJoin(problems, "; ", [](std::string* out, const reflect::FieldProblem& problem) {
        out->append(problem.message);
      }));
}

std::string AnalysisKindName(const v1::AnalysisKind& kind) {
  const FieldDescriptor* member = kind.GetReflection()->GetOneofFieldDescriptor(
      kind, v1::AnalysisKind::descriptor()->FindOneofByName("kind"));
  return member == nullptr ? "" : member->name();
}

std::string AnalysisKindsText() {
  size_t width = 0;
  for (const AnalysisKindRow& row : kKinds) width = std::max(width, std::string(row.name).size());
  std::string text = "Kinds:\n";
  for (const AnalysisKindRow& row : kKinds) {
    absl::StrAppend(&text, "  ", Padded(row.name, width), "  ", row.help, "\n");
  }
  return text;
}

std::string AnalysisOptionsText(const AnalysisKindRow& row) {
  const google::protobuf::Descriptor* type = MemberOf(row)->message_type();
  std::string text = absl::StrCat(row.name, ": ", row.help, "\n");
  if (type->field_count() == 0) {
    return absl::StrCat(text, "It has no options.\n", NumbersText(type->options()));
  }
  size_t width = 0;
  for (int i = 0; i < type->field_count(); ++i) {
    width = std::max(width, type->field(i)->name().size());
  }
  absl::StrAppend(&text, "Its options, as --set NAME=VALUE:\n");
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    absl::StrAppend(&text, "  ", Padded(field->name(), width), "  ", TypeText(field), "\n",
                    Padded("", width + 4), reflect::OptionOf(field).help(), "\n");
  }
  return text + NumbersText(type->options());
}

}  // namespace ablate::client
