#include "client/completion/live_names.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "client/logins.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/output/terminal_text.h"

namespace ablate::client {
namespace {

constexpr absl::Duration kNamesTimeout = absl::Milliseconds(300);
constexpr uint32_t kMaxNames = 1'000;
constexpr int kHelpWidth = 60;
constexpr absl::string_view kExperimentsFolder = "experiments/";
constexpr absl::string_view kModelsFolder = "models/";

// Returns true if every shell takes the name for one plain word that isn't an option.
bool IsPlainWord(absl::string_view name) {
  constexpr absl::string_view kMarks = "._+-=@:,/";
  return !name.empty() && absl::ascii_isalnum(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return absl::ascii_isalnum(c) || kMarks.find(c) != kMarks.npos;
         });
}

// Returns a candidate for each row of one call's list, or none if the call fails.
template <typename Request, typename Response, typename Rows, typename ToCandidate>
std::vector<Candidate> NamesOf(Connection* connection, const Rpc<Request, Response>& list,
                               const Rows& (Response::*rows)() const, const ToCandidate& candidate,
                               Request request = {}) {
  request.set_page_size(kMaxNames);
  const absl::StatusOr<Response> response = connection->Call(list, request);
  std::vector<Candidate> names;
  if (!response.ok()) return names;
  for (const auto& row : ((*response).*rows)()) names.push_back(candidate(row));
  return names;
}

// The experiments, each followed by `end`. A name is that of the newest experiment that has it;
// older ones go by their IDs.
std::vector<Candidate> ExperimentNames(Connection* connection, const std::string& typed,
                                       const char* end) {
  std::set<std::string> seen;
  const auto candidate = [&](const v1::Experiment& one) -> Candidate {
    const std::string& name = one.spec().name();
    const bool newest = seen.insert(name).second;
    const bool whole = absl::StartsWith(typed, kExperimentsFolder);
    return {absl::StrCat(whole    ? one.name()
                         : newest ? name
                                  : Id(one.name()),
                         end),
            one.spec().question()};
  };
  return NamesOf(connection, kListExperiments, &v1::ListExperimentsResponse::experiments,
                 candidate);
}

// The parts that `values` has of the experiment in `typed`, which is such as names-norm/pre. A
// setting is what cells with other seeds have in common.
std::vector<Candidate> PartNames(Connection* connection, const std::string& typed, Values values) {
  const bool with_parts = values == Values::kExperimentsOrParts;
  const bool with_settings = with_parts || values == Values::kExperimentsOrSettings;
  v1::ListRunsRequest request;
  const std::string folder = typed.substr(0, typed.rfind('/') + 1);
  request.set_experiment(ExperimentName(folder.substr(0, folder.size() - 1)));
  std::set<std::string> settings;
  const auto candidate = [&](const v1::RunRow& row) -> Candidate {
    absl::string_view setting = row.cell();
    const bool has_seed = absl::ConsumeSuffix(&setting, absl::StrCat("-s", row.seed()));
    if (with_settings && has_seed) settings.emplace(setting);
    return {folder + row.cell(), absl::AsciiStrToLower(v1::RunState::Value_Name(row.state()))};
  };
  std::vector<Candidate> names =
      NamesOf(connection, kListRuns, &v1::ListRunsResponse::rows, candidate, request);
  for (const std::string& setting : settings) names.push_back({folder + setting, "all seeds"});
  if (names.empty() || values == Values::kExperimentsOrSettings) return names;
  names.push_back({folder + "@best", "the best run"});
  if (with_parts) names.push_back({folder + "@chosen", "the chosen values of tuned axes"});
  return names;
}

std::vector<Candidate> ModelNames(Connection* connection, const std::string& typed) {
  return NamesOf(connection, kListModels, &v1::ListModelsResponse::models,
                 [&](const v1::Model& model) -> Candidate {
                   const bool whole = absl::StartsWith(typed, kModelsFolder);
                   return {whole ? model.name() : Id(model.name()),
                           absl::StrCat(text::Grouped(model.parameters()), " parameters")};
                 });
}

std::vector<Candidate> DatasetNames(Connection* connection) {
  std::set<std::string> seen;
  return NamesOf(
      connection, kListDatasets, &v1::ListDatasetsResponse::datasets,
      [&](const v1::Dataset& dataset) -> Candidate {
        const std::string& name = dataset.display_name();
        return {seen.insert(name).second ? name : Id(dataset.name()), Bytes(dataset.bytes())};
      });
}

std::vector<Candidate> ServerNames(const Environment& environment) {
  std::vector<Candidate> names = {{kPersonal, "the server of this user on this machine"}};
  const absl::StatusOr<Logins> logins = Logins::Of(environment);
  if (!logins.ok()) return names;
  for (std::string& name : logins->Names()) names.push_back({std::move(name), "login"});
  return names;
}

std::vector<Candidate> AskServer(Values values, const std::string& typed, Connection* connection) {
  if (values == Values::kDatasets) return DatasetNames(connection);
  const bool is_model = values == Values::kCellsOrModels && absl::StartsWith(typed, kModelsFolder);
  if (values == Values::kModels || is_model) return ModelNames(connection, typed);
  const bool takes_experiments = values != Values::kCells && values != Values::kCellsOrModels;
  if (values == Values::kExperiments || !HasExperiment(typed)) {
    return ExperimentNames(connection, typed, takes_experiments ? "" : "/");
  }
  return PartNames(connection, typed, values);
}

std::vector<Candidate> AllNames(Values values, const std::string& typed,
                                const Environment& environment) {
  if (values == Values::kServers) return ServerNames(environment);
  const absl::StatusOr<ServerAddress> server = FindServer(environment);
  if (!server.ok()) return {};
  Connection connection(
      *server, [](absl::Duration) {}, nullptr);
  connection.LimitCalls(kNamesTimeout);
  return AskServer(values, typed, &connection);
}

}  // namespace

bool HasExperiment(absl::string_view typed) {
  absl::ConsumePrefix(&typed, kExperimentsFolder);
  return absl::StrContains(typed, '/');
}

std::vector<Candidate> LiveNames(Values values, const std::string& typed,
                                 const Environment& environment) {
  std::vector<Candidate> names;
  for (Candidate& name : AllNames(values, typed, environment)) {
    if (!IsPlainWord(name.word) || !absl::StartsWith(name.word, typed)) continue;
    names.push_back({std::move(name.word), Truncate(Printable(name.help), kHelpWidth)});
  }
  if (values == Values::kCellsOrModels && absl::StartsWith(kModelsFolder, typed) &&
      typed != kModelsFolder) {
    names.push_back({std::string(kModelsFolder), "imported models"});
  }
  return names;
}

}  // namespace ablate::client
