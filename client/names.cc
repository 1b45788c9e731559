#include "client/names.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

constexpr int kRunsPerPage = 1000;

std::string WithPrefix(absl::string_view prefix, absl::string_view text) {
  return absl::StartsWith(text, prefix) ? std::string(text) : absl::StrCat(prefix, text);
}

// INVALID_ARGUMENT if `text` is written as a cell or a run is, with the commands that take one.
absl::Status CheckNoCell(absl::string_view text) {
  constexpr absl::string_view kExpected = "; expected an experiment. `ablate logs ";
  if (absl::StartsWith(text, "runs/")) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, " is a run", kExpected, text, "` takes a run."));
  }
  if (absl::StartsWith(text, "analyses/")) {
    return absl::InvalidArgumentError(
        absl::StrCat(text,
                     " is an analysis; expected an experiment. `ablate analyses` lists analyses; "
                     "the command that made one prints it again."));
  }
  const std::optional<CellName> cell = ParseCellName(text);
  if (!cell) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(text, " is a cell or setting of ",
                                                 Id(cell->experiment), kExpected, text,
                                                 "` and `ablate metrics ", text, "` take a cell."));
}

// Returns the experiment that `text` means; `get` finds one.
absl::StatusOr<v1::Experiment> Find(Connection* connection, absl::string_view text,
                                    const Rpc<v1::GetExperimentRequest, v1::Experiment>& get) {
  RETURN_IF_ERROR(CheckNoCell(text));
  v1::GetExperimentRequest request;
  request.set_name(ExperimentName(text));
  absl::StatusOr<v1::Experiment> experiment = connection->Call(get, request);
  if (!absl::IsNotFound(experiment.status())) return experiment;
  return absl::NotFoundError(
      absl::StrCat(experiment.status().message(), "; `ablate ls` lists experiments"));
}

}  // namespace

std::string ExperimentName(absl::string_view text) { return WithPrefix("experiments/", text); }

std::string Id(absl::string_view name) {
  const size_t slash = name.find('/');
  return std::string(slash == absl::string_view::npos ? name : name.substr(slash + 1));
}

bool IsNamedAfter(const v1::Experiment& experiment) {
  const std::string& name = experiment.spec().name();
  return name.empty() || absl::StartsWith(Id(experiment.name()), absl::StrCat(name, "-"));
}

std::optional<CellName> ParseCellName(absl::string_view text) {
  if (absl::StartsWith(text, "runs/")) return std::nullopt;
  absl::ConsumePrefix(&text, "experiments/");
  const size_t slash = text.find('/');
  if (slash == absl::string_view::npos) return std::nullopt;
  return CellName{ExperimentName(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

absl::StatusOr<v1::Experiment> FindExperiment(Connection* connection, absl::string_view text) {
  return Find(connection, text, kGetExperiment);
}

absl::StatusOr<std::string> ResolveExperimentName(Connection* connection, absl::string_view text,
                                                  Shortened shortened) {
  if (absl::StartsWith(text, "experiments/")) return std::string(text);
  ASSIGN_OR_RETURN(const auto experiment, Find(connection, text, kGetOnlyExperiment));
  const std::string id = Id(experiment.name());
  const bool whole = text == id || text == experiment.spec().name();
  if (!whole && shortened == Shortened::kRefused) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, " is a prefix of ", id, "; expected a whole ID or name with --yes"));
  }
  return experiment.name();
}

std::string ExtensionOf(Connection* connection, absl::string_view name) {
  v1::SqlRequest request;
  // An ID has no characters that SQL gives a meaning to in quotes.
  request.set_statement(
      absl::StrCat("SELECT experiment FROM experiments WHERE extends = '", Id(name), "'"));
  std::string extension;
  const absl::Status read =
      connection->Stream(kSql, request, [&extension](const v1::SqlRows& part) {
        for (const v1::SqlRow& row : part.rows()) extension = row.values(0).text();
        return absl::OkStatus();
      });
  return read.ok() ? extension : "";
}

absl::Status CheckNewTags(const std::vector<std::string>& tags) {
  for (const std::string& tag : tags) {
    if (!absl::StartsWith(tag, "-")) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--tag: ", reflect::Quoted(tag),
                     " begins with '-', as options do; expected a tag that begins with another "
                     "character"));
  }
  return absl::OkStatus();
}

