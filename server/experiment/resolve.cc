#include "server/experiment/resolve.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "proto/yaml/dataset_paths.h"
#include "server/config/engine_config.h"
#include "server/config/fields.h"
#include "server/config/problems.h"
#include "server/experiment/analysis.h"
#include "server/experiment/axes.h"
#include "server/experiment/checks.h"
#include "server/experiment/datasets.h"
#include "server/experiment/expand.h"
#include "server/experiment/expand_program.h"
#include "server/experiment/experiment_analyses.h"
#include "server/experiment/grid.h"
#include "server/experiment/metrics.h"
#include "server/experiment/notes.h"
#include "server/experiment/program_checks.h"
#include "server/experiment/writes.h"

namespace ablate::spec {
namespace {

using Overrides = std::map<std::string, google::protobuf::Value>;

class Resolver {
 public:
  Resolver(v1::ExperimentSpec spec, const Surroundings& surroundings)
      : surroundings_(surroundings), datasets_(surroundings) {
    resolution_.spec = std::move(spec);
  }

  Resolution Run(const Overrides& overrides) {
    CheckWellFormed(resolution_.spec, &problems_);
    const bool well_formed = problems_.empty();
    // These problems aren't about cells, so cells are checked whatever is found here.
    Problems apart;
    CheckExperiment(resolution_.spec, &apart);
    if (resolution_.spec.base().has_imported()) {
      apart.Add("base.imported", "", "results can't be submitted",
                "`ablate import` with their files");
    }
    CheckAnalyses(resolution_.spec, &apart);
    // Reported, and too many to check each.
    if (resolution_.spec.analyses_size() > kMaxAnalyses) resolution_.spec.clear_analyses();
    CheckAnalyzedData(&apart);
    ReadOverrides(overrides);
    const bool labels_are_good = ReadGrid();
    CheckWriters();
    if (CheckSize(resolution_.spec.limits(), &grid_, &problems_) && well_formed) {
      const bool is_program = resolution_.spec.base().has_program();
      if (!is_program) resolution_.spec.mutable_base()->clear_settings();  // reported
      const auto expand = is_program ? ExpandProgram : Expand;
      expand({resolution_.spec.base(), grid_, overrides_, bad_, resolution_.spec.report().primary(),
              labels_are_good},
             surroundings_, &datasets_, &problems_, &resolution_);
    }
    resolution_.sound = problems_.empty();
    CheckRecorded();
    CheckSampled();
    CheckAnalyzedSettings();
    apart.Add(problems_.Take());
    problems_ = std::move(apart);
    Finish();
    return std::move(resolution_);
  }

 private:
  void ReadOverrides(const Overrides& overrides) {
    v1::BaseSpec* base = resolution_.spec.mutable_base();
    if (overrides.size() > kMaxOverrides) {
      problems_.Add(TooManyOverrides(overrides.size()));
    } else {
      for (const auto& [path, value] : overrides) {
        overrides_.push_back({path, value, absl::StrCat("overrides", reflect::Subscript(path))});
      }
    }
    std::vector<Problem> found;
    const v1::BaseSpec declared = *base;
    for (const Write& write : overrides_) {
      if (std::optional<Problem> wrong = CheckSetting(declared, write)) {
        found.push_back(*std::move(wrong));
        continue;
      }
      // An override that can't be applied must not count as a writer later.
      const size_t before = found.size();
      reflect::SetPath(write.path, write.value, write.source, base, &found);
      if (found.size() == before) {
        applied_.push_back(write);
      } else if (NamesField(write.path)) {
        bad_.insert(write.path);
      }
    }
    problems_.Add(std::move(found));
    overrides_ = std::move(applied_);
    bad_.merge(CheckFields(
        *base,
        [this](const std::string& path) {
          const std::string source = WrittenBy(overrides_, path);
          return source.empty() ? absl::StrCat("base.", path) : source;
        },
        &problems_));
  }

  // Returns true if it found no problem.
  bool ReadGrid() {
    const size_t before = problems_.found();
    grid_.axes = ReadAxes(resolution_.spec, &problems_);
    grid_.exclusions = ReadExclusions(resolution_.spec, grid_.axes, &problems_);
    grid_.seeds = ReadSeeds(resolution_.spec.seeds(), &problems_);
    return problems_.found() == before;
  }

