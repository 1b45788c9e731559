#include "server/experiment/merge.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/reflect/text.h"

namespace ablate::spec {

Merger::Merger(const ExpandInput& input) : input_(input), merged_(input.grid.axes.size() + 1) {
  merged_[0] = input.base;
}

Merged Merger::Merge(const Indexes& indexes, size_t changed) {
  Merged merged{merged_.back(), {}, input_.bad};
  for (size_t axis = 0; axis < indexes.size(); ++axis) {
    const Point& point = PointOf(indexes, axis);
    merged.broken |= point.broken;
    merged.bad.insert(point.bad.begin(), point.bad.end());
    merged.points.push_back(&point.writes);
    if (axis < changed) continue;
    merged_[axis + 1] = merged_[axis];
    std::vector<Problem> known;  // reported when the axis was read
    Apply(point.writes, &merged_[axis + 1], &known);
  }
  return merged;
}

std::string Merger::NameOf(const Indexes& indexes) const {
  std::vector<absl::string_view> parts;
  for (size_t axis = 0; axis < indexes.size(); ++axis) {
    parts.push_back(PointOf(indexes, axis).part);
  }
  return absl::StrJoin(parts, "-");
}

std::vector<std::pair<std::string, std::string>> Merger::LabelsOf(const Indexes& indexes) const {
  std::vector<std::pair<std::string, std::string>> labels;
  for (size_t axis = 0; axis < indexes.size(); ++axis) {
    labels.emplace_back(input_.grid.axes[axis].name, PointOf(indexes, axis).label);
  }
  return labels;
}

void Merger::CheckName(const Indexes& indexes, Problems* problems) {
  const std::string name = NameOf(indexes);
  if (names_.insert(name).second || name.empty()) return;
  problems->Add("axes", reflect::ShortText(name),
                absl::StrCat("two cells have the name ", reflect::ShortText(name)),
                "labels that make the names of cells unique");
}

}  // namespace ablate::spec
