#include "server/experiment/grid.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "server/experiment/checks.h"

namespace ablate::spec {
namespace {

constexpr int kMaxExclusions = 1000;
constexpr uint64_t kMaxCells = 100'000;
constexpr uint32_t kDefaultCells = 1000;
constexpr uint64_t kPlenty = uint64_t{1} << 60;  // counting saturates here

uint64_t Times(uint64_t a, uint64_t b) { return b != 0 && a > kPlenty / b ? kPlenty : a * b; }

void CheckList(const v1::Seeds& seeds, Problems* problems) {
  if (seeds.has_first() || seeds.has_count()) {
    problems->Add("seeds", "", "a list and first or count exclude each other",
                  "either first and count, or a list");
  }
  std::set<uint32_t> seen;
  for (int i = 0; i < seeds.list_size(); ++i) {
    if (seen.insert(seeds.list(i)).second) continue;
    problems->Add(absl::StrCat("seeds.list[", i, "]"), absl::StrCat(seeds.list(i)),
                  absl::StrCat(seeds.list(i), " is repeated"), "distinct seeds");
  }
}

// Returns the index of the point that `value` names, or −1 after a problem.
int FindPoint(const google::protobuf::Value& value, const AxisPlan& axis, const std::string& source,
              Problems* problems) {
  std::vector<std::string> labels;
  for (size_t i = 0; i < axis.points.size(); ++i) {
    if (HasLabel(value) && ValueLabel(value) == axis.points[i].label) return static_cast<int>(i);
    labels.push_back(axis.points[i].label);
  }
  const std::string guess =
      value.has_string_value() ? reflect::DidYouMean(value.string_value(), labels, " (", ")") : "";
  constexpr size_t kMaxLabels = 20;
  const bool cut = labels.size() > kMaxLabels;
  if (cut) labels.resize(kMaxLabels);
  problems->Add(source, reflect::ShortText(value),
                absl::StrCat(reflect::Quoted(value), " isn't a setting of ", axis.name, guess),
                cut ? absl::StrCat(absl::StrJoin(labels, ", "), ", …") : reflect::AnyOf(labels));
  return -1;
}

Indexes ReadExclusion(const v1::Exclusion& exclusion, const std::vector<AxisPlan>& axes,
                      const std::string& source, Problems* problems) {
  Indexes indexes(axes.size(), -1);
  if (exclusion.where().empty()) {
    problems->Add(source, "", "names no axis", "at least one axis with its label");
  }
  std::vector<std::string> names;
  names.reserve(axes.size());
  for (const AxisPlan& axis : axes) names.push_back(axis.name);
  const std::map<std::string, google::protobuf::Value> sorted(exclusion.where().begin(),
                                                              exclusion.where().end());
  for (const auto& [name, value] : sorted) {
    const std::string where = absl::StrCat(source, reflect::Subscript(name));
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      const std::string guess = reflect::DidYouMean(name, names, " (", ")");
      problems->Add(where, reflect::ShortText(value), absl::StrCat("unknown axis", guess),
                    names.empty() ? "none: the experiment has no axes" : reflect::AnyOf(names));
      continue;
    }
    const auto axis = static_cast<size_t>(found - names.begin());
    const bool is_read = !axes[axis].points[0].label.empty();
    // An axis that couldn't be read, which is reported, has one point: the exclusion matches none.
    indexes[axis] = is_read ? FindPoint(value, axes[axis], where, problems) : 1;
  }
  return indexes;
}

bool Excluded(const Indexes& indexes, const std::vector<Indexes>& exclusions) {
  const auto matches = [&indexes](const Indexes& exclusion) {
    for (size_t i = 0; i < indexes.size(); ++i) {
      if (exclusion[i] >= 0 && exclusion[i] != indexes[i]) return false;
    }
    return true;
  };
  return std::any_of(exclusions.begin(), exclusions.end(), matches);
}

// Returns "3 placement × 5 lr × 12 seeds".
std::string Shape(const Grid& grid) {
  std::vector<std::string> factors;
  for (const AxisPlan& axis : grid.axes) {
    factors.push_back(absl::StrCat(text::Grouped(axis.points.size()), " ", axis.name));
  }
  const size_t seeds = grid.seeds.size();
  factors.push_back(absl::StrCat(text::Grouped(seeds), seeds == 1 ? " seed" : " seeds"));
  return absl::StrJoin(factors, " × ");
}

}  // namespace

