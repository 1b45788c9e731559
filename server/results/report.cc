#include "server/results/report.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/decimal.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "base/tool.h"
#include "proto/reflect/spec_yaml.h"
#include "server/analysis/samples.h"
#include "server/config/engine_config.h"
#include "server/config/fields.h"
#include "server/config/program.h"
#include "server/lookup/names.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/style.h"
#include "server/results/analysis_tables.h"
#include "server/results/figures.h"
#include "storage/blobs.h"

namespace ablate::results {
namespace {

constexpr char kStreamsPath[] = "model.init.streams";
constexpr const char* kSizePaths[] = {"model.width", "model.layers", "model.heads",
                                      "model.context"};
constexpr char kByName[] = "by_name";

std::string TimeText(storage::Micros time) {
  if (time == 0) return "";
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromUnixMicros(time), absl::UTCTimeZone());
}

// Quotes a word for a shell if that is necessary.
std::string ShellWord(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           std::string("_./=+-").find(c) != std::string::npos;
  });
  return plain ? text : process::ShellWord(text);
}

// Returns the names of the data sets that cells train on, and whether they are read as documents.
std::map<std::string, bool> DatasetNames(const TrainedGrid& grid) {
  std::map<std::string, bool> names;
  const auto add = [&names](const spec::FieldValues& values) {
    for (const absl::string_view path : spec::kDatasetPaths) {
      const auto found = values.find(std::string(path));
      if (found == values.end() || found->second.empty()) continue;
      names[found->second] |= absl::StartsWith(path, "task.documents.");
    }
  };
  add(grid.base);
  for (const report::Cell& cell : grid.input.cells) add(cell.changed);
  return names;
}

absl::StatusOr<std::vector<html::DataSet>> DataSetsOf(storage::Store* store,
                                                      const TrainedGrid& grid) {
  std::vector<html::DataSet> sets;
  for (const auto& [name, has_documents] : DatasetNames(grid)) {
    const auto found = lookup::FindDataset({store, storage::kServer}, name, "dataset");
    // A data set may have been deleted or renamed since the runs were trained.
    if (absl::IsNotFound(found.status())) continue;
    if (!found.ok()) return found.status();
    sets.push_back({name, found->sha256, found->bytes, has_documents ? found->documents : 0});
  }
  return sets;
}

// Returns true if all cells draw their initial weights by name, so that equal seeds share them.
bool SharesWeights(const TrainedGrid& grid) {
  const auto base = grid.base.find(kStreamsPath);
  if (base == grid.base.end() || base->second != kByName) return false;
  return std::all_of(grid.input.cells.begin(), grid.input.cells.end(),
                     [](const report::Cell& cell) {
                       const auto changed = cell.changed.find(kStreamsPath);
                       return changed == cell.changed.end() || changed->second == kByName;
                     });
}

void CountCells(const TrainedGrid& grid, html::Provenance* provenance) {
  std::set<std::string> runs;
  for (size_t i = 0; i < grid.cells.size(); ++i) {
    const report::Cell& cell = grid.input.cells[i];
    const bool first = runs.insert(grid.cells[i].run).second;
    if (first) provenance->device_seconds += cell.device_seconds.value_or(0);
    if (grid.cells[i].reused) ++provenance->reused;
    if (first && grid.cells[i].origin_step > 0) ++provenance->continued[grid.cells[i].origin_step];
    if (cell.trainer.empty()) continue;  // not trained yet
    ++provenance->trainers[cell.trainer];
    ++provenance->versions[cell.version];
    ++provenance->devices[cell.device];
    if (!cell.environment.empty()) ++provenance->environments[cell.environment];
  }
  provenance->cells = grid.cells.size();
  provenance->runs = runs.size();
}

absl::StatusOr<html::Provenance> ProvenanceOf(storage::Store* store, const ComparedGrid& compared,
                                              const v1::CompareRequest& request,
                                              const std::string& output) {
  const TrainedGrid& grid = compared.grid;
  html::Provenance provenance;
  provenance.owner = grid.record.owner;
  provenance.extends = grid.record.extends;
  provenance.created = TimeText(grid.record.create_time);
  provenance.ended = TimeText(grid.record.end_time);
  provenance.spec_yaml = reflect::SpecYaml(grid.spec);
  provenance.spec_sha256 = Sha256Hex(provenance.spec_yaml);
  ASSIGN_OR_RETURN(provenance.data_sets, DataSetsOf(store, grid));
  CountCells(grid, &provenance);
  provenance.spec_file = absl::StrCat(grid.record.name, ".yaml");
  provenance.submit_command =
      absl::StrCat("ablate submit ", ShellWord(provenance.spec_file),
                   grid.record.private_to.empty() ? "" : " --private", " --wait");
  // A new submission gets a new id.
  provenance.report_command = ReportCommand({"EXPERIMENT"}, request, output);
  return provenance;
}