std::string ModelName(absl::string_view text) { return WithPrefix("models/", text); }

absl::StatusOr<std::string> ResolveDatasetName(Connection* connection, absl::string_view text) {
  if (absl::StartsWith(text, "datasets/")) return std::string(text);
  v1::GetDatasetRequest request;
  request.set_name(WithPrefix("datasets/", text));
  ASSIGN_OR_RETURN(const v1::Dataset dataset, connection->Call(kGetDataset, request));
  return dataset.name();
}

absl::StatusOr<v1::ListRunsResponse> ListAllRuns(Connection* connection,
                                                 const std::string& experiment) {
  v1::ListRunsRequest request;
  request.set_experiment(experiment);
  request.set_page_size(kRunsPerPage);
  return ListAll(connection, kListRuns, &v1::ListRunsResponse::mutable_rows, std::move(request));
}

absl::StatusOr<v1::ListRunsResponse> ListPart(Connection* connection, const CellName& name) {
  v1::ListRunsRequest request;
  request.set_experiment(name.experiment);
  request.set_part(name.cell);
  request.set_page_size(kRunsPerPage);
  auto runs =
      ListAll(connection, kListRuns, &v1::ListRunsResponse::mutable_rows, std::move(request));
  if (!runs.ok() || !runs->rows().empty()) return runs;
  const std::string experiment = Id(name.experiment);
  return absl::NotFoundError(absl::StrCat("no cell \"", name.cell, "\" in ", experiment,
                                          "; `ablate runs ", experiment, "` lists cells"));
}

absl::StatusOr<v1::RunRow> FindCell(Connection* connection, const CellName& name) {
  ASSIGN_OR_RETURN(v1::ListRunsResponse runs, ListPart(connection, name));
  if (runs.rows_size() == 1) return std::move(*runs.mutable_rows(0));
  const std::string experiment = Id(name.experiment);
  constexpr size_t kShown = 4;
  std::vector<std::string> cells;
  for (const v1::RunRow& row : runs.rows()) {
    if (cells.size() < kShown) cells.push_back(row.cell());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      experiment, "/", name.cell, " has ", runs.rows_size(), " cells; expected one, such as ",
      absl::StrJoin(cells, ", "), ", or ", experiment, "/@best, the best of all"));
}

absl::StatusOr<std::string> FindRun(Connection* connection, absl::string_view text) {
  const std::optional<CellName> cell = ParseCellName(text);
  if (!cell) return WithPrefix("runs/", text);
  ASSIGN_OR_RETURN(const v1::RunRow row, FindCell(connection, *cell));
  return row.run();
}

absl::Status ExplainRunError(Connection* connection, const absl::Status& status,
                             absl::string_view text) {
  // "run 1a2b has no checkpoint", of the run that the user named by its cell.
  if (absl::string_view rest = status.message();
      ParseCellName(text) && absl::ConsumePrefix(&rest, "run ")) {
    rest.remove_prefix(std::min(rest.find(' '), rest.size()));
    return absl::Status(status.code(), absl::StrCat(text, rest));
  }
  // Not of a run that is there and lacks something else, such as a checkpoint.
  const bool no_run = ReasonOf(status) == "RUN_NOT_FOUND";
  if (!no_run || absl::StrContains(text, '/')) return status;
  const absl::StatusOr<v1::Experiment> experiment = FindExperiment(connection, text);
  if (absl::IsNotFound(experiment.status())) {
    // The server may ask whether another name was meant.
    return absl::NotFoundError(
        absl::StrCat(status.message(), absl::EndsWith(status.message(), "?") ? " " : "; ",
                     "no experiment has that name, either; expected EXP/CELL or runs/ID"));
  }
  if (!experiment.ok()) return experiment.status();
  v1::ListRunsRequest request;
  request.set_page_size(1);
  request.set_experiment(experiment->name());
  ASSIGN_OR_RETURN(const v1::ListRunsResponse runs, connection->Call(kListRuns, request));
  if (runs.rows().empty()) return status;
  const std::string id = Id(experiment->name());
  return absl::NotFoundError(
      absl::StrCat(text, " is an experiment; expected one of its cells, such as ", id, "/",
                   runs.rows(0).cell(), ". `ablate runs ", id, "` lists them."));
}

}  // namespace ablate::client