  // Axes first, so that a conflicting override is reported.
  void CheckWriters() {
    std::vector<Claim> claims;
    int writer = 0;
    for (const AxisPlan& axis : grid_.axes) {
      for (const Point& point : axis.points) {
        if (point.broken) continue;
        for (const Write& write : point.writes) {
          const std::string source =
              axis.is_field ? absl::StrCat(axis.source, ".field") : write.source;
          claims.push_back({write.path, source, writer});
        }
      }
      ++writer;
    }
    for (const Write& write : overrides_) claims.push_back({write.path, write.source, writer++});
    CheckClaims(claims, &problems_);
  }

  // Checks that data sets read by analyses exist, and that their kind can be read.
  void CheckAnalyzedData(Problems* problems) {
    for (int i = 0; i < resolution_.spec.analyses_size(); ++i) {
      const std::string& name = resolution_.spec.analyses(i).inputs().dataset();
      if (name.empty()) continue;
      const auto& facts = datasets_.Find(name, /*as_text=*/false);
      if (facts.ok()) continue;
      // An error about an invalid name contains the field and the allowed names already.
      absl::string_view why = facts.status().message();
      absl::ConsumePrefix(&why, "dataset: ");
      problems->Add(absl::StrCat("analyses[", i, "].inputs.dataset"), name,
                    why.substr(0, why.find("; expected ")), "a data set of the server");
    }
    for (const AskedAnalysis& asked : AskedAnalyses(resolution_.spec)) {
      const std::string& name = asked.inputs.dataset();
      if (name.empty() || !asked.inputs.prompt().empty()) continue;
      const auto& facts = datasets_.Find(name);
      if (!facts.ok()) continue;
      Problems found;
      CheckDatasetKind(asked.analysis, name, facts->kind, &found);
      AddProblemsOf(asked, "", std::move(found), problems);
    }
  }

  // Checks that every run records the reported metrics, if that needs a setting.
  void CheckRecorded() {
    const v1::ReportSpec& report = resolution_.spec.report();
    CheckRecorded("report.primary", report.primary());
    for (int i = 0; i < report.summaries_size(); ++i) {
      CheckRecorded(absl::StrCat("report.summaries[", i, "].key"), report.summaries(i).key());
    }
  }

  void CheckRecorded(const std::string& field, const std::string& key) {
    const std::optional<MetricNeeds> needs = FindMetric(key);
    if (!needs.has_value() || !needs->any()) return;
    for (size_t i = 0; i < resolution_.bad.size(); ++i) {
      const ResolvedCell& cell = FirstCell(i);
      const LackedSetting lacked = SettingLacked(*needs, cell.run.spec());
      if (lacked.path.empty() || AnyBad(resolution_.bad[i], {lacked.path})) continue;
      problems_.Add(field, key, absl::StrCat(key, " isn't recorded by ", cell.name),
                    absl::StrCat("eval/loss, or ", lacked.expected, " in every cell"));
      return;
    }
  }

  // A report gives no prompt, and without one a sample of a text begins after a line feed.
  void CheckSampled() {
    for (int i = 0; i < resolution_.spec.analyses_size(); ++i) {
      if (!resolution_.spec.analyses(i).has_samples()) continue;
      for (size_t setting = 0; setting < resolution_.bad.size(); ++setting) {
        const ResolvedCell& cell = FirstCell(setting);
        if (!LacksLineFeed(cell.run.spec().task())) continue;
        problems_.Add(absl::StrCat("analyses[", i, "].samples"), "",
                      absl::StrCat("samples start after a line feed, and the text of ", cell.name,
                                   " has none"),
                      "texts with line feeds");
        break;
      }
    }
  }

  void CheckAnalyzedSettings() {
    std::vector<AnalyzedSetting> settings;
    for (size_t i = 0; i < resolution_.configs.size(); ++i) {
      settings.push_back(
          {NameOfSetting(resolution_.parameters[i]), &resolution_.configs[i], &resolution_.bad[i]});
    }
    const auto text_bytes = [this](const std::string& dataset) -> uint64_t {
      const auto& facts = datasets_.Find(dataset);
      return facts.ok() && facts->kind == DatasetKind::kTagged ? facts->code_points : 0;
    };
    resolution_.analyses =
        CheckAnalyzed(resolution_.spec, settings, text_bytes, &problems_, &resolution_.notes);
  }

  // Returns the first cell; each setting has one for every seed.
  const ResolvedCell& FirstCell(size_t setting) const {
    return resolution_.cells[setting * grid_.seeds.size()];
  }

  // Asks of a text that is divided into characters; byte-level tokenizers have a line feed.
  bool LacksLineFeed(const v1::TaskSpec& task) const {
    if (!task.has_text() || task.text().tokenizer() != kCharacters) return false;
    const DatasetFacts* facts =
        datasets_.Known(absl::StripPrefix(task.text().dataset(), "datasets/"), /*as_text=*/true);
    return facts != nullptr && facts->code_points > 0 && facts->line_ends == 0;
  }