constexpr char kStepsPath[] = "training.steps";

// Returns "1,000 steps"; "" if runs have different lengths.
std::string StepsText(const TrainedGrid& grid) {
  const std::optional<std::string> steps = SharedValue(grid, kStepsPath);
  int64_t count = 0;
  if (!steps.has_value() || !absl::SimpleAtoi(*steps, &count)) return "";
  return absl::StrCat(text::Grouped(count), count == 1 ? " step" : " steps");
}

std::string ReadAtText(const ComparedGrid& compared) {
  if (compared.comparison.at.has_value()) {
    return absl::StrCat("at step ", *compared.comparison.at);
  }
  const std::string steps = StepsText(compared.grid);
  return steps.empty() ? "at the end of each run" : absl::StrCat("after ", steps);
}

// Returns "one data set, one model size, 1,000 steps. Seeds vary the held-out documents, the order
// of the data and the initial weights jointly".
std::string ScopeText(const TrainedGrid& grid) {
  if (!spec::IsModel(grid.spec.base())) return "";  // only its author knows what seeds vary
  const std::map<std::string, bool> data = DatasetNames(grid);
  const bool documents =
      std::any_of(data.begin(), data.end(), [](const auto& one) { return one.second; });
  std::vector<std::string> bounds;
  bounds.push_back(data.empty()       ? "one synthetic task"
                   : data.size() == 1 ? "one data set"
                                      : absl::StrCat("these ", data.size(), " data sets"));
  const bool one_size =
      std::all_of(std::begin(kSizePaths), std::end(kSizePaths),
                  [&grid](const char* path) { return SharedValue(grid, path).has_value(); });
  bounds.emplace_back(one_size ? "one model size" : "these model sizes");
  if (const std::string steps = StepsText(grid); !steps.empty()) bounds.push_back(steps);
  const char* varied = documents      ? "which documents are held out, the order of the data"
                       : data.empty() ? "the sequences"
                                      : "the order of the data";
  const std::string scope = absl::StrJoin(bounds, ", ");
  if (grid.input.unit != report::Unit::kSeed) {
    return absl::StrCat(scope, ", and one training seed.");
  }
  return absl::StrCat(scope, ". Seeds vary ", varied, " and the initial weights jointly.");
}

// Returns everything except figures and samples. `compared` is the result for `request`.
absl::StatusOr<html::Experiment> ContentsOf(storage::Store* store, const ComparedGrid& compared,
                                            const v1::CompareRequest& request,
                                            const std::string& output) {
  ASSIGN_OR_RETURN(auto provenance, ProvenanceOf(store, compared, request, output));
  html::Experiment experiment;
  experiment.id = compared.grid.record.id;
  experiment.question = compared.grid.spec.question();
  experiment.why_cancelled = compared.grid.record.why_cancelled;
  experiment.read_at = ReadAtText(compared);
  experiment.scope = ScopeText(compared.grid);
  experiment.colours = figure::StyleIndices(compared.comparison);
  experiment.shared_weights = SharesWeights(compared.grid);
  experiment.comparison = compared.comparison;
  for (size_t row = 0; row < compared.comparison.rows.size(); ++row) {
    experiment.changes.push_back(ChangedFields(compared, row));
  }
  experiment.windows = compared.windows;
  experiment.provenance = std::move(provenance);
  return experiment;
}

constexpr size_t kMaxSampledSettings =
    12;  // settings to sample; the rest of a large grid is left out

std::string HowText(const engine::SampleOptions& options, size_t left_out) {
  std::string text = absl::StrCat(
      "Sampled from the last checkpoint of one run per setting, the converged run of lowest seed, "
      "at temperature ",
      text::ShortestDecimal(options.temperature));
  if (options.top_k > 0) absl::StrAppend(&text, ", top-k ", options.top_k);
  if (options.top_p < 1) {
    absl::StrAppend(&text, ", top-p ", text::ShortestDecimal(options.top_p));
  }
  absl::StrAppend(&text, ". The sampling seed is ", options.seed, " for every setting.");
  if (left_out > 0) {
    absl::StrAppend(&text, " The first ", kMaxSampledSettings, " settings are shown; ", left_out,
                    " are left out.");
  }
  return text;
}

