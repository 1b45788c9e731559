#include "server/experiment/expand_program.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/reflect/text.h"
#include "proto/yaml/dataset_paths.h"
#include "server/config/program.h"
#include "server/experiment/fingerprint.h"
#include "server/experiment/merge.h"
#include "server/experiment/program_checks.h"

namespace ablate::spec {
namespace {

// A guess of a run's time if no equal one has been measured.
constexpr double kGuessedMicros = 60e6;
constexpr char kEnvironmentPath[] = "program.environment";
constexpr char kDevicePath[] = "program.device";
constexpr char kCores[] = "cpu";

class ProgramExpander {
 public:
  ProgramExpander(const ExpandInput& input, const Surroundings& surroundings, Datasets* datasets,
                  Problems* problems, Resolution* resolution)
      : input_(input),
        surroundings_(surroundings),
        datasets_(datasets),
        problems_(problems),
        resolution_(resolution),
        merger_(input) {}

  void Visit(const Indexes& indexes, size_t changed) {
    const Merged merged = merger_.Merge(indexes, changed);
    if (input_.labels_are_good) merger_.CheckName(indexes, problems_);
    if (merged.broken) return;
    CheckProgram(merged.spec, problems_);
    if (!merged.spec.has_program()) return;  // an axis cleared it; reported by the base's check
    const Sources sources(input_.overrides, merged.points);
    ResolvedCell pattern;
    pattern.labels = merger_.LabelsOf(indexes);
    v1::BaseSpec& spec = *pattern.run.mutable_spec();
    spec = merged.spec;
    FillProgram(&spec);
    v1::ProgramSpec* program = spec.mutable_program();
    if (program->has_files()) {
      pattern.dataset_sha256 =
          FindFiles(sources.Find(yaml::kFilesPath, merged.spec), program->mutable_files());
    }
    if (program->has_data()) {
      pattern.data_sha256 =
          FindFiles(sources.Find(yaml::kDataPath, merged.spec), program->mutable_data());
    }
    pattern.device_kind = v1::ProgramDevice::Value_Name(program->device());
    const std::string environment = FindEnvironment(pattern.device_kind, sources, merged);
    AddSeeds(merger_.NameOf(indexes), environment, std::move(pattern));
  }

 private:
  // Replaces the name of a data set of files by its ID. Returns its hash.
  std::string FindFiles(const Source& source, std::string* name) {
    if (name->empty()) return "";
    const auto& facts = datasets_->Find(*name);
    if (facts.ok() && facts->kind == DatasetKind::kFiles) {
      *name = absl::StrCat("datasets/", facts->id);
      return facts->sha256;
    }
    problems_->Add(source.reported_as, reflect::ShortText(*name),
                   facts.ok()
                       ? absl::StrCat(reflect::ShortText(*name), " doesn't hold a program's files")
                       : std::string(facts.status().message()),
                   "files that were uploaded; `ablate submit` uploads those that a file names");
    return "";
  }

  // Returns what the workers of a kind of device say of the environment.
  std::string FindEnvironment(const std::string& device_kind, const Sources& sources,
                              const Merged& merged) {
    const std::string& name = merged.spec.program().has_environment()
                                  ? merged.spec.program().environment()
                                  : kDefaultEnvironment;
    std::vector<std::string> names;
    if (const auto on = surroundings_.environments.find(device_kind);
        on != surroundings_.environments.end()) {
      if (const auto known = on->second.find(name); known != on->second.end()) return known->second;
      for (const auto& [other, text] : on->second) names.push_back(other);
    }
    if (names.empty()) {
      ReportNoPrograms(device_kind, sources, merged);
    } else {
      problems_->Add(sources.Find(kEnvironmentPath, merged.spec).reported_as, name,
                     absl::StrCat("no worker has the environment ", reflect::Quoted(name)),
                     reflect::AnyOf(names));
    }
    return "";
  }

  void ReportNoPrograms(const std::string& device_kind, const Sources& sources,
                        const Merged& merged) {
    const auto why = surroundings_.no_programs.find(device_kind);
    const bool gpu = device_kind != kCores;
    problems_->Add(
        sources.Find(gpu ? kDevicePath : kEnvironmentPath, merged.spec).reported_as,
        gpu ? device_kind : merged.spec.program().environment(),
        absl::StrCat(gpu ? "no worker takes programs on a GPU" : "no worker takes programs",
                     why == surroundings_.no_programs.end() ? "" : ": ",
                     why == surroundings_.no_programs.end() ? "" : why->second),
        gpu ? "cpu, or a server with a GPU and --programs sandboxed"
            : "a worker started with --programs sandboxed");
  }

  void AddSeeds(const std::string& name, const std::string& environment, ResolvedCell pattern) {
    const v1::ProgramSpec& program = pattern.run.spec().program();
    pattern.trainer = ProgramTrainer(program.environment());
    pattern.guessed_speed = {.pass_micros = kGuessedMicros, .passes_per_step = 1};
    const std::string identity =
        ProgramIdentity(pattern.run.spec(), {.files_sha256 = pattern.dataset_sha256,
                                             .data_sha256 = pattern.data_sha256,
                                             .environment = environment});
    pattern.shape = ShortHash(absl::StrCat("ablate program shape 1\n", identity));
    for (const uint32_t seed : input_.grid.seeds) {
      ResolvedCell cell = pattern;
      cell.name = absl::StrCat(name, name.empty() ? "s" : "-s", seed);
      cell.seed = seed;
      cell.run.set_seed(seed);
      cell.fingerprint =
          ShortHash(absl::StrCat("ablate program run 1\n", identity, "seed=", seed, "\n"));
      cell.trajectory = cell.fingerprint;
      resolution_->cells.push_back(std::move(cell));
    }
    v1::SettingParameters& row = resolution_->parameters.emplace_back();
    for (const auto& [axis, label] : pattern.labels) (*row.mutable_labels())[axis] = label;
  }

  const ExpandInput& input_;
  const Surroundings& surroundings_;
  Datasets* datasets_;
  Problems* problems_;
  Resolution* resolution_;
  Merger merger_;
};

}  // namespace

void ExpandProgram(const ExpandInput& input, const Surroundings& surroundings, Datasets* datasets,
                   Problems* problems, Resolution* resolution) {
  ProgramExpander expander(input, surroundings, datasets, problems, resolution);
  VisitGrid(input.grid, [&expander](const Indexes& indexes, size_t changed) {
    expander.Visit(indexes, changed);
  });
}

}  // namespace ablate::spec
