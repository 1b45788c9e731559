// Walks the grid, merging, checking and costing each combination once for all its seeds.
#include "server/spec/expand.h"

#include <map>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/layout.h"
#include "server/spec/check_run.h"
#include "server/spec/defaults.h"
#include "server/spec/engine_config.h"
#include "server/spec/estimate.h"
#include "server/spec/fingerprint.h"

namespace ablate::spec {
namespace {

// Parameters and the tensors that hold them.
struct ModelSize {
  uint64_t parameters = 0;
  uint64_t tensors = 0;
};

engine::TaskShape ShapeOf(const v1::TaskSpec& task, const DatasetFacts& facts) {
  if (task.has_documents()) {
    engine::DocumentFacts documents;
    documents.documents = facts.documents;
    documents.characters = facts.characters;
    return engine::DocumentsShape(documents);
  }
  return engine::LegacyRecallShape({static_cast<int>(task.legacy_recall().keys()),
                                    static_cast<int>(task.legacy_recall().draw())});
}

class Expander {
 public:
  Expander(const ExpandInput& input, const Surroundings& surroundings, Datasets* datasets,
           Problems* problems, Resolution* resolution)
      : input_(input),
        surroundings_(surroundings),
        datasets_(datasets),
        problems_(problems),
        resolution_(resolution),
        labels_are_good_(problems->empty()),
        merged_(input.grid.axes.size() + 1) {
    merged_[0] = input.base;
  }

  void Visit(const Indexes& indexes, size_t changed) {
    bool broken = false;
    for (size_t axis = 0; axis < indexes.size(); ++axis) {
      const Point& point = PointOf(indexes, axis);
      broken |= point.broken;
      if (axis < changed) continue;
      merged_[axis + 1] = merged_[axis];
      std::vector<Problem> known;  // reported when the axis was read
      Apply(point.writes, &merged_[axis + 1], &known);
    }
    if (labels_are_good_) CheckName(indexes);
    if (broken) return;
    v1::BaseSpec filled = merged_.back();
    FillDefaults(surroundings_.cuda, &filled);
    Check(indexes, filled);
    if (problems_->empty()) AddCells(indexes, std::move(filled));
  }

 private:
  const Point& PointOf(const Indexes& indexes, size_t axis) const {
    return input_.grid.axes[axis].points[static_cast<size_t>(indexes[axis])];
  }

  // The part of a cell's name before its seed.
  std::string NameOf(const Indexes& indexes) const {
    std::vector<absl::string_view> parts;
    for (size_t axis = 0; axis < indexes.size(); ++axis) {
      parts.push_back(PointOf(indexes, axis).part);
    }
    return absl::StrJoin(parts, "-");
  }

  void CheckName(const Indexes& indexes) {
    const std::string name = NameOf(indexes);
    if (names_.insert(name).second || name.empty()) return;
    problems_->Add("axes", reflect::ShortText(name),
                   absl::StrCat("two cells are called ", reflect::ShortText(name)),
                   "labels that give every cell a name of its own");
  }

  void Check(const Indexes& indexes, const v1::BaseSpec& filled) {
    std::vector<const std::vector<Write>*> points;
    for (size_t axis = 0; axis < indexes.size(); ++axis) {
      points.push_back(&PointOf(indexes, axis).writes);
    }
    const Sources sources(input_.overrides, points);
    CheckRun({merged_.back(), filled, sources, input_.bad}, surroundings_, datasets_, problems_);
  }

  const ModelSize& SizeOf(const engine::ModelConfig& model, const std::string& key) {
    const auto known = sizes_.find(key);
    if (known != sizes_.end()) return known->second;
    const engine::ParameterLayout layout = engine::MakeLayout(model);
    const ModelSize size{static_cast<uint64_t>(layout.size), layout.parameters.size()};
    return sizes_.emplace(key, size).first->second;
  }

  // All but what depends on the seed.
  ResolvedCell MakeCell(const Indexes& indexes, v1::BaseSpec filled, DatasetFacts* facts) {
    ResolvedCell cell;
    for (size_t axis = 0; axis < indexes.size(); ++axis) {
      cell.labels.emplace_back(input_.grid.axes[axis].name, PointOf(indexes, axis).label);
    }
    if (filled.task().has_documents()) {
      v1::DocumentsTask* task = filled.mutable_task()->mutable_documents();
      *facts = *datasets_->Find(task->dataset());
      task->set_dataset(absl::StrCat("datasets/", facts->id));
    }
    cell.dataset_sha256 = facts->sha256;
    cell.device_kind = v1::Device::Value_Name(filled.training().device());
    *cell.run.mutable_spec() = std::move(filled);
    return cell;
  }

  void AddCosts(const DatasetFacts& facts, const Canonical& canonical, ResolvedCell* cell) {
    const engine::RunConfig config =
        ToEngineConfig(cell->run, ShapeOf(cell->run.spec().task(), facts));
    const ModelSize& size = SizeOf(config.model, canonical.ModelText());
    cell->parameters = size.parameters;
    cell->bytes = StoredBytes(config, size.parameters, size.tensors);
    cell->flops_per_step = FlopsPerStep(config, size.parameters);
    cell->shape = ShortHash(canonical.ShapeText());
  }

  void AddCells(const Indexes& indexes, v1::BaseSpec filled) {
    DatasetFacts facts;
    ResolvedCell pattern = MakeCell(indexes, std::move(filled), &facts);
    const Canonical canonical(pattern.run.spec(), pattern.dataset_sha256);
    AddCosts(facts, canonical, &pattern);
    const std::string name = NameOf(indexes);
    for (const uint32_t seed : input_.grid.seeds) {
      ResolvedCell cell = pattern;
      cell.name = absl::StrCat(name, name.empty() ? "s" : "-s", seed);
      cell.seed = seed;
      cell.run.set_seed(seed);
      cell.fingerprint = ShortHash(canonical.RunText(seed));
      cell.trajectory = ShortHash(canonical.TrajectoryText(seed));
      resolution_->cells.push_back(std::move(cell));
    }
    v1::SettingParameters& row = resolution_->parameters.emplace_back();
    for (const auto& [axis, label] : pattern.labels) (*row.mutable_labels())[axis] = label;
    row.set_parameters(pattern.parameters);
  }

  const ExpandInput& input_;
  const Surroundings& surroundings_;
  Datasets* datasets_;
  Problems* problems_;
  Resolution* resolution_;
  const bool labels_are_good_;        // else names repeat for reasons that are reported already
  std::vector<v1::BaseSpec> merged_;  // after so many axes
  std::unordered_set<std::string> names_;
  std::map<std::string, ModelSize> sizes_;  // by Canonical::ModelText
};

}  // namespace

void Expand(const ExpandInput& input, const Surroundings& surroundings, Datasets* datasets,
            Problems* problems, Resolution* resolution) {
  Expander expander(input, surroundings, datasets, problems, resolution);
  VisitGrid(input.grid, [&expander](const Indexes& indexes, size_t changed) {
    expander.Visit(indexes, changed);
  });
}

}  // namespace ablate::spec
