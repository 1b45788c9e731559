// `ablate check-resume FILE`: tells if a program that checkpoints continues exactly.
#include <algorithm>
#include <atomic>
#include <bit>
#include <csignal>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "base/file_set.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/download.h"
#include "client/file_set_folder.h"
#include "client/follow.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/output/status_line.h"
#include "client/output/table.h"
#include "client/output/terminal_text.h"
#include "client/submit/prepare.h"
#include "google/protobuf/struct.pb.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(300);
constexpr size_t kShown = 10;  // points or files that differ

struct CheckResumeOptions {
  SubmitOptions submit;
  std::string cell;
  bool keep = false;
  bool json = false;
};

std::atomic<bool> stopped = false;  // by Ctrl-C or SIGTERM

absl::StatusOr<v1::Cell> ChooseCell(const v1::CreateExperimentResponse& grid,
                                    const std::string& name) {
  std::vector<std::string> names;
  for (const v1::Cell& cell : grid.cells()) {
    if (name.empty() || cell.name() == name) return cell;
    names.push_back(cell.name());
  }
  return absl::NotFoundError(absl::StrCat("--cell: the file has no cell ", reflect::Quoted(name),
                                          reflect::DidYouMean(name, names)));
}

// Leaves only this cell of the grid, under another name. `planned` has settings in place of
// switches.
void KeepCell(const v1::Cell& cell, const v1::ExperimentSpec& planned, const std::string& suffix,
              v1::ExperimentSpec* spec) {
  constexpr size_t kMaxName = 40;
  spec->set_name(absl::StrCat(spec->name().substr(0, kMaxName - suffix.size()), suffix));
  for (int i = 0; i < spec->axes_size(); ++i) {
    v1::Axis& axis = *spec->mutable_axes(i);
    if (axis.switches_size() > 0) axis = planned.axes(i);
    const v1::Axis whole = axis;
    const std::string label = cell.labels().at(AxisName(axis));
    axis.clear_values();
    for (const auto& value : whole.values()) {
      if (reflect::ShortText(value) == label) *axis.add_values() = value;
    }
    axis.clear_settings();
    for (const v1::Setting& setting : whole.settings()) {
      if (setting.label() == label) *axis.add_settings() = setting;
    }
  }
  spec->clear_exclude();
  spec->clear_report();
  spec->mutable_seeds()->Clear();
  spec->mutable_seeds()->add_list(cell.seed());
}

struct Difference {
  uint32_t step = 0;
  std::string key;
  std::optional<double> whole, resumed;  // nothing: the run lacks the point
};

struct Verdict {
  uint32_t killed_at = 0, resumed_from = 0;
  size_t points = 0;  // of both runs, each place once
  std::set<std::string> keys;
  std::vector<Difference> differences;       // by step and key
  std::vector<std::string> different_files;  // in out/

  bool equal() const { return differences.empty() && different_files.empty(); }
};

// Values by step and key.
using Points = std::map<std::pair<uint32_t, std::string>, double>;

void ComparePoints(const Points& whole, const Points& resumed, Verdict* verdict) {
  auto w = whole.begin(), r = resumed.begin();
  while (w != whole.end() || r != resumed.end()) {
    const bool in_whole = r == resumed.end() || (w != whole.end() && w->first <= r->first);
    const bool in_resumed = w == whole.end() || (r != resumed.end() && r->first <= w->first);
    Difference point{(in_whole ? w : r)->first.first, (in_whole ? w : r)->first.second, {}, {}};
    if (in_whole) point.whole = w++->second;
    if (in_resumed) point.resumed = r++->second;
    ++verdict->points;
    verdict->keys.insert(point.key);
    const bool equal =
        in_whole && in_resumed &&
        std::bit_cast<uint64_t>(*point.whole) == std::bit_cast<uint64_t>(*point.resumed);
    if (!equal) verdict->differences.push_back(std::move(point));
  }
}

// Returns the paths of files that differ, or that only one of two file sets has. Leaves out event
// files, which hold wall times. Their scalars are points if the program logs no others.
absl::StatusOr<std::vector<std::string>> CompareFiles(absl::string_view whole,
                                                      absl::string_view resumed) {
  constexpr absl::string_view kEventFile = ".tfevents.";
  std::map<std::string, std::vector<std::pair<absl::string_view, bool>>> contents;
  for (const absl::string_view packed : {whole, resumed}) {
    if (packed.empty()) continue;
    ASSIGN_OR_RETURN(const std::vector<PackedFile> files, ReadFileSet(packed));
    for (const PackedFile& file : files) {
      const std::string name = file.path.substr(file.path.rfind('/') + 1);
      if (absl::StrContains(name, kEventFile)) continue;
      contents[file.path].emplace_back(file.bytes, file.executable);
    }
  }
  std::vector<std::string> differ;
  for (const auto& [path, of] : contents) {
    if (of.size() < 2 || of[0] != of[1]) differ.push_back(path);
  }
  return differ;
}

