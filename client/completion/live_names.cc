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

// The experiments, each followed by `end`. A name is that of the newest experiment that has it;
// older ones go by their IDs.
std::vector<Candidate> ExperimentNames(Connection* connection, const std::string& typed,
                                       const char* end) {
  v1::ListExperimentsRequest request;
  request.set_page_size(kMaxNames);
  const auto list = connection->ListExperiments(request);
  if (!list.ok()) return {};
  std::vector<Candidate> names;
  std::set<std::string> seen;
  for (const v1::Experiment& experiment : list->experiments()) {
    std::string name = experiment.spec().name();
    if (absl::StartsWith(typed, kExperimentsFolder)) {
      name = experiment.name();
    } else if (!seen.insert(name).second) {
      name = Id(experiment.name());
    }
    names.push_back({absl::StrCat(name, end), experiment.spec().question()});
  }
  return names;
}

// The cells of the experiment in `typed`, which is such as names-norm/pre; first its settings if
// they are wanted, too: what cells with other seeds have in common.
std::vector<Candidate> PartNames(Connection* connection, const std::string& typed,
                                 bool with_settings) {
  v1::ListRunsRequest request;
  const std::string experiment = typed.substr(0, typed.rfind('/'));
  request.set_experiment(ExperimentName(experiment));
  request.set_page_size(kMaxNames);
  const auto list = connection->ListRuns(request);
  if (!list.ok()) return {};
  std::vector<Candidate> names;
  std::set<std::string> settings;
  for (const v1::RunRow& row : list->rows()) {
    absl::string_view setting = row.cell();
    const bool has_seed = absl::ConsumeSuffix(&setting, absl::StrCat("-s", row.seed()));
    if (!with_settings || !has_seed || !settings.insert(std::string(setting)).second) continue;
    names.push_back({absl::StrCat(experiment, "/", setting), "all seeds"});
  }
  for (const v1::RunRow& row : list->rows()) {
    names.push_back({absl::StrCat(experiment, "/", row.cell()),
                     absl::AsciiStrToLower(v1::RunState::Value_Name(row.state()))});
  }
  return names;
}

std::vector<Candidate> DatasetNames(Connection* connection) {
  v1::ListDatasetsRequest request;
  request.set_page_size(kMaxNames);
  const auto list = connection->ListDatasets(request);
  if (!list.ok()) return {};
  std::vector<Candidate> names;
  std::set<std::string> seen;
  for (const v1::Dataset& dataset : list->datasets()) {
    const bool newest = seen.insert(dataset.display_name()).second;
    names.push_back({newest ? dataset.display_name() : Id(dataset.name()), Bytes(dataset.bytes())});
  }
  return names;
}

std::vector<Candidate> ModelNames(Connection* connection, const std::string& typed) {
  v1::ListModelsRequest request;
  request.set_page_size(kMaxNames);
  const auto list = connection->ListModels(request);
  if (!list.ok()) return {};
  std::vector<Candidate> names;
  for (const v1::Model& model : list->models()) {
    names.push_back({absl::StartsWith(typed, kModelsFolder) ? model.name() : Id(model.name()),
                     absl::StrCat(text::Grouped(model.parameters()), " parameters")});
  }
  return names;
}

std::vector<Candidate> UserNames(Connection* connection) {
  v1::ListUsersRequest request;
  request.set_page_size(kMaxNames);
  const auto list = connection->ListUsers(request);
  if (!list.ok()) return {};
  std::vector<Candidate> names;
  for (const v1::User& user : list->users()) {
    names.push_back({Id(user.name()), v1::Role::Value_Name(user.role())});
  }
  return names;
}

std::vector<Candidate> ServerNames(const Environment& environment) {
  std::vector<Candidate> names = {{kPersonal, "the server of this user on this machine"}};
  const absl::StatusOr<Logins> logins = Logins::Of(environment);
  if (!logins.ok()) return names;
  for (std::string& name : logins->Names()) names.push_back({std::move(name), "login"});
  return names;
}

std::vector<Candidate> AskServer(Values values, const std::string& typed, Connection* connection) {
  absl::string_view rest = typed;
  absl::ConsumePrefix(&rest, kExperimentsFolder);
  const bool has_experiment = absl::StrContains(rest, '/');
  switch (values) {
    case Values::kUsers:
      return UserNames(connection);
    case Values::kDatasets:
      return DatasetNames(connection);
    case Values::kModels:
      return ModelNames(connection, typed);
    case Values::kExperiments:
      return ExperimentNames(connection, typed, "");
    case Values::kCellsOrModels:
      if (absl::StartsWith(typed, kModelsFolder)) return ModelNames(connection, typed);
      [[fallthrough]];
    case Values::kCells:
      return has_experiment ? PartNames(connection, typed, false)
                            : ExperimentNames(connection, typed, "/");
    case Values::kExperimentsOrCells:
    case Values::kExperimentsOrParts:
      return has_experiment ? PartNames(connection, typed, values == Values::kExperimentsOrParts)
                            : ExperimentNames(connection, typed, "");
    default:
      return {};
  }
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
