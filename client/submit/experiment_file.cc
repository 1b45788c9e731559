#include "client/submit/experiment_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client/output/part_file.h"
#include "proto/reflect/from_value.h"
#include "proto/yaml/document.h"
#include "proto/yaml/shorthands.h"

namespace ablate::client {
namespace {

using google::protobuf::Value;

bool HasKnownEnding(const std::string& path) {
  const std::string ending = EndingOf(path);
  return ending == ".yaml" || ending == ".yml" || ending == ".json";
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

void CheckSettings(const google::protobuf::RepeatedPtrField<v1::Setting>& settings,
                   const std::string& name, std::vector<reflect::FieldProblem>* problems) {
  for (int i = 0; i < settings.size(); ++i) {
    for (const auto& [path, value] : settings[i].set()) {
      CheckValue(path, value, absl::StrCat(name, "[", i, "].set", reflect::Subscript(path)),
                 problems);
    }
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
    CheckSettings(axis.settings(), absl::StrCat(name, ".settings"), &problems);
    CheckSettings(axis.switches(), absl::StrCat(name, ".switches"), &problems);
  }
  return problems;
}

// Adds the override of `argument`.
absl::Status ParseOverride(const std::string& argument, absl::string_view example,
                           Overrides* overrides) {
  if (argument.find('=') == std::string::npos || argument[0] == '=') {
    return absl::InvalidArgumentError(absl::StrCat("write path=value, such as ", example));
  }
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(argument, absl::MaxSplits('=', 1));
  ASSIGN_OR_RETURN(Value value, yaml::ParseValue(parts.second));
  yaml::ExpandProgramValue(parts.first, &value);
  const bool is_new = overrides->emplace(parts.first, std::move(value)).second;
  return is_new ? absl::OkStatus() : absl::InvalidArgumentError("given twice");
}

// Reads all of a file, at most yaml::kMaxFileBytes. Errors have messages without the path.
absl::StatusOr<std::string> ReadText(std::istream& in) {
  std::string text(yaml::kMaxFileBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  if (in.bad()) return absl::DataLossError("reading failed");
  if (text.size() > yaml::kMaxFileBytes) return yaml::TooLarge();
  return text;
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    return absl::NotFoundError("no such file");
  }
  if (error) return absl::PermissionDeniedError(error.message());
  if (std::filesystem::is_directory(status)) return absl::InvalidArgumentError("is a folder");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return absl::PermissionDeniedError(absl::StrCat("can't be read: ", std::strerror(errno)));
  }
  return ReadText(in);
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
  static_cast<yaml::ExperimentText&>(file) = yaml::ReadExperiment(*std::move(text));
  if (file.readable) {
    for (reflect::FieldProblem& problem : CheckAxes(file.spec)) {
      file.problems.push_back({file.positions.Find(problem.field), std::move(problem.message)});
    }
  }
  yaml::SortByPosition(&file.problems);
  return file;
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

void CheckOverrides(const Overrides& overrides, std::vector<yaml::Diagnostic>* problems) {
  for (const auto& [path, value] : overrides) {
    std::vector<reflect::FieldProblem> found;
    CheckValue(path, value, path, &found);
    for (reflect::FieldProblem& problem : found) {
      problems->push_back(
          {{}, yaml::WithoutField(problem.message, path), absl::StrCat("--set ", path)});
    }
  }
}

}  // namespace ablate::client
