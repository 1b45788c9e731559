#include "client/submit/experiment_file.h"

#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client/output/part_file.h"
#include "client/submit/document.h"
#include "client/submit/shorthands.h"
#include "proto/reflect/from_value.h"

namespace ablate::client {
namespace {

using google::protobuf::Value;

bool HasKnownEnding(const std::string& path) {
  const std::string ending = EndingOf(path);
  return ending == ".yaml" || ending == ".yml" || ending == ".json";
}

void Report(std::vector<reflect::FieldProblem> problems, ExperimentFile* file) {
  for (reflect::FieldProblem& problem : problems) {
    file->problems.push_back({file->positions.Find(problem.field), std::move(problem.message), ""});
  }
}

// The typed message of a tree of values, with the problems of both.
void Convert(Document document, ExperimentFile* file) {
  file->positions = std::move(document.positions);
  file->problems = std::move(document.problems);
  file->unread = std::move(document.unread);
  if (document.syntax_error) return;
  if (document.root.kind_case() != Value::kStructValue) {
    const bool empty = document.root.kind_case() == Value::kNullValue ||
                       document.root.kind_case() == Value::KIND_NOT_SET;
    file->problems.push_back({{},
                              empty ? "the file is empty: an experiment has at least name and base"
                                    : "an experiment is a mapping: name, base, axes, seeds, …",
                              ""});
    return;
  }
  std::vector<reflect::FieldProblem> problems;
  ExpandShorthands(&document.root, &problems);
  reflect::FromValue(document.root, "", &file->spec, &problems);
  for (const reflect::FieldProblem& problem : problems) {
    file->unread.push_back(ParseFieldPath(problem.field));
  }
  Report(std::move(problems), file);
  file->readable = true;
}

// Sets `path` on an empty base; problems are about `field`.
void CheckValue(const std::string& path, const Value& value, const std::string& field,
                std::vector<reflect::FieldProblem>* problems) {
  v1::BaseSpec scratch;
  reflect::SetPath(path, value, field, &scratch, problems);
}

// The field that an axis varies, and its values.
void CheckAxisValues(const v1::Axis& axis, const std::string& name,
                     std::vector<reflect::FieldProblem>* problems) {
  Value clear;
  clear.set_null_value(google::protobuf::NULL_VALUE);
  const size_t before = problems->size();
  CheckValue(axis.field(), clear, absl::StrCat(name, ".field"), problems);
  if (problems->size() > before) return;  // the values could only repeat it
  for (int j = 0; j < axis.values_size(); ++j) {
    CheckValue(axis.field(), axis.values(j), absl::StrCat(name, ".values[", j, "]"), problems);
  }
}

// Returns the problems of axes that can be found without a server: unknown paths and values of the
// wrong kind. Tries every setting and value of every axis on an empty base. The server checks them
// again, and their combinations.
std::vector<reflect::FieldProblem> CheckAxes(const v1::ExperimentSpec& spec) {
  std::vector<reflect::FieldProblem> problems;
  for (int i = 0; i < spec.axes_size(); ++i) {
    const v1::Axis& axis = spec.axes(i);
    const std::string name = absl::StrCat("axes[", i, "]");
    if (axis.has_field()) CheckAxisValues(axis, name, &problems);
    for (int j = 0; j < axis.settings_size(); ++j) {
      for (const auto& [path, value] : axis.settings(j).set()) {
        CheckValue(path, value,
                   absl::StrCat(name, ".settings[", j, "].set", reflect::Subscript(path)),
                   &problems);
      }
    }
  }
  return problems;
}

// A message that nests too deeply can be sent but not received.
void CheckDepth(ExperimentFile* file) {
  v1::ExperimentSpec received;
  if (received.ParseFromString(file->spec.SerializeAsString())) return;
  file->readable = false;
  if (!file->problems.empty()) return;
  file->problems.push_back({{}, "nested deeper than a request can carry", ""});
}

// Adds the override of `argument`.
absl::Status ParseOverride(const std::string& argument, absl::string_view example,
                           Overrides* overrides) {
  if (argument.find('=') == std::string::npos || argument[0] == '=') {
    return absl::InvalidArgumentError(absl::StrCat("write path=value, such as ", example));
  }
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(argument, absl::MaxSplits('=', 1));
  ASSIGN_OR_RETURN(Value value, ParseValue(parts.second));
  const bool is_new = overrides->emplace(parts.first, std::move(value)).second;
  return is_new ? absl::OkStatus() : absl::InvalidArgumentError("given twice");
}

}  // namespace

ExperimentFile LoadExperimentFile(const std::string& path, std::istream& in) {
  ExperimentFile file;
  file.name = path == "-" ? "<stdin>" : path;
  file.folder = path == "-" ? "" : std::filesystem::path(path).parent_path().string();
  absl::StatusOr<std::string> text = path == "-" ? ReadText(in) : ReadText(path);
  if (!text.ok()) {
    file.problems = {{{}, std::string(text.status().message()), ""}};
    return file;
  }
  if (path != "-" && !HasKnownEnding(path)) {
    file.problems = {{{}, "an experiment file ends in .yaml, .yml or .json", ""}};
    return file;
  }
  const SourceText source(*std::move(text));
  file.problems = source.Check();
  if (file.problems.empty()) Convert(ParseYaml(source), &file);
  Report(CheckAxes(file.spec), &file);
  CheckDepth(&file);
  SortByPosition(&file.problems);
  return file;
}

absl::StatusOr<Value> ParseValue(absl::string_view text) {
  if (text.find_first_not_of(' ') == absl::string_view::npos) {
    return absl::InvalidArgumentError("no value after the '='; write null to clear the field");
  }
  const SourceText source{std::string(text)};
  std::vector<Diagnostic> problems = source.Check();
  Document document;
  if (problems.empty()) {
    document = ParseYaml(source);
    problems = std::move(document.problems);
  }
  if (!problems.empty()) return absl::InvalidArgumentError(problems.front().message);
  return std::move(document.root);
}

absl::StatusOr<Overrides> ParseOverrides(const std::vector<std::string>& arguments,
                                         absl::string_view example) {
  Overrides overrides;
  std::vector<std::string> wrong;
  for (const std::string& argument : arguments) {
    const absl::Status status = ParseOverride(argument, example, &overrides);
    if (status.ok()) continue;
    wrong.push_back(
        absl::StrCat("--set ", argument.substr(0, argument.find('=')), ": ", status.message()));
  }
  if (!wrong.empty()) return absl::InvalidArgumentError(absl::StrJoin(wrong, "; "));
  return overrides;
}

void CheckOverrides(const Overrides& overrides, std::vector<Diagnostic>* problems) {
  for (const auto& [path, value] : overrides) {
    std::vector<reflect::FieldProblem> found;
    CheckValue(path, value, path, &found);
    for (reflect::FieldProblem& problem : found) {
      problems->push_back({{}, WithoutField(problem.message, path), absl::StrCat("--set ", path)});
    }
  }
}

}  // namespace ablate::client