google::protobuf::Struct ToStruct(const Verdict& verdict) {
  google::protobuf::Struct result;
  auto& fields = *result.mutable_fields();
  fields["equal"].set_bool_value(verdict.equal());
  auto* files = fields["different_files"].mutable_list_value();
  for (const std::string& path : verdict.different_files) {
    files->add_values()->set_string_value(path);
  }
  fields["points"].set_number_value(static_cast<double>(verdict.points));
  fields["keys"].set_number_value(static_cast<double>(verdict.keys.size()));
  fields["killed_at"].set_number_value(verdict.killed_at);
  fields["resumed_from"].set_number_value(verdict.resumed_from);
  auto* differences = fields["differences"].mutable_list_value();
  for (const Difference& point : verdict.differences) {
    auto& row = *differences->add_values()->mutable_struct_value()->mutable_fields();
    row["step"].set_number_value(point.step);
    row["key"].set_string_value(point.key);
    // Texts, because JSON has no numbers that aren't finite.
    if (point.whole) row["whole"].set_string_value(Exact(*point.whole));
    if (point.resumed) row["resumed"].set_string_value(Exact(*point.resumed));
  }
  return result;
}

// Returns ", and 2 files: out/a, out/b"; "" without files.
std::string FilesText(const std::vector<std::string>& paths) {
  if (paths.empty()) return "";
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(kShown, paths.size()); ++i) shown.push_back(Printable(paths[i]));
  if (paths.size() > kShown) shown.push_back(absl::StrCat(paths.size() - kShown, " more"));
  return absl::StrCat(", and ", Count(paths.size(), "file"), ": ", absl::StrJoin(shown, ", "));
}

void PrintVerdict(const Verdict& verdict, const Context& context) {
  const size_t differ = verdict.differences.size();
  *context.console.out << (verdict.equal() ? "equal: " : "different: ")
                       << (verdict.equal() ? "" : absl::StrCat(text::Grouped(differ), " of "))
                       << Count(verdict.points, "point") << " of "
                       << Count(verdict.keys.size(), "key") << FilesText(verdict.different_files)
                       << ", killed at step " << text::Grouped(verdict.killed_at)
                       << ", resumed from step " << text::Grouped(verdict.resumed_from) << "\n";
  if (differ == 0) return;
  const auto value = [](const std::optional<double>& it) { return it ? Exact(*it) : "—"; };
  Table table({{"step", true}, {"key"}, {"whole", true}, {"resumed", true}});
  for (size_t i = 0; i < std::min(kShown, differ); ++i) {
    const Difference& point = verdict.differences[i];
    table.Add({text::Grouped(point.step), point.key, value(point.whole), value(point.resumed)});
  }
  PrintTable(context, table);
}

// Runs a cell twice and compares both runs.
class ResumeCheck {
 public:
  ResumeCheck(const CheckResumeOptions& options, const Context& context, Connection* connection)
      : options_(options), context_(context), connection_(connection) {}

  // The requests create the undisturbed run, and the one that is killed and resumed.
  absl::StatusOr<int> Run(const v1::CreateExperimentRequest& undisturbed,
                          v1::CreateExperimentRequest killed) {
    ASSIGN_OR_RETURN(const v1::RunRow whole, RunOne(undisturbed));
    if (whole.state() != v1::RunState::DONE) return ReportEnd(whole);
    ASSIGN_OR_RETURN(const Points points, ReadPoints(whole.run()));
    if (points.empty()) return absl::NotFoundError("the program reported no points to compare");
    const uint32_t last = points.rbegin()->first.first, middle = std::max(last / 2, 1u);
    killed.mutable_spec()->mutable_base()->mutable_program()->set_interrupt_at(middle);
    ASSIGN_OR_RETURN(const v1::RunRow resumed, RunOne(killed));
    if (resumed.state() != v1::RunState::DONE) return ReportEnd(resumed);
    Verdict verdict;
    ASSIGN_OR_RETURN(const bool interrupted, FindInterruption(resumed.run(), &verdict));
    if (!interrupted) {
      return absl::FailedPreconditionError(absl::StrCat(
          "not killed: the program reported no step from ", text::Grouped(middle), " to its last, ",
          text::Grouped(last), ", after a stored checkpoint; expected an earlier checkpoint"));
    }
    ASSIGN_OR_RETURN(const Points again, ReadPoints(resumed.run()));
    ComparePoints(points, again, &verdict);
    ASSIGN_OR_RETURN(verdict.different_files, CompareOutputs(whole.run(), resumed.run()));
    options_.json ? void(PrintJson(context_, ToStruct(verdict))) : PrintVerdict(verdict, context_);
    return verdict.equal() ? kSuccess : kFailure;
  }

