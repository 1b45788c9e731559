#include "proto/yaml/values_by_label.h"

#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/reflect/text.h"
#include "proto/yaml/document.h"
#include "proto/yaml/switches.h"

namespace ablate::yaml {
namespace {

using google::protobuf::ListValue;
using google::protobuf::Value;
using Problems = std::vector<reflect::FieldProblem>;
using Lists = std::vector<const ListValue*>;

constexpr int kMaxExclusions = 1'000;  // as in spec.proto

std::string NameOf(const Value& axis) {
  if (const Value* name = FindMember(axis, "name")) return name->string_value();
  if (FindMember(axis, "switches") != nullptr) return "switches";
  const Value* field = FindMember(axis, "field");
  return field == nullptr ? "" : field->string_value().substr(field->string_value().rfind('.') + 1);
}

std::vector<Value> LabelsIn(const Value& settings) {
  std::vector<Value> labels;
  for (const Value& setting : settings.list_value().values()) {
    if (const Value* label = FindMember(setting, "label")) labels.push_back(*label);
  }
  return labels;
}

// Returns the labels of the settings that switches make; `form` may be null.
std::vector<Value> LabelsOfSwitches(const Value& switches, const Value* form) {
  auto parsed = v1::SwitchForm::add;
  if (form != nullptr) (void)v1::SwitchForm::Value_Parse(form->string_value(), &parsed);
  std::vector<std::string> own;
  for (const Value& label : LabelsIn(switches)) own.push_back(label.string_value());
  std::vector<Value> labels;
  for (const SwitchSetting& setting : SwitchSettings(parsed, own)) {
    labels.push_back(StringValue(setting.label));
  }
  return labels;
}

// Returns the labels of the axis that `by` names, or its values; none after a problem.
std::vector<Value> FindLabels(const Value& by, const ListValue& axes, int index,
                              Problems* problems) {
  std::vector<Value> labels;
  std::vector<std::string> names;
  for (int i = 0; i < axes.values_size(); ++i) {
    if (i == index) continue;
    names.push_back(NameOf(axes.values(i)));
    if (!by.has_string_value() || names.back() != by.string_value()) continue;
    if (FindMember(axes.values(i), "by") != nullptr) {
      problems->push_back(reflect::MakeProblem(
          absl::StrCat("axes[", index, "]"), by.string_value(),
          absl::StrCat("by: the values of ", by.string_value(), " depend on an axis, too"),
          absl::StrCat(by.string_value(), " before this axis")));
      return labels;
    }
    if (const Value* values = FindMember(axes.values(i), "values")) {
      labels.assign(values->list_value().values().begin(), values->list_value().values().end());
    }
    if (const Value* settings = FindMember(axes.values(i), "settings")) {
      labels = LabelsIn(*settings);
    }
    if (const Value* switches = FindMember(axes.values(i), "switches")) {
      labels = LabelsOfSwitches(*switches, FindMember(axes.values(i), "form"));
    }
  }
  if (!labels.empty()) return labels;
  problems->push_back(reflect::MakeProblem(
      absl::StrCat("axes[", index, "]"), reflect::ShortText(by),
      absl::StrCat("by: ", reflect::Quoted(by), " isn't another axis with settings"),
      names.empty() ? "none, because the experiment has no other axis" : reflect::AnyOf(names)));
  return labels;
}

// Returns the list at each label; null, with a problem, if there is none.
Lists ListsOf(const std::string& by, const std::vector<Value>& labels, const Value& values,
              const std::string& path, Problems* problems) {
  std::map<std::string, size_t> places;
  std::vector<std::string> names, missing;
  for (const Value& label : labels) {
    places.emplace(reflect::ShortText(label), names.size());
    names.push_back(reflect::ShortText(label));
  }
  const std::string expected = absl::StrCat(
      "each setting of ", by, " once: ", reflect::ShortText(absl::StrJoin(names, ", ")));
  Lists lists(labels.size());
  for (const auto& [key, list] : values.struct_value().fields()) {
    auto place = places.find(key);
    if (place == places.end()) place = places.find(reflect::ShortText(PlainScalar(key)));
    if (place != places.end() && lists[place->second] == nullptr) {
      lists[place->second] = &list.list_value();
      continue;
    }
    problems->push_back(reflect::MakeProblem(
        absl::StrCat(path, reflect::Subscript(key)), reflect::ShortText(key),
        absl::StrCat(reflect::Quoted(key), " isn't a setting of ", by), expected));
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (lists[i] == nullptr) missing.push_back(names[i]);
  }
  if (!missing.empty()) {
    const std::string all = reflect::ShortText(absl::StrJoin(missing, ", "));
    problems->push_back(
        reflect::MakeProblem(path, all, absl::StrCat("no values for ", all), expected));
  }
  return lists;
}

// Returns the different values of all lists.
ListValue UnionOf(const Lists& lists) {
  ListValue all;
  std::set<std::string> texts;
  for (const ListValue* list : lists) {
    if (list == nullptr) continue;
    for (const Value& value : list->values()) {
      if (texts.insert(reflect::ShortText(value)).second) *all.add_values() = value;
    }
  }
  return all;
}

// Adds the exclusions of the values in `all` that a label's list doesn't have, until they are too
// many.
void Exclude(const std::string& by, const Value& label, const std::string& name,
             const ListValue& list, const ListValue& all, ListValue* exclusions) {
  std::set<std::string> own;
  for (const Value& value : list.values()) own.insert(reflect::ShortText(value));
  for (const Value& value : all.values()) {
    if (exclusions->values_size() > kMaxExclusions) return;
    if (own.count(reflect::ShortText(value)) > 0) continue;
    auto* entry = exclusions->add_values()->mutable_struct_value()->mutable_fields();
    auto* where = (*entry)["where"].mutable_struct_value()->mutable_fields();
    (*where)[by] = label;
    (*where)[name] = value;
  }
}

// Replaces the lists of one axis.
void Expand(int index, Value* root, Problems* problems) {
  auto* fields = root->mutable_struct_value()->mutable_fields();
  ListValue* axes = (*fields)["axes"].mutable_list_value();
  const std::string name = NameOf(axes->values(index));
  const std::string path = absl::StrCat("axes[", index, "].values");
  auto* axis = axes->mutable_values(index)->mutable_struct_value()->mutable_fields();
  const Value by = (*axis)["by"], values = (*axis)["values"];
  axis->erase("by");
  (*axis)["values"].mutable_list_value()->Clear();
  const std::vector<Value> labels = FindLabels(by, *axes, index, problems);
  if (labels.empty()) return;
  const Lists lists = ListsOf(by.string_value(), labels, values, path, problems);
  const ListValue all = UnionOf(lists);
  *(*axis)["values"].mutable_list_value() = all;

  ListValue exclusions;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (lists[i] != nullptr) {
      Exclude(by.string_value(), labels[i], name, *lists[i], all, &exclusions);
    }
  }
  if (exclusions.values_size() > kMaxExclusions) {
    problems->push_back(reflect::MakeProblem(
        path, "", absl::StrCat("the lists leave out more than ", kMaxExclusions, " combinations"),
        "lists with more values in common"));
  } else if (exclusions.values_size() > 0) {
    const auto exclude = fields->find("exclude");
    const bool is_free = exclude == fields->end() || exclude->second.has_null_value() ||
                         exclude->second.has_list_value();
    if (is_free) (*fields)["exclude"].mutable_list_value()->MergeFrom(exclusions);
  }
}

}  // namespace

void ExpandValuesByLabel(Value* root, Problems* problems) {
  const int axes = FindMember(*root, "axes")->list_value().values_size();
  for (int i = 0; i < axes; ++i) {
    const Value& axis = FindMember(*root, "axes")->list_value().values(i);
    if (FindMember(axis, "by") != nullptr) Expand(i, root, problems);
  }
}

}  // namespace ablate::yaml
