#include "server/experiment/field_values.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/struct.pb.h"
#include "proto/reflect/read.h"
#include "server/config/fields.h"
#include "server/config/program.h"

namespace ablate::spec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string ListOf(const Message& message, const FieldDescriptor* field) {
  std::vector<std::string> elements;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
    elements.push_back(reflect::TextOf(reflect::Read(message, field, i)));
  }
  return absl::StrCat("[", absl::StrJoin(elements, ", "), "]");
}

void Collect(const Message& message, const std::string& above, FieldValues* values) {
  for (const FieldDescriptor* field : reflect::SetFields(message)) {
    const std::string path = reflect::Below(above, field->name());
    if (field->is_repeated()) {
      values->emplace(path, ListOf(message, field));
      continue;
    }
    const reflect::FieldValue value = reflect::Read(message, field);
    if (const auto* below = std::get_if<const Message*>(&value)) {
      if (const auto* free = dynamic_cast<const google::protobuf::Struct*>(*below)) {
        for (const auto& [name, setting] : FlatSettings(*free)) {
          values->emplace(reflect::Below(path, name), TextOfSetting(setting));
        }
      } else {
        Collect(**below, path, values);
      }
    } else {
      values->emplace(path, reflect::TextOf(value));
    }
  }
}

SpecPath::Kind KindOf(const FieldDescriptor* field) {
  if (field->is_repeated()) return SpecPath::Kind::kList;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return SpecPath::Kind::kBoolean;
    case FieldDescriptor::CPPTYPE_ENUM:
      return SpecPath::Kind::kEnum;
    case FieldDescriptor::CPPTYPE_STRING:
      return SpecPath::Kind::kText;
    default:
      return SpecPath::Kind::kNumber;
  }
}

void CollectPaths(const google::protobuf::Descriptor* type, const std::string& above,
                  std::map<std::string, SpecPath>* paths) {
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    SpecPath path{reflect::Below(above, field->name()), KindOf(field), {}};
    if (field->message_type() == google::protobuf::Struct::descriptor()) continue;
    if (field->message_type() != nullptr && !field->is_repeated()) {
      CollectPaths(field->message_type(), path.path, paths);
      continue;
    }
    const auto* values = field->enum_type();
    // The first value is "unspecified", which no resolved spec has.
    for (int j = 1; values != nullptr && j < values->value_count(); ++j) {
      path.values.push_back(values->value(j)->name());
    }
    paths->emplace(path.path, path);
  }
}

}  // namespace

const std::map<std::string, SpecPath>& SpecPaths() {
  static const auto* const kPaths = [] {
    auto* paths = new std::map<std::string, SpecPath>;
    CollectPaths(v1::BaseSpec::descriptor(), "", paths);
    return paths;
  }();
  return *kPaths;
}

void SharedFields::Add(const v1::BaseSpec& spec) {
  const FieldValues values = ValuesOf(spec);
  if (differences_.empty()) first_ = values;
  const FieldValues& difference = differences_.emplace_back(Difference(values, first_));
  varied_.insert(difference.begin(), difference.end());
}

FieldValues SharedFields::Common() const {
  FieldValues common;
  for (const auto& [path, value] : first_) {
    if (varied_.count(path) == 0) common.emplace(path, value);
  }
  return common;
}

std::vector<FieldValues> SharedFields::Others() const {
  std::vector<FieldValues> others;
  for (const FieldValues& difference : differences_) {
    FieldValues& fields = others.emplace_back();
    for (const auto& [path, ignored] : varied_) {
      const auto own = difference.find(path);
      const auto base = first_.find(path);
      if (own != difference.end()) {
        if (!own->second.empty()) fields.emplace(path, own->second);
      } else if (base != first_.end()) {
        fields.emplace(path, base->second);
      }
    }
  }
  return others;
}

FieldValues ValuesOf(const Message& spec) {
  FieldValues values;
  Collect(spec, "", &values);
  return values;
}

FieldValues FilledValues(v1::BaseSpec base, const std::vector<Write>& writes, bool cuda) {
  std::vector<Problem> problems;
  Apply(writes, &base, &problems);
  if (!problems.empty()) return {};
  FillDefaults(cuda, &base);
  return ValuesOf(base);
}

FieldValues Difference(const FieldValues& spec, const FieldValues& base) {
  FieldValues difference;
  for (const auto& [path, value] : spec) {
    const auto other = base.find(path);
    if (other == base.end() || other->second != value) difference.emplace(path, value);
  }
  for (const auto& [path, value] : base) {
    if (spec.count(path) == 0) difference.emplace(path, "");
  }
  return difference;
}

namespace {

// Returns evaluation.tokens rounded up to whole windows, as an evaluation reads them.
uint64_t WholeWindows(const v1::BaseSpec& filled) {
  const uint64_t context = std::max(filled.model().context(), 1u);
  return (filled.evaluation().tokens() + context - 1) / context * context;
}

// Returns the fields that determine the evaluation data.
FieldValues EvaluationData(const v1::BaseSpec& filled, const std::string& dataset_sha256,
                           uint64_t longest) {
  const v1::TaskSpec& task = filled.task();
  const std::string batches = filled.evaluation().has_batches()
                                  ? absl::StrCat(filled.evaluation().batches())
                                  : std::string("all");
  if (task.has_recall()) {
    return {{"task.recall.entities", absl::StrCat(task.recall().entities())},
            {"task.recall.attributes", absl::StrCat(task.recall().attributes())},
            {"task.recall.pairs", absl::StrCat(task.recall().pairs())},
            {"evaluation.batches", batches}};
  }
  if (task.has_text()) {
    const bool by_tokens = filled.evaluation().has_tokens();
    return {{"task.text.dataset", dataset_sha256},
            {"task.text.tokenizer", task.text().tokenizer()},
            {"task.text.validation", text::ShortestDecimal(task.text().validation())},
            {"model.context", absl::StrCat(filled.model().context())},
            {by_tokens ? "evaluation.tokens" : "evaluation.batches",
             by_tokens ? absl::StrCat(WholeWindows(filled)) : batches}};
  }
  if (!task.has_documents()) {
    return {{"task.legacy_recall.keys", absl::StrCat(task.legacy_recall().keys())},
            {"task.legacy_recall.draw", absl::StrCat(task.legacy_recall().draw())},
            {"evaluation.batches", batches}};
  }
  uint64_t positions = filled.model().context();
  if (longest > 0) positions = std::min(positions, longest + 1);
  return {{"task.documents.dataset", dataset_sha256},
          {"task.documents.tokenizer", task.documents().tokenizer()},
          {"task.documents.held_out", absl::StrCat(task.documents().held_out())},
          {"model.context", absl::StrCat(positions)}};
}

}  // namespace

FieldValues ScoredData(const v1::BaseSpec& filled, const std::string& dataset_sha256,
                       uint64_t longest, absl::string_view metric) {
  if (!IsModel(filled)) return {};  // only its author knows its data
  FieldValues scored = EvaluationData(filled, dataset_sha256, longest);
  if (absl::StartsWith(metric, "train/")) {
    scored.erase("evaluation.batches");
    scored.erase("evaluation.tokens");
  }
  if (metric == "train/loss") {
    scored["training.label_smoothing"] = text::ShortestDecimal(filled.training().label_smoothing());
  }
  return scored;
}

}  // namespace ablate::spec