  // Cancels what goes on, and removes the experiments unless they are kept.
  void CleanUp() {
    for (const std::string& name : experiments_) {
      v1::CancelExperimentRequest cancel;
      cancel.set_name(name);
      v1::DeleteExperimentRequest remove;
      remove.set_name(name);
      absl::Status done;
      if (name == active_) done = connection_->Call(kCancelExperiment, cancel).status();
      if (done.ok() && !options_.keep) done = connection_->Call(kDeleteExperiment, remove).status();
      if (done.ok()) continue;
      context_.console.Note(absl::StrCat(Id(name), " is left behind: ", done.message()));
    }
  }

 private:
  // Creates the experiment of one cell; returns its run when that has ended.
  absl::StatusOr<v1::RunRow> RunOne(const v1::CreateExperimentRequest& request) {
    ASSIGN_OR_RETURN(const v1::CreateExperimentResponse created,
                     connection_->Call(kCreateExperiment, request));
    active_ = created.experiment().name();
    experiments_.push_back(active_);
    context_.console.Info(absl::StrCat(Id(active_), ": ", created.cells(0).name()));
    StatusLine line({context_.console.err_is_live(), context_.console.width, context_.console.err,
                     context_.now});
    v1::RunRow row;
    const auto step = [&row] { return absl::StrCat("step ", StepText(row.step(), row.steps())); };
    RETURN_IF_ERROR(KeepWatching(context_, [&](const auto& alive) -> absl::Status {
      while (!stopped) {
        ASSIGN_OR_RETURN(const v1::ListRunsResponse list, ListAllRuns(connection_, active_));
        alive();
        row = list.rows(0);
        if (HasEnded(row.state())) return absl::OkStatus();
        if (line.Due()) line.Draw(step());
        context_.sleep(kPoll);
      }
      return absl::AbortedError("stopped");
    }));
    line.Finish(step());
    active_.clear();
    return row;
  }

  // Prints how a run ended that isn't done; returns the exit code.
  int ReportEnd(const v1::RunRow& row) {
    *context_.console.err << FailureText(row);
    context_.console.Error(
        absl::StrCat("a run is ", v1::RunState::Value_Name(row.state()), "; nothing was compared"));
    return row.state() == v1::RunState::CANCELLED ? kCancelled : kFailure;
  }

  absl::StatusOr<Points> ReadPoints(const std::string& run) {
    v1::QueryMetricsRequest request;
    request.add_runs(run);
    Points points;
    RETURN_IF_ERROR(connection_->Stream(kQueryMetrics, request, [&](const v1::Series& series) {
      const int count = std::min(series.steps_size(), series.values_size());
      for (int i = 0; i < count; ++i) points[{series.steps(i), series.key()}] = series.values(i);
      return absl::OkStatus();
    }));
    return points;
  }

  // Returns the paths of CompareFiles. Downloads the files that both runs have kept only if their
  // hashes differ.
  absl::StatusOr<std::vector<std::string>> CompareOutputs(const std::string& whole,
                                                          const std::string& resumed) {
    ASSIGN_OR_RETURN(const v1::Artifact output, OutputOf(whole));
    ASSIGN_OR_RETURN(const v1::Artifact other_output, OutputOf(resumed));
    if (output.sha256() == other_output.sha256()) return std::vector<std::string>();
    ASSIGN_OR_RETURN(const std::string files, FilesOf(output));
    ASSIGN_OR_RETURN(const std::string other_files, FilesOf(other_output));
    return CompareFiles(files, other_files);
  }

  // Returns the artifact of the files that the run has kept; without a hash if there are none.
  absl::StatusOr<v1::Artifact> OutputOf(const std::string& run) {
    v1::ListArtifactsRequest request;
    request.set_run(run);
    ASSIGN_OR_RETURN(const auto list, connection_->Call(kListArtifacts, request));
    return list.artifacts().empty() ? v1::Artifact() : *list.artifacts().rbegin();
  }

  // Returns the file set; empty without one.
  absl::StatusOr<std::string> FilesOf(const v1::Artifact& output) {
    if (output.sha256().empty()) return "";
    return ReceiveFileSet(RemoteOf(output), ReadArtifact(connection_, output), context_.sleep);
  }

