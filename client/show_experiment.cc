#include "client/show_experiment.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/output/owners.h"
#include "client/output/terminal_text.h"

namespace ablate::client {
namespace {

// Returns the first cell in a state, or null.
const v1::RunRow* FirstCell(const v1::ListRunsResponse& runs, v1::RunState::Value state) {
  for (const v1::RunRow& row : runs.rows()) {
    if (row.state() == state) return &row;
  }
  return nullptr;
}

// Marks runs whose last value of `key` is not finite as diverged, which is how comparisons count
// them.
void MarkNonFinite(const std::string& key, v1::ListRunsResponse* runs) {
  for (v1::RunRow& row : *runs->mutable_rows()) {
    const v1::Summary* summary = FindSummary(row, key);
    const bool done = row.state() == v1::RunState::DONE;
    if (done && summary != nullptr && summary->count() > 0 && !summary->has_last()) {
      row.set_state(v1::RunState::DIVERGED);
    }
  }
}

// Returns a sentence about a program's metrics if runs are done and none has `primary`; otherwise
// "".
std::string NoPrimaryText(const v1::ListRunsResponse& runs, const std::string& primary) {
  std::set<std::string> keys;
  bool any = false;
  for (const v1::RunRow& row : runs.rows()) {
    const bool done = row.state() == v1::RunState::DONE || row.state() == v1::RunState::DIVERGED;
    any = any || done;
    if (!done) continue;
    for (const v1::Summary& summary : row.summaries()) keys.insert(summary.key());
  }
  if (!any || keys.count(primary) > 0) return "";
  if (keys.empty()) return "No run has logged a metric";
  constexpr size_t kNamed = 12;
  std::vector<std::string> named(keys.begin(), keys.end());
  named.resize(std::min(named.size(), kNamed));
  if (keys.size() > kNamed) named.push_back(absl::StrCat(keys.size() - kNamed, " more"));
  return absl::StrCat("No run has ", primary, ", the primary metric; they have ",
                      absl::StrJoin(named, ", "),
                      ". Write one of them as report.primary into the file and submit it again, or "
                      "compare with --key KEY");
}

// `judged`: runs have the primary metric.
std::vector<std::string> NextSteps(const v1::Experiment& experiment,
                                   const v1::ListRunsResponse& runs, bool judged) {
  const std::string id = Id(experiment.name());
  std::vector<std::string> steps;
  const bool has_program = experiment.spec().base().has_program();
  const v1::RunRow* failed = FirstCell(runs, v1::RunState::FAILED);
  if (failed != nullptr) steps.push_back(absl::StrCat("ablate logs ", id, "/", failed->cell()));
  if (experiment.state() == v1::ExperimentState::ACTIVE) {
    steps.push_back(absl::StrCat("ablate watch ", id));
  }
  const v1::RunRow* done = FirstCell(runs, v1::RunState::DONE);
  if (done == nullptr) return steps;
  if (judged) {
    steps.push_back(absl::StrCat("ablate compare ", id));
    steps.push_back(absl::StrCat("ablate report ", id, " -o report.html"));
  }
  steps.push_back(absl::StrCat("ablate runs ", id));
  if (judged) {
    steps.push_back(
        absl::StrCat("ablate metrics ", id, " --key ", PrimaryMetric(experiment.spec()), " --csv"));
  }
  if (experiment.spec().base().has_imported()) return steps;
  steps.push_back(
      absl::StrCat("ablate artifact get ", id, "/", done->cell(),
                   has_program ? " output -o out" : " checkpoint -o model.safetensors"));
  return steps;
}

// Returns the reason why queued runs wait if it is the quota of their owner; otherwise "", also if
// the server refuses to list users.
std::string QuotaText(const v1::Experiment& experiment, Connection* connection) {
  if (!connection->is_elsewhere() || experiment.counts().queued() == 0) return "";
  const auto users = connection->Call(kListUsers, {});
  if (!users.ok()) return "";
  for (const v1::User& user : users->users()) {
    if (Id(user.name()) != experiment.owner() || !user.quota().has_lanes()) continue;
    if (user.usage().lanes() < user.quota().lanes()) continue;
    return absl::StrCat("queued runs wait for lanes: ", user.usage().lanes(), " of ",
                        user.quota().lanes(), " of ", OwnerText(experiment), "'s quota are in use");
  }
  return "";
}

// Returns titles and texts of what people wrote about the experiment, where it comes from, and
// which experiment extends it.
std::vector<std::pair<std::string, std::string>> AnnotationsOf(const v1::Experiment& experiment,
                                                               const std::string& extension) {
  std::vector<std::pair<std::string, std::string>> texts = {
      {"name", IsNamedAfter(experiment) ? "" : experiment.spec().name()},
      {"extends", Id(experiment.extends())},
      {"extended by", extension},
      {"changed", absl::StrJoin(experiment.changes(), " ")},
      {"tags", absl::StrJoin(experiment.tags(), ", ")},
      {"note", experiment.note()},
      {"archived", experiment.archived() ? "yes" : ""}};
  texts.erase(std::remove_if(texts.begin(), texts.end(),
                             [](const auto& text) { return text.second.empty(); }),
              texts.end());
  return texts;
}

void Print(const Context& context, const v1::Experiment& experiment,
           const v1::ListRunsResponse& runs, bool owner, const std::string& waits,
           const std::string& extension) {
  std::ostream& out = *context.console.out;
  out << Id(experiment.name()) << "   " << StateText(experiment) << "   "
      << CountsText(experiment.counts()) << "   created "
      << Ago(experiment.create_time(), context.now())
      << (owner ? absl::StrCat("   by ", Printable(OwnerText(experiment))) : "") << "\n";
  if (!experiment.spec().question().empty()) {
    out << Printable(experiment.spec().question()) << "\n";
  }
  for (const auto& [title, text] : AnnotationsOf(experiment, extension)) {
    out << title << ": " << Printable(text) << "\n";
  }
  out << Printable(waits) << (waits.empty() ? "" : "\n");
  const std::string origins = OriginsText(runs);
  if (!origins.empty()) out << origins << "\n";
  if (experiment.has_analyses())
    out << AnalysesText(experiment.analyses(), experiment.state() != v1::ExperimentState::ACTIVE)
        << "\n";
  if (!experiment.analyses().failure().empty()) {
    out << Printable(experiment.analyses().failure()) << "\n";
  }
  const std::string primary = PrimaryMetric(experiment.spec());
  out << "\n" << SettingTable(experiment.spec(), runs, primary, context.console.table_width());
  const v1::BaseSpec& base = experiment.spec().base();
  const bool is_model = !base.has_program() && !base.has_imported();
  const std::string unjudged = is_model ? "" : NoPrimaryText(runs, primary);
  if (!unjudged.empty()) out << "\n" << Printable(unjudged) << "\n";
  const v1::RunRow* failed = FirstCell(runs, v1::RunState::FAILED);
  if (failed != nullptr && !failed->failure().empty()) out << "\nfailed: " << FailureText(*failed);
  const std::vector<std::string> steps = NextSteps(experiment, runs, unjudged.empty());
  if (steps.empty()) return;
  out << "\nnext:\n";
  for (const std::string& step : steps) out << "  " << Printable(step) << "\n";
}

}  // namespace

absl::Status ShowExperiment(const Context& context, Connection* connection,
                            const v1::Experiment& experiment) {
  ASSIGN_OR_RETURN(v1::ListRunsResponse runs, ListAllRuns(connection, experiment.name()));
  MarkNonFinite(PrimaryMetric(experiment.spec()), &runs);
  Print(context, experiment, runs, connection->is_elsewhere() || experiment.private_(),
        QuotaText(experiment, connection),
        // An extension archives it.
        experiment.archived() ? ExtensionOf(connection, experiment.name()) : "");
  return absl::OkStatus();
}

}  // namespace ablate::client
