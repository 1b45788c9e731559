#include "server/imports/experiment.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/decimal.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "server/config/problems.h"
#include "server/config/program.h"
#include "server/experiment/axes.h"
#include "server/experiment/checks.h"
#include "server/experiment/fingerprint.h"
#include "server/experiment/writes.h"
#include "server/lookup/errors.h"

namespace ablate::imports {
namespace {

using google::protobuf::Value;

void SetSetting(const std::string& path, const Value& value, google::protobuf::Struct* settings) {
  const std::vector<std::string> parts = absl::StrSplit(path, '.');
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    settings = (*settings->mutable_fields())[parts[i]].mutable_struct_value();
  }
  (*settings->mutable_fields())[parts.back()] = value;
}

v1::Axis SpecOfAxis(const Axis& axis) {
  const std::string path = absl::StrCat("settings.", axis.path);
  v1::Axis spec;
  spec.set_name(axis.name);
  if (axis.tuned) spec.set_tune(true);
  if (axis.values.front().has_number_value()) {
    spec.set_field(path);
    for (const Value& value : axis.values) *spec.add_values() = value;
    return spec;
  }
  for (size_t i = 0; i < axis.values.size(); ++i) {
    v1::Setting* setting = spec.add_settings();
    setting->set_label(axis.labels[i]);
    (*setting->mutable_set())[path] = axis.values[i];
  }
  return spec;
}

v1::ExperimentSpec SpecOf(const v1::ImportOptions& options, const Reading& reading,
                          const std::vector<uint32_t>& seeds) {
  v1::ExperimentSpec spec;
  spec.set_name(options.name());
  if (!options.question().empty()) spec.set_question(options.question());
  spec.mutable_base()->mutable_imported()->set_source(options.source());
  google::protobuf::Struct* settings = spec.mutable_base()->mutable_settings();
  for (const Axis& axis : reading.axes) {
    SetSetting(axis.path, axis.values.front(), settings);
    *spec.add_axes() = SpecOfAxis(axis);
  }
  for (const auto& [path, value] : reading.constants) SetSetting(path, value, settings);
  spec.mutable_seeds()->mutable_list()->Add(seeds.begin(), seeds.end());
  spec.mutable_report()->set_primary(reading.primary);
  if (reading.better.has_value()) spec.mutable_report()->set_better(*reading.better);
  if (options.has_margin()) spec.mutable_report()->set_margin(options.margin());
  return spec;
}

void AppendBytes(const void* data, size_t size, std::string* bytes) {
  bytes->append(static_cast<const char*>(data), size);
}

// Returns a hash of all points.
std::string HashOf(const storage::ImportedResult& result) {
  std::string bytes;
  for (const storage::Column& column : result.series) {
    absl::StrAppend(&bytes, column.key, "\n", column.steps.size(), "\n");
    AppendBytes(column.steps.data(), column.steps.size() * sizeof(uint32_t), &bytes);
    AppendBytes(column.values.data(), column.values.size() * sizeof(double), &bytes);
  }
  return Sha256Hex(bytes);
}

class Maker {
 public:
  Maker(const Reading& reading, const std::string& private_to, std::vector<Run>* runs)
      : reading_(reading), private_to_(private_to), runs_(*runs) {
    if (!reading.by_item) return;
    for (const Cell& cell : reading.cells) {
      for (const std::string& item : runs_[cell.run].series.at(reading.metric).items) {
        items_.emplace(item, 0);
      }
    }
    uint32_t next = 0;
    for (auto& [item, seed] : items_) seed = next++;
  }

  std::vector<uint32_t> Seeds() const {
    std::set<uint32_t> seeds;
    for (const Cell& cell : reading_.cells) seeds.insert(cell.seed);
    if (!reading_.by_item) return {seeds.begin(), seeds.end()};
    std::vector<uint32_t> numbers;
    for (const auto& [item, seed] : items_) numbers.push_back(seed);
    return numbers;
  }

  absl::StatusOr<Imported> Make(v1::ExperimentSpec spec) {
    spec::Problems problems;
    spec::CheckWellFormed(spec, &problems);
    spec::CheckExperiment(spec, &problems);
    plans_ = spec::ReadAxes(spec, &problems);
    if (!problems.empty()) return lookup::InvalidFields(problems.Take());
    imported_.spec = std::move(spec);
    for (const Cell& cell : reading_.cells) {
      const spec::ResolvedCell pattern = PatternOf(cell);
      if (reading_.by_item) {
        AddItems(pattern, runs_[cell.run]);
      } else {
        AddCell(pattern, cell.seed, ResultOf(cell));
      }
    }
    return std::move(imported_);
  }