std::vector<uint32_t> ReadSeeds(const v1::Seeds& seeds, Problems* problems) {
  if (!CheckBounds(seeds, "seeds", problems)) return {seeds.first()};
  if (seeds.list_size() > 0) {
    CheckList(seeds, problems);
    return {seeds.list().begin(), seeds.list().end()};
  }
  const uint64_t first = seeds.first();
  const uint64_t count = seeds.has_count() ? seeds.count() : 1;
  if (first + count - 1 > UINT32_MAX) {
    problems->Add("seeds.first", absl::StrCat(first),
                  absl::StrCat(first, " and the ", count, " seeds from it go beyond 4294967295"),
                  "seeds up to 4294967295");
    return {seeds.first()};
  }
  std::vector<uint32_t> list;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    list.push_back(static_cast<uint32_t>(seed));
  }
  return list;
}

std::vector<Indexes> ReadExclusions(const v1::ExperimentSpec& spec,
                                    const std::vector<AxisPlan>& axes, Problems* problems) {
  std::vector<Indexes> exclusions;
  if (spec.exclude_size() > kMaxExclusions) {
    problems->Add("exclude", absl::StrCat(spec.exclude_size()),
                  absl::StrCat(text::Grouped(spec.exclude_size()), " entries"), "at most 1,000");
    return exclusions;
  }
  for (int i = 0; i < spec.exclude_size(); ++i) {
    const size_t before = problems->found();
    Indexes indexes =
        ReadExclusion(spec.exclude(i), axes, absl::StrCat("exclude[", i, "].where"), problems);
    if (problems->found() == before) exclusions.push_back(std::move(indexes));
  }
  return exclusions;
}

bool CheckSize(const v1::Limits& limits, Grid* grid, Problems* problems) {
  uint64_t combinations = 1;
  for (const AxisPlan& axis : grid->axes) combinations = Times(combinations, axis.points.size());
  const bool counted = grid->exclusions.empty() || combinations <= kMaxCells;
  if (!grid->exclusions.empty() && counted) {
    combinations = 0;
    VisitGrid(*grid, [&combinations](const Indexes&, size_t) { ++combinations; });
    if (combinations == 0) {
      problems->Add("exclude", "", "no cell remains", "exclusions that leave at least one cell");
      return false;
    }
  }
  const uint64_t cells = Times(combinations, grid->seeds.size());
  const uint64_t limit = limits.runs() > 0 ? limits.runs() : kDefaultCells;
  const uint64_t max_cells = std::min(limit, kMaxCells);
  if (cells <= max_cells) return true;
  const std::string count = cells == kPlenty ? "more than 10^18" : text::Grouped(cells);
  const std::string more = max_cells < kMaxCells ? ", or a higher limit up to 100,000" : "";
  const std::string before = counted ? "" : " before exclusions, which are not counted";
  problems->Add("limits.runs", count,
                absl::StrCat("the grid has ", count, " cells (", Shape(*grid), ")", before),
                absl::StrCat("at most ", text::Grouped(max_cells), more));
  if (combinations > kDefaultCells) return false;
  grid->seeds.resize(1);
  return true;
}

void VisitGrid(const Grid& grid,
               const std::function<void(const Indexes& indexes, size_t changed)>& visit) {
  Indexes indexes(grid.axes.size(), 0);
  size_t changed = 0;
  while (true) {
    if (!Excluded(indexes, grid.exclusions)) {
      visit(indexes, changed);
      changed = indexes.size();
    }
    size_t axis = indexes.size();
    while (axis > 0 &&
           indexes[axis - 1] + 1 == static_cast<int>(grid.axes[axis - 1].points.size())) {
      indexes[--axis] = 0;
    }
    if (axis == 0) return;
    ++indexes[axis - 1];
    changed = std::min(changed, axis - 1);
  }
}

}  // namespace ablate::spec