// Fills in the samples of the run.
absl::Status Ask(const ReportSources& sources, const std::string& run,
                 const engine::SampleOptions& options, const lookup::Cancelled& cancelled,
                 html::Samples::Setting* setting) {
  ASSIGN_OR_RETURN(auto set, analysis::MakeSamples(sources.store, sources.analyses,
                                                   {run, std::nullopt, options}, cancelled));
  for (engine::Sample& sample : set.samples) setting->texts.push_back(std::move(sample.text));
  if (setting->texts.empty()) return absl::OkStatus();
  const auto count = static_cast<double>(setting->texts.size());
  setting->distinct = set.counts.distinct / count;
  if (set.are_documents) setting->in_training = set.counts.in_training_data / count;
  return absl::OkStatus();
}

// Returns true if the next setting would wait as long for the same reason: no worker, a slow or a
// busy one.
bool WouldFailAgain(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status);
}

// Makes the samples that the spec's `analyses` ask for, from one run per setting: the converged one
// of the lowest seed. Nothing if they ask for none; a setting without samples has the reason.
std::optional<html::Samples> SamplesOf(const ReportSources& sources, const ComparedGrid& compared,
                                       const lookup::Cancelled& cancelled) {
  const auto& analyses = compared.grid.spec.analyses();
  const auto wanted =
      std::find_if(analyses.begin(), analyses.end(),
                   [](const v1::AnalysisSpec& analysis) { return analysis.has_samples(); });
  if (wanted == analyses.end()) return std::nullopt;
  const engine::SampleOptions options = spec::ToSampleOptions(wanted->samples());
  const size_t rows = compared.comparison.rows.size();
  const size_t shown = std::min(rows, kMaxSampledSettings);
  html::Samples samples;
  samples.how = HowText(options, rows - shown);
  absl::Status last;
  for (size_t row = 0; row < shown && !cancelled(); ++row) {
    html::Samples::Setting setting;
    setting.label = compared.comparison.rows[row].label;
    const std::vector<ChosenRun> converged = Converged(compared.chosen[row]);
    if (converged.empty()) {
      setting.missing = "No run of this setting has converged.";
    } else {
      if (!WouldFailAgain(last)) {
        last =
            Ask(sources, compared.grid.cells[converged[0].cell].run, options, cancelled, &setting);
      }
      if (!last.ok()) setting.missing = absl::StrCat("No samples: ", last.message(), ".");
    }
    samples.settings.push_back(std::move(setting));
  }
  return samples;
}

// Returns the figure of the first screen: the differences over training or, if there is no such
// curve or so many that each would be small, the differences at the end.
std::optional<size_t> DecisiveOf(const report::Comparison& comparison,
                                 const std::vector<html::Figure>& figures) {
  const bool many = comparison.rows.size() > figure::kMaxInOnePanel;
  std::optional<size_t> decisive;
  for (size_t i = 0; i < figures.size(); ++i) {
    if (figures[i].svg.empty()) continue;
    if (figures[i].name == figure::kDifference.name && !many) return i;
    if (figures[i].name == figure::kForest.name) decisive = i;
  }
  return decisive;
}

}  // namespace

std::string ReportCommand(const std::vector<std::string>& experiments,
                          const v1::CompareRequest& request, const std::string& output) {
  std::string command = "ablate report";
  for (const std::string& experiment : experiments) {
    absl::StrAppend(&command, " ", ShellWord(experiment));
  }
  const auto add = [&command](const char* option, const std::string& value) {
    absl::StrAppend(&command, " ", option, " ", ShellWord(value));
  };
  if (!request.key().empty()) add("--key", request.key());
  if (!request.by().empty()) add("--by", request.by());
  const std::map<std::string, std::string> sorted(request.baseline().begin(),
                                                  request.baseline().end());
  for (const auto& [axis, label] : sorted) add("--baseline", absl::StrCat(axis, "=", label));
  if (request.has_at() && request.at() >= 0) add("--at", absl::StrCat(request.at()));
  add("-o", output.empty() ? "report.html" : output);
  return command;
}

absl::StatusOr<html::Experiment> DescribeExperiment(
    const ReportSources& sources, StoredExperiment stored, const v1::CompareRequest& request,
    const std::string& output, const std::string& prefix, const lookup::Cancelled& cancelled) {
  ASSIGN_OR_RETURN(auto compared, CompareGrid(sources.store, std::move(stored), request,
                                              {cancelled, 0}, AnalysisNumbers::kAll));
  RETURN_IF_ERROR(AddWindows(sources.store, cancelled, &compared));
  auto experiment = ContentsOf(sources.store, compared, request, output);
  if (!experiment.ok()) return experiment.status();
  ASSIGN_OR_RETURN(experiment->figures, ReportFigures(sources.store, compared, prefix, cancelled));
  experiment->decisive = DecisiveOf(compared.comparison, experiment->figures);
  ASSIGN_OR_RETURN(experiment->analyses, AnalysisTables(sources.store, compared, cancelled));
  experiment->samples = SamplesOf(sources, compared, cancelled);
  return experiment;
}

}  // namespace ablate::results