 private:
  // Returns a cell without what depends on the seed; its name is the part before the seed.
  spec::ResolvedCell PatternOf(const Cell& cell) const {
    spec::ResolvedCell pattern;
    v1::BaseSpec* spec = pattern.run.mutable_spec();
    *spec = imported_.spec.base();
    std::vector<std::string> parts;
    for (size_t axis = 0; axis < cell.labels.size(); ++axis) {
      const spec::Point& point = plans_[axis].points[cell.labels[axis]];
      std::vector<spec::Problem> known;  // none, because the axes have none
      spec::Apply(point.writes, spec, &known);
      pattern.labels.emplace_back(plans_[axis].name, point.label);
      parts.push_back(point.part);
    }
    pattern.name = absl::StrJoin(parts, "-");
    return pattern;
  }

  std::shared_ptr<storage::ImportedResult> NewResult(const Run& run, bool diverged) const {
    auto result = std::make_shared<storage::ImportedResult>();
    result->state = diverged ? storage::RunState::kDiverged : storage::RunState::kDone;
    result->start_time = run.start_time;
    result->end_time = run.end_time;
    return result;
  }

  std::shared_ptr<storage::ImportedResult> ResultOf(const Cell& cell) {
    Run& run = runs_[cell.run];
    auto result = NewResult(run, cell.diverged);
    for (auto& [key, series] : run.series) {
      const bool replaced = key == reading_.primary && key != reading_.metric;
      if (!series.items.empty() || replaced) continue;
      result->series.push_back({key, std::move(series.steps), std::move(series.values)});
    }
    if (reading_.primary != reading_.metric) {
      result->series.push_back({reading_.primary, {cell.step}, {cell.value}});
    }
    return result;
  }

  void AddItems(const spec::ResolvedCell& pattern, const Run& run) {
    const std::vector<std::string>& items = run.series.at(reading_.metric).items;
    for (size_t i = 0; i < items.size(); ++i) {
      const double value = run.series.at(reading_.metric).values[i];
      auto result = NewResult(run, !std::isfinite(value));
      result->series.push_back({reading_.metric, {0}, {value}});
      AddCell(pattern, items_.at(items[i]), std::move(result));
    }
  }

  void AddCell(spec::ResolvedCell cell, uint32_t seed,
               std::shared_ptr<storage::ImportedResult> result) {
    const std::string identity = spec::ImportedIdentity(cell.run.spec());
    absl::StrAppend(&cell.name, cell.name.empty() ? "s" : "-s", seed);
    cell.seed = seed;
    cell.run.set_seed(seed);
    const std::string hash = spec::ShortHash(absl::StrCat(
        "ablate imported run 1\n", identity, "seed=", seed, "\npoints=", HashOf(*result), "\n"));
    cell.fingerprint = spec::PrivateTo(private_to_, hash);
    storage::NewRun run;
    run.fingerprint = run.trajectory = cell.fingerprint;
    run.seed = seed;
    for (const storage::Column& column : result->series) {
      run.steps = std::max(run.steps, column.steps.back());
    }
    run.device_kind = "cpu";
    run.trainer = spec::kImportedTrainer;
    run.shape = spec::kImportedTrainer;
    run.spec = cell.run.SerializeAsString();
    run.open_steps = true;
    run.result = std::move(result);
    imported_.runs.push_back(std::move(run));
    imported_.cells.push_back(std::move(cell));
  }

  const Reading& reading_;
  const std::string& private_to_;
  std::vector<Run>& runs_;
  std::map<std::string, uint32_t> items_;  // seed of each item
  std::vector<spec::AxisPlan> plans_;
  Imported imported_;
};

}  // namespace

absl::StatusOr<Imported> MakeExperiment(const v1::ImportOptions& options, const Reading& reading,
                                        const std::string& private_to, Results* results) {
  Maker maker(reading, private_to, &results->runs());
  const std::vector<uint32_t> seeds = maker.Seeds();
  if (seeds.size() > kMaxSeeds) {
    return lookup::InvalidField(
        "runs",
        absl::StrCat("there are ", text::Grouped(seeds.size()),
                     reading.by_item ? " items" : " seeds"),
        absl::StrCat("at most ", text::Grouped(kMaxSeeds), ". `ablate judge` takes more"));
  }
  return maker.Make(SpecOf(options, reading, seeds));
}

}  // namespace ablate::imports
