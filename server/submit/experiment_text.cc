#include "server/submit/experiment_text.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/reflect/text.h"
#include "proto/yaml/dataset_paths.h"
#include "proto/yaml/experiment_text.h"
#include "proto/yaml/shorthands.h"

namespace ablate::submit {
namespace {

v1::Problem ToProto(yaml::Diagnostic&& diagnostic) {
  v1::Problem problem;
  problem.set_field(diagnostic.field.empty() ? "text" : std::move(diagnostic.field));
  problem.set_message(std::move(diagnostic.message));
  problem.set_line(static_cast<uint32_t>(diagnostic.position.line));
  problem.set_column(static_cast<uint32_t>(diagnostic.position.column));
  return problem;
}

// Replaces paths by the request's data sets; returns those that it has none for.
std::vector<v1::NamedFile> ReplacePaths(v1::CreateExperimentRequest* request) {
  yaml::Overrides overrides(request->overrides().begin(), request->overrides().end());
  std::vector<v1::NamedFile> missing;
  for (const yaml::DatasetPath& place :
       yaml::FindDatasetPaths(request->mutable_spec(), &overrides)) {
    const auto given = request->files().find(*place.name);
    if (given == request->files().end()) {
      v1::NamedFile& file = missing.emplace_back();
      file.set_path(*place.name);
      file.set_field(place.is_override ? absl::StrCat("overrides", reflect::Subscript(place.field))
                                       : place.field);
      file.set_in_text(!place.is_override);
      file.set_is_files(place.is_files);
      continue;
    }
    absl::string_view name = given->second;
    if (place.is_label) absl::ConsumePrefix(&name, "datasets/");
    *place.name = std::string(name);
  }
  *request->mutable_overrides() = {overrides.begin(), overrides.end()};
  return missing;
}

bool IsWithin(absl::string_view field, absl::string_view path) {
  return absl::ConsumePrefix(&field, path) && (field.empty() || field[0] == '.' || field[0] == '[');
}

}  // namespace

TakenText TakeText(v1::CreateExperimentRequest* request) {
  TakenText taken;
  yaml::ExperimentText read = yaml::ReadExperiment(std::move(*request->mutable_text()));
  request->clear_text();
  for (auto& [path, value] : *request->mutable_overrides()) yaml::ExpandProgramValue(path, &value);
  yaml::SortByPosition(&read.problems);
  for (yaml::Diagnostic& problem : read.problems) {
    if (taken.problems.size() == spec::Problems::kMaxProblems) break;
    taken.problems.push_back(ToProto(std::move(problem)));
  }
  taken.positions = std::move(read.positions);
  *request->mutable_spec() = std::move(read.spec);
  if (request->has_seeds()) *request->mutable_spec()->mutable_seeds() = request->seeds();
  if (!request->name().empty()) request->mutable_spec()->set_name(request->name());
  if (read.readable) taken.files = ReplacePaths(request);
  return taken;
}

std::vector<spec::Problem> ProblemsOf(const TakenText& text) {
  std::vector<spec::Problem> problems;
  for (const v1::Problem& problem : text.problems) {
    const std::string place =
        problem.line() == 0
            ? ""
            : absl::StrCat("line ", problem.line(), ", column ", problem.column(), ": ");
    problems.push_back({problem.field(), "", "", absl::StrCat(place, problem.message())});
  }
  for (const v1::NamedFile& file : text.files) {
    problems.push_back(reflect::MakeProblem(
        file.field(), file.path(), absl::StrCat(reflect::Quoted(file.path()), " is a path"),
        "the name of a data set, or the path's data set in the request's files"));
  }
  return problems;
}

void Place(const TakenText& text, const v1::CreateExperimentRequest& request,
           google::protobuf::RepeatedPtrField<v1::Problem>* problems) {
  for (v1::Problem& problem : *problems) {
    absl::string_view field = problem.field();
    absl::ConsumePrefix(&field, "spec.");
    const bool replaced = (request.has_seeds() && IsWithin(field, "seeds")) ||
                          (!request.name().empty() && field == "name");
    if (problem.line() != 0 || replaced) continue;
    const yaml::Position position = text.positions.Find(field);
    problem.set_line(static_cast<uint32_t>(position.line));
    problem.set_column(static_cast<uint32_t>(position.column));
  }
}

}  // namespace ablate::submit
