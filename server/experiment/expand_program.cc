#include "server/experiment/expand_program.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/reflect/text.h"
#include "server/config/program.h"
#include "server/experiment/fingerprint.h"
#include "server/experiment/merge.h"
#include "server/experiment/program_checks.h"

namespace ablate::spec {
namespace {

// A guess of a run's time if no equal one has been measured.
constexpr double kGuessedMicros = 60e6;
constexpr char kFilesPath[] = "program.files";
constexpr char kEnvironmentPath[] = "program.environment";

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
    FindFiles(sources, merged, &pattern);
    AddSeeds(merger_.NameOf(indexes), FindEnvironment(sources, merged), std::move(pattern));
  }

 private:
  // Replaces the name of the files' data set by its ID.
  void FindFiles(const Sources& sources, const Merged& merged, ResolvedCell* pattern) {
    v1::ProgramSpec* program = pattern->run.mutable_spec()->mutable_program();
    if (program->files().empty()) return;
    const auto& facts = datasets_->Find(program->files());
    if (facts.ok() && facts->kind == DatasetKind::kFiles) {
      pattern->dataset_sha256 = facts->sha256;
      program->set_files(absl::StrCat("datasets/", facts->id));
      return;
    }
    problems_->Add(
        sources.Find(kFilesPath, merged.spec).reported_as, reflect::ShortText(program->files()),
        facts.ok()
            ? absl::StrCat(reflect::ShortText(program->files()), " doesn't hold a program's files")
            : std::string(facts.status().message()),
        "files that were uploaded; `ablate submit` uploads those that a file names");
  }

  // Returns what the worker says of the environment.
  std::string FindEnvironment(const Sources& sources, const Merged& merged) {
    const std::string& name = merged.spec.program().has_environment()
                                  ? merged.spec.program().environment()
                                  : kDefaultEnvironment;
    const auto known = surroundings_.environments.find(name);
    if (known != surroundings_.environments.end()) return known->second;
    std::vector<std::string> names;
    for (const auto& [other, text] : surroundings_.environments) names.push_back(other);
    problems_->Add(
        sources.Find(kEnvironmentPath, merged.spec).reported_as, name,
        names.empty()
            ? absl::StrCat("no worker takes programs",
                           surroundings_.no_programs.empty() ? "" : ": ", surroundings_.no_programs)
            : absl::StrCat("no worker has the environment ", reflect::Quoted(name)),
        names.empty() ? "a worker started with --programs sandboxed" : reflect::AnyOf(names));
    return "";
  }

  void AddSeeds(const std::string& name, const std::string& environment, ResolvedCell pattern) {
    const v1::ProgramSpec& program = pattern.run.spec().program();
    pattern.trainer = ProgramTrainer(program.environment());
    pattern.device_kind = "cpu";
    pattern.guessed_speed = {.pass_micros = kGuessedMicros, .passes_per_step = 1};
    const std::string identity =
        ProgramIdentity(pattern.run.spec(), pattern.dataset_sha256, environment);
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