  void Finish() {
    if (!problems_.empty()) {
      resolution_.problems = problems_.Take();
      return;
    }
    const auto add = [this](std::vector<std::string> notes) {
      resolution_.notes.insert(resolution_.notes.end(), notes.begin(), notes.end());
    };
    add(ExtraChanges(grid_.axes, resolution_.spec.base()));
    add(ParameterMismatches(grid_.axes, resolution_.parameters));
    add(SharedRuns(resolution_.cells));
    add(StartNotes(resolution_.parameters, resolution_.configs));
    add(CutNotes(resolution_.cells, datasets_));
    add(TextNotes(resolution_.cells, datasets_));
    ReplaceSwitches(grid_.axes, &resolution_.spec);
    NameDatasets();
  }

  // Replaces display names, whose meaning may change, by datasets/ID.
  void NameDatasets() {
    v1::BaseSpec* base = resolution_.spec.mutable_base();
    if (base->has_program()) return NameFiles(base->mutable_program());
    v1::TaskSpec* task = base->mutable_task();
    std::string* name = MutableDatasetOf(task);
    if (name != nullptr) Rename(name);
    if (std::string* found = MutableTokenizerOf(task)) RenameTokenizer(found);
    for (v1::AnalysisSpec& analysis : *resolution_.spec.mutable_analyses()) {
      if (analysis.inputs().dataset().empty()) continue;
      Rename(analysis.mutable_inputs()->mutable_dataset());
    }
    for (v1::Axis& axis : *resolution_.spec.mutable_axes()) {
      for (v1::Setting& setting : *axis.mutable_settings()) {
        for (auto& [path, value] : *setting.mutable_set()) {
          for (const absl::string_view dataset : kDatasetPaths) {
            if (std::string* found = FindIn(path, dataset, &value)) Rename(found);
          }
          for (const absl::string_view tokenizer : kTokenizerPaths) {
            if (std::string* found = FindIn(path, tokenizer, &value)) RenameTokenizer(found);
          }
        }
      }
    }
  }

  void NameFiles(v1::ProgramSpec* program) {
    if (program->has_files()) Rename(program->mutable_files());
    if (program->has_data()) Rename(program->mutable_data());
    for (v1::Axis& axis : *resolution_.spec.mutable_axes()) {
      for (v1::Setting& setting : *axis.mutable_settings()) {
        for (auto& [path, value] : *setting.mutable_set()) {
          if (!yaml::IsFilesPath(path) || !value.has_string_value()) continue;
          Rename(value.mutable_string_value());
        }
      }
    }
  }

  // Returns the text that a setting writes at `rest`, which may be below a message that it
  // replaces, at `path`; null if it writes none.
  static std::string* FindIn(absl::string_view path, absl::string_view rest,
                             google::protobuf::Value* value) {
    if (!absl::ConsumePrefix(&rest, path)) return nullptr;
    while (!rest.empty() && value->has_struct_value()) {
      rest.remove_prefix(1);
      const std::string name(rest.substr(0, rest.find('.')));
      rest.remove_prefix(name.size());
      const auto member = value->mutable_struct_value()->mutable_fields()->find(name);
      if (member == value->mutable_struct_value()->mutable_fields()->end()) return nullptr;
      value = &member->second;
    }
    return rest.empty() && value->has_string_value() ? value->mutable_string_value() : nullptr;
  }

  void RenameTokenizer(std::string* name) {
    if (NamesTokenizer(*name)) Rename(name);
  }

  void Rename(std::string* name) {
    const auto& facts = datasets_.Find(*name);
    if (facts.ok()) *name = absl::StrCat("datasets/", facts->id);
  }

  const Surroundings& surroundings_;
  Datasets datasets_;
  Problems problems_;
  std::vector<Write> overrides_;
  std::vector<Write> applied_;
  BadPaths bad_;
  Grid grid_;
  Resolution resolution_;
};

}  // namespace

Problem TooManyOverrides(size_t count) {
  return reflect::MakeProblem("overrides", absl::StrCat(count),
                              absl::StrCat(text::Grouped(count), " entries"),
                              absl::StrCat("at most ", kMaxOverrides));
}

Resolution Resolve(v1::ExperimentSpec spec, const Overrides& overrides,
                   const Surroundings& surroundings) {
  return Resolver(std::move(spec), surroundings).Run(overrides);
}

}  // namespace ablate::spec