  // Finds the steps at which attempts ended and began; returns false if there was only one attempt.
  absl::StatusOr<bool> FindInterruption(const std::string& run, Verdict* verdict) {
    v1::ListRunEventsRequest request;
    request.set_run(run);
    ASSIGN_OR_RETURN(const auto list, connection_->Call(kListRunEvents, request));
    bool interrupted = false;
    for (const v1::RunEvent& event : list.events()) {
      if (event.kind() == "failed" || event.kind() == "lost") {
        interrupted = true;
        verdict->killed_at = event.step();
      } else if (event.kind() == "resumed") {
        verdict->resumed_from = event.step();
      }
    }
    return interrupted;
  }

  const CheckResumeOptions& options_;
  const Context& context_;
  Connection* const connection_;
  std::vector<std::string> experiments_;  // created
  std::string active_;                    // the one of them that goes on, if any
};

int CheckResume(const CheckResumeOptions& options, const Context& context) {
  ReadySubmission ready;
  const int problem = Prepare(options.submit, nullptr, context, &ready);
  if (problem != kSuccess) return problem;
  auto& [submission, connection] = ready;
  v1::CreateExperimentRequest whole = MakeRequest(submission, options.submit);
  if (!whole.spec().base().has_program()) {
    context.console.Error(absl::StrCat(submission.file.name,
                                       ": base.program: missing; expected an experiment whose runs "
                                       "are programs"));
    return kFailure;
  }
  auto planned = Check(connection.get(), whole);
  if (!planned.ok()) return Fail(context, planned.status());
  if (!planned->problems().empty()) return ReportAll(context, submission, planned);
  const absl::StatusOr<v1::Cell> cell = ChooseCell(*planned, options.cell);
  if (!cell.ok()) return Fail(context, cell.status());
  v1::CreateExperimentRequest resumed = MakeRequest(submission, options.submit);
  const v1::ExperimentSpec& spec = planned->experiment().spec();
  KeepCell(*cell, spec, "-whole", whole.mutable_spec());
  KeepCell(*cell, spec, "-resumed", resumed.mutable_spec());
  // A first guess finds out if the program may be interrupted.
  resumed.mutable_spec()->mutable_base()->mutable_program()->set_interrupt_at(1);
  planned = Check(connection.get(), resumed);
  if (!planned.ok()) return Fail(context, planned.status());
  if (!planned->problems().empty()) return ReportAll(context, submission, planned);

  std::signal(SIGINT, [](int) { stopped = true; });
  std::signal(SIGTERM, [](int) { stopped = true; });
  ResumeCheck check(options, context, connection.get());
  const absl::StatusOr<int> code = check.Run(whole, resumed);
  check.CleanUp();
  if (stopped) return kCancelled;
  return code.ok() ? *code : Fail(context, code.status());
}

}  // namespace

Action DefineCheckResume(Command* command) {
  auto options = std::make_shared<CheckResumeOptions>();
  SubmitOptions* submit = &options->submit;
  submit->fresh = true;
  command->Argument(&submit->file, "FILE",
                    "Experiment file (.yaml, .yml or .json), or - for standard input");
  command->Option(&options->cell, "--cell", "CELL", "Check this cell [the first of the grid]");
  command->Options(&submit->set, "--set", "PATH=VALUE",
                   "Set a field of base, such as settings.steps=100; null clears it");
  command->Options(&submit->data, "--data", "PATH",
                   "Allow the file to name data sets at PATH, a file or folder outside its own "
                   "folder");
  command->Option(&submit->seeds, "--seeds", "SEEDS",
                  "Use these seeds: 8 for 0 to 7, 0..9 or 1,2,5 [the file's]");
  command->Flag(&submit->is_private, "--private",
                "Show both experiments, and the data sets that are uploaded, only to you and "
                "admins");
  command->Flag(&options->keep, "--keep", "Keep both experiments");
  command->Flag(&options->json, "--json", "Print the comparison as JSON");
  command->Footer(
      "Runs one cell whole, then again: killed as by a crash at the first step from the middle on "
      "that follows a stored checkpoint, and continued from there. Compares all points, bit by "
      "bit, and the files in out/ except TensorBoard's. No key is left out, so a program that "
      "reports wall time differs.\n\n"
      "Both experiments are removed at the end. Ctrl-C cancels and removes them.\n\n"
      "Exit codes:\n"
      "  0   everything is equal\n"
      "  1   something differs, a run FAILED, or the program was not killed because it stored no "
      "checkpoint in time\n"
      "  2   cancelled\n\n"
      "Example:\n  ablate check-resume train.yaml --set settings.steps=1000");
  return [options](const Context& context) { return CheckResume(*options, context); };
}

}  // namespace ablate::client
