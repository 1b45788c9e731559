#include "client/output/experiment_text.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/decimal.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/output/table.h"
#include "client/output/terminal_text.h"

namespace ablate::client {
namespace {

constexpr int kMaxNamedCells = 3;
constexpr size_t kMaxFailureLines = 5;

using Labels = std::map<std::string, std::string>;  // axis → label

// A column per axis, in their order.
std::vector<Column> LabelColumns(const v1::ExperimentSpec& spec) {
  std::vector<Column> columns;
  for (const v1::Axis& axis : spec.axes()) columns.push_back({AxisName(axis), false});
  if (columns.empty()) columns.push_back({"setting", false});
  return columns;
}

// The labels of one row in these columns.
std::vector<std::string> LabelRow(const v1::ExperimentSpec& spec, const Labels& labels) {
  std::vector<std::string> row;
  for (const v1::Axis& axis : spec.axes()) {
    const auto found = labels.find(AxisName(axis));
    row.push_back(found == labels.end() ? "" : found->second);
  }
  if (row.empty()) row.emplace_back("base");
  return row;
}

// Result of the cells of one combination of settings.
struct SettingResult {
  Labels labels;
  uint32_t diverged = 0;
  uint32_t failed = 0;
  uint32_t cancelled = 0;
  uint32_t open = 0;  // queued or training
  uint32_t n = 0;     // cells that the mean is over: DONE ones with a last value
  double mean = 0;    // of the metric's last values
};

// Adds the result of a cell.
void Add(const v1::RunRow& row, const std::string& key, SettingResult* result) {
  switch (row.state()) {
    case v1::RunState::DIVERGED:
      ++result->diverged;
      return;
    case v1::RunState::FAILED:
      ++result->failed;
      return;
    case v1::RunState::CANCELLED:
      ++result->cancelled;
      return;
    case v1::RunState::DONE:
      break;
    default:
      ++result->open;
      return;
  }
  const v1::Summary* summary = FindSummary(row, key);
  if (summary == nullptr || !summary->has_last()) return;
  ++result->n;
  result->mean += (summary->last() - result->mean) / result->n;
}

// In the order in which the combinations first appear.
std::vector<SettingResult> SettingResults(const v1::ListRunsResponse& runs,
                                          const std::string& key) {
  std::vector<SettingResult> results;
  std::map<Labels, size_t> places;
  for (const v1::RunRow& row : runs.rows()) {
    Labels labels(row.labels().begin(), row.labels().end());
    const auto [place, is_new] = places.emplace(labels, results.size());
    if (is_new) results.push_back({std::move(labels)});
    Add(row, key, &results[place->second]);
  }
  return results;
}

uint64_t SeedCount(const v1::Seeds& seeds) {
  if (seeds.list_size() > 0) return static_cast<uint64_t>(seeds.list_size());
  return seeds.has_count() ? seeds.count() : 1;
}

// `3 placement × 5 lr × 12 seeds`, and how many cells that is before exclusions.
std::pair<std::string, uint64_t> Product(const v1::ExperimentSpec& spec) {
  std::vector<std::string> factors;
  uint64_t product = 1;
  for (const v1::Axis& axis : spec.axes()) {
    const int settings = axis.settings_size() + axis.values_size();
    factors.push_back(absl::StrCat(settings, " ", AxisName(axis)));
    product *= static_cast<uint64_t>(settings);
  }
  const uint64_t seeds = SeedCount(spec.seeds());
  factors.push_back(Count(seeds, "seed"));
  return {absl::StrJoin(factors, " × "), product * seeds};
}

// A large grid's cells are not all in the answer, but they are counted in it.
uint64_t CellCount(const v1::CreateExperimentResponse& response) {
  return std::max(AllRuns(response.experiment().counts()),
                  static_cast<uint64_t>(response.cells_size()));
}

// Returns true if the answer has every cell; those of a large grid are left out.
bool HasAllCells(const v1::CreateExperimentResponse& response) {
  return CellCount(response) == static_cast<uint64_t>(response.cells_size());
}

// How many runs the cells have.
uint64_t RunCount(const v1::CreateExperimentResponse& response) {
  std::set<std::string> runs;
  for (const v1::Cell& cell : response.cells()) runs.insert(cell.run());
  // Which cells share a run is known when all of them are here and have one.
  if (HasAllCells(response) && runs.count("") == 0) return runs.size();
  uint64_t trained = 0;  // by any trainer
  for (const v1::TrainerUse& use : response.trainers()) trained += use.runs();
  // The answer to a repeated request does not say.
  return trained > 0 ? trained : CellCount(response);
}

std::string RunsText(const v1::CreateExperimentResponse& response) {
  const uint64_t cells = CellCount(response);
  const uint64_t runs = RunCount(response);
  const std::string reused = absl::StrCat(" (", text::Grouped(response.reused()), " reused)");
  if (runs == cells) return Count(cells, "run") + reused;
  return absl::StrCat(Count(cells, "cell"), ", ", Count(runs, "run"), " as equal cells run once",
                      reused);
}

std::string EstimateText(const v1::Estimate& estimate) {
  return absl::StrCat("about ", Duration(ToDuration(estimate.wall_time())), ", ",
                      Bytes(estimate.bytes()), estimate.measured() ? "" : " (a guess)");
}

}  // namespace

std::string AxisName(const v1::Axis& axis) {
  if (axis.has_name()) return axis.name();
  if (!axis.has_field() && axis.switches_size() > 0) return "switches";
  return axis.field().substr(axis.field().rfind('.') + 1);
}

std::string PrimaryMetric(const v1::ExperimentSpec& spec) {
  return spec.report().has_primary() ? spec.report().primary() : "eval/loss";
}

std::string SettingText(const v1::ExperimentSpec& spec,
                        const std::map<std::string, std::string>& labels, bool tuned) {
  std::vector<std::string> parts;
  for (const v1::Axis& axis : spec.axes()) {
    const auto found = labels.find(AxisName(axis));
    if (axis.tune() != tuned || found == labels.end()) continue;
    double number = 0;
    const bool bare = tuned || absl::SimpleAtod(found->second, &number);
    parts.push_back(bare ? absl::StrCat(found->first, " ", found->second) : found->second);
  }
  if (parts.empty() && !tuned) return "base";
  return absl::StrJoin(parts, ", ");
}

std::string StateText(const v1::Experiment& experiment) {
  if (!experiment.stalled().empty()) return absl::StrCat("STALLED: ", experiment.stalled());
  if (experiment.paused() && experiment.state() == v1::ExperimentState::ACTIVE) {
    return "ACTIVE: paused";
  }
  const std::string& why = experiment.why_cancelled();
  return absl::StrCat(v1::ExperimentState::Value_Name(experiment.state()), why.empty() ? "" : ": ",
                      why);
}

bool HasEnded(v1::RunState::Value state) {
  return state != v1::RunState::unspecified && state != v1::RunState::QUEUED &&
         state != v1::RunState::RUNNING;
}

uint64_t EndedRuns(const v1::RunCounts& counts) {
  return uint64_t{counts.done()} + counts.diverged() + counts.failed() + counts.cancelled();
}

uint64_t AllRuns(const v1::RunCounts& counts) {
  return EndedRuns(counts) + counts.queued() + counts.running();
}

std::string CountsText(const v1::RunCounts& counts) {
  std::vector<std::string> parts;
  const std::pair<uint32_t, const char*> all[] = {
      {counts.done(), "done"},     {counts.diverged(), "diverged"},
      {counts.failed(), "failed"}, {counts.running(), "running"},
      {counts.queued(), "queued"}, {counts.cancelled(), "cancelled"}};
  for (const auto& [count, word] : all) {
    if (count > 0) parts.push_back(absl::StrCat(text::Grouped(count), " ", word));
  }
  return parts.empty() ? "no runs" : absl::StrJoin(parts, ", ");
}

std::string AnalysesText(const v1::AnalysisCounts& counts, bool over) {
  if (!counts.planned()) return over ? "no analyses" : "analyses follow the runs";
  const uint32_t all =
      counts.queued() + counts.running() + counts.done() + counts.failed() + counts.cancelled();
  if (all == 0) return "no analyses";
  std::string line =
      absl::StrCat(text::Grouped(counts.done()), " of ", text::Grouped(all), " analyses");
  if (counts.failed() > 0) absl::StrAppend(&line, ", ", text::Grouped(counts.failed()), " failed");
  if (counts.cancelled() > 0) {
    absl::StrAppend(&line, ", ", text::Grouped(counts.cancelled()), " cancelled");
  }
  return line;
}

std::string FirstLine(absl::string_view failure) {
  return std::string(failure.substr(0, failure.find('\n')));
}

std::string FailureText(const v1::RunRow& row) {
  std::vector<absl::string_view> lines =
      absl::StrSplit(absl::StripTrailingAsciiWhitespace(row.failure()), '\n');
  std::string text = Printable(absl::StrCat(row.cell(), ": ", lines.front())) + "\n";
  lines.erase(lines.begin());
  if (lines.size() > kMaxFailureLines) lines.erase(lines.begin(), lines.end() - kMaxFailureLines);
  for (const absl::string_view line : lines) absl::StrAppend(&text, "  ", Printable(line), "\n");
  return text;
}

const v1::Summary* FindSummary(const v1::RunRow& row, const std::string& key) {
  const auto found = std::find_if(row.summaries().begin(), row.summaries().end(),
                                  [&](const v1::Summary& s) { return s.key() == key; });
  return found == row.summaries().end() ? nullptr : &*found;
}

std::string SettingTable(const v1::ExperimentSpec& spec, const v1::ListRunsResponse& runs,
                         const std::string& key, int width) {
  const std::vector<SettingResult> results = SettingResults(runs, key);
  const auto any = [&](uint32_t SettingResult::*member) {
    return std::any_of(results.begin(), results.end(),
                       [&](const SettingResult& r) { return r.*member > 0; });
  };
  const bool any_failed = any(&SettingResult::failed);
  const bool any_cancelled = any(&SettingResult::cancelled);
  const bool any_open = any(&SettingResult::open);
  std::vector<Column> columns = LabelColumns(spec);
  columns.push_back({absl::StrCat("mean ", key), true});
  for (const char* title : {"n", "diverged"}) columns.push_back({title, true});
  if (any_failed) columns.push_back({"failed", true});
  if (any_cancelled) columns.push_back({"cancelled", true});
  if (any_open) columns.push_back({"open", true});
  Table table(std::move(columns));
  for (const SettingResult& result : results) {
    std::vector<std::string> row = LabelRow(spec, result.labels);
    row.push_back(result.n > 0 ? Short(result.mean) : "—");
    row.push_back(text::Grouped(result.n));
    row.push_back(text::Grouped(result.diverged));
    if (any_failed) row.push_back(text::Grouped(result.failed));
    if (any_cancelled) row.push_back(text::Grouped(result.cancelled));
    if (any_open) row.push_back(text::Grouped(result.open));
    table.Add(std::move(row));
  }
  return table.Render(width);
}

std::string Headline(const v1::CreateExperimentResponse& response) {
  const v1::Experiment& experiment = response.experiment();
  const auto [product, all] = Product(experiment.spec());
  const uint64_t cells = CellCount(response);
  const std::string excluded =
      cells < all ? absl::StrCat(" − ", text::Grouped(all - cells), " excluded") : "";
  const std::string name =
      experiment.name().empty() ? experiment.spec().name() : Id(experiment.name());
  const std::string analyses =
      response.analyses() == 0 ? ""
                               : absl::StrCat(", at most ", text::Grouped(response.analyses()),
                                              response.analyses() == 1 ? " analysis" : " analyses");
  return absl::StrCat(name, "   ", product, excluded, " = ", RunsText(response), analyses, "   ",
                      EstimateText(response.estimate()), experiment.private_() ? "   private" : "");
}

std::string TrainersText(const v1::CreateExperimentResponse& response) {
  std::vector<std::string> uses;
  for (const v1::TrainerUse& use : response.trainers()) {
    const bool chosen = !use.why_not_native().empty();
    const bool for_all = chosen && response.trainers_size() == 1 && use.runs() > 1;
    uses.push_back(absl::StrCat(use.trainer(), for_all ? " for all " : " ",
                                Count(use.runs(), "run"), chosen ? ": " : "",
                                use.why_not_native()));
  }
  return uses.empty() ? "" : absl::StrCat("trainer: ", absl::StrJoin(uses, ";\n         "), "\n");
}

std::string GridTable(const v1::CreateExperimentResponse& response, int width) {
  struct CellCounts {
    uint64_t cells = 0;
    uint64_t reused = 0;
  };
  std::map<Labels, CellCounts> counts;
  for (const v1::Cell& cell : response.cells()) {
    CellCounts& count = counts[Labels(cell.labels().begin(), cell.labels().end())];
    ++count.cells;
    if (cell.reused()) ++count.reused;
  }
  std::vector<Column> columns = LabelColumns(response.experiment().spec());
  columns.push_back({"parameters", true, /*optional=*/true});
  for (const char* title : {"cells", "reused"}) columns.push_back({title, true});
  Table table(std::move(columns));
  const bool all = HasAllCells(response);
  for (const v1::SettingParameters& setting : response.parameters()) {
    const Labels labels(setting.labels().begin(), setting.labels().end());
    std::vector<std::string> row = LabelRow(response.experiment().spec(), labels);
    const CellCounts& count = counts[labels];
    row.push_back(setting.parameters() == 0 ? "" : text::Grouped(setting.parameters()));
    for (const uint64_t number : {count.cells, count.reused}) {
      row.push_back(all ? text::Grouped(number) : "—");
    }
    table.Add(std::move(row));
  }
  return table.Render(width);
}

std::string OriginsText(const v1::ListRunsResponse& runs) {
  std::map<uint32_t, std::map<std::string, std::string>> origins;  // by step: run → its origin
  for (const v1::RunRow& row : runs.rows()) {
    if (row.continued_step() > 0) {
      origins[row.continued_step()][row.run()] = Id(row.continued_from());
    }
  }
  std::vector<std::string> sentences;
  for (const auto& [step, known] : origins) {
    sentences.push_back(absl::StrCat(
        Count(known.size(), "run"), " continued from step ", text::Grouped(step), " of ",
        known.size() == 1 ? absl::StrCat("run ", known.begin()->second) : "shorter runs"));
  }
  return absl::StrJoin(sentences, "; ");
}

std::string EvaluationText(const v1::CreateExperimentResponse& response) {
  const auto& cells = response.differs_only_in_evaluation();
  if (cells.empty()) return "";
  const int named = std::min(cells.size(), kMaxNamedCells);
  return absl::StrCat(Count(static_cast<uint64_t>(cells.size()), "cell"),
                      " would be trained again only for another evaluation or other checkpoints: ",
                      absl::StrJoin(cells.begin(), cells.begin() + named, ", "),
                      cells.size() > named ? ", …" : "");
}

}  // namespace ablate::client
