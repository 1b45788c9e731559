#include "server/experiment/notes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "server/engine/config.h"
#include "server/engine/core/initial_draw.h"
#include "server/engine/core/layout.h"
#include "server/engine/task.h"
#include "server/experiment/expand.h"
#include "server/experiment/experiment_analyses.h"
#include "server/experiment/field_values.h"

namespace ablate::spec {
namespace {

// Returns the values at `path` and below it as comparable text; empty if nothing is set.
std::string ValueAt(const FieldValues& values, const std::string& path) {
  std::string text;
  for (auto at = values.lower_bound(path); at != values.end() && absl::StartsWith(at->first, path);
       ++at) {
    const bool inside = at->first.size() == path.size() || at->first[path.size()] == '.';
    if (inside) absl::StrAppend(&text, at->first, "=", at->second, ";");
  }
  return text;
}

// For each path that some setting changes: setting index → value.
using Changes = std::map<std::string, std::map<size_t, std::string>>;

// Returns true if `point` writes a message around `path` or a part of it; then that write counts
// instead.
bool WritesAround(const Point& point, const std::string& path) {
  return std::any_of(point.writes.begin(), point.writes.end(), [&path](const Write& write) {
    return absl::StartsWith(path, write.path + ".") || absl::StartsWith(write.path, path + ".");
  });
}

// A spec with a setting applied: the written values, and the values with defaults.
struct Values {
  FieldValues written, filled;
};

Values ValuesWith(v1::BaseSpec base, const Point& point) {
  FieldValues filled = FilledValues(base, point.writes, false);
  std::vector<Problem> problems;
  Apply(point.writes, &base, &problems);
  return {ValuesOf(base), std::move(filled)};
}

// Finds the changes at every path that the axis writes, because a setting may also leave out a
// write of the baseline. Writing the baseline's value isn't a change, nor is a value that only
// follows from another field.
Changes FindChanges(const AxisPlan& axis, const v1::BaseSpec& base) {
  std::set<std::string> paths;
  for (const Point& point : axis.points) {
    for (const Write& write : point.writes) paths.insert(write.path);
  }
  const Values baseline = ValuesWith(base, axis.points.front());
  Changes changes;
  for (size_t i = 1; i < axis.points.size(); ++i) {
    const Values changed = ValuesWith(base, axis.points[i]);
    for (const std::string& path : paths) {
      if (WritesAround(axis.points[i], path)) continue;
      if (ValueAt(changed.written, path) == ValueAt(baseline.written, path)) continue;
      const std::string value = ValueAt(changed.filled, path);
      if (value != ValueAt(baseline.filled, path)) changes[path][i] = value;
    }
  }
  return changes;
}

// Returns how likely `path` is the axis's main path; the greatest wins.
std::tuple<bool, size_t, size_t> Weight(const AxisPlan& axis, const std::string& path,
                                        const std::map<size_t, std::string>& values) {
  const std::string last = path.substr(path.rfind('.') + 1);
  std::set<std::string> distinct;
  for (const auto& [setting, value] : values) distinct.insert(value);
  return {last == absl::StrReplaceAll(axis.name, {{"-", "_"}}), distinct.size(), values.size()};
}

void AddExtras(const AxisPlan& axis, const Changes& changes, std::vector<std::string>* notes) {
  std::map<std::string, std::vector<std::string>> extras;  // path → labels
  for (size_t i = 1; i < axis.points.size(); ++i) {
    std::vector<std::string> paths;
    for (const auto& [path, values] : changes) {
      if (path != kMatchPath && values.count(i) > 0) paths.push_back(path);
    }
    if (paths.size() < 2) continue;
    const auto main = std::max_element(
        paths.begin(), paths.end(), [&](const std::string& a, const std::string& b) {
          return Weight(axis, a, changes.at(a)) < Weight(axis, b, changes.at(b));
        });
    for (const std::string& path : paths) {
      if (path != *main) extras[path].push_back(axis.points[i].label);
    }
  }
  for (const auto& [path, labels] : extras) {
    notes->push_back(absl::StrCat(absl::StrJoin(labels, ", "), " also ",
                                  labels.size() == 1 ? "changes " : "change ", path));
  }
}

// Returns the axes whose label in `row` isn't their baseline's.
std::vector<size_t> Moved(const std::vector<AxisPlan>& axes, const v1::SettingParameters& row) {
  std::vector<size_t> moved;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (row.labels().at(axes[i].name) != axes[i].points.front().label) moved.push_back(i);
  }
  return moved;
}

std::string ParametersByLabel(const AxisPlan& axis, const std::map<std::string, uint64_t>& counts) {
  constexpr size_t kMaxLabels = 8;
  std::vector<std::string> parts;
  for (const Point& point : axis.points) {
    const auto found = counts.find(point.label);
    if (found == counts.end()) continue;
    if (parts.size() == kMaxLabels) {
      parts.push_back("…");
      break;
    }
    parts.push_back(absl::StrCat(point.label, " ", text::Grouped(found->second)));
  }
  return absl::StrJoin(parts, ", ");
}

// A subset of the documents, and the verb that goes with it.
struct Share {
  std::string documents;
  absl::string_view verb;
};

// Returns "96 % of documents", "3 of 32,033 documents": never rounded to none or to all.
Share ShareOf(uint64_t part, uint64_t all) {
  if (part == all && all == 1) return {"the one document", "is"};
  if (part == all) return {"all documents", "are"};
  const auto percent = std::lround(100 * static_cast<double>(part) / static_cast<double>(all));
  if (percent < 1) {
    return {absl::StrCat(text::Grouped(part), " of ", text::Grouped(all), " documents"),
            part == 1 ? "is" : "are"};
  }
  return {absl::StrCat(std::min(percent, 99L), " % of documents"), "are"};
}

// Returns the variance of an initial value of the model's parameter of this role. A tied head is
// the token embedding.
double InitialVariance(const engine::ModelConfig& model, engine::ParameterRole role) {
  if (role == engine::ParameterRole::kHead && model.tied_head) {
    role = engine::ParameterRole::kEmbedding;
  }
  for (const engine::ParameterInfo& parameter : engine::MakeLayout(model).parameters) {
    if (parameter.role != role) continue;
    return engine::VarianceOf(engine::DrawOf(parameter, model));
  }
  return 0;
}

// Returns the mean square of the head's input, or a lower bound; 0 if unknown. A BatchNorm's
// evaluation before the first step leaves the stream as it is.
double FeatureSquare(const engine::ModelConfig& model) {
  const engine::NormConfig& norm = model.norm;
  const bool post = norm.placement == engine::NormPlacement::kPost && norm.feed_forward;
  const bool normed = norm.final || post;
  if (normed && engine::IsPointwise(norm.kind)) return 0;
  if (normed && norm.kind != engine::NormKind::kBatch) {
    return engine::FormulaOf(norm.kind).averages ? 1 : 1.0 / model.width;
  }
  if (!model.residual) return 0;
  if (model.embedding_norm) return 0;
  const double tokens = InitialVariance(model, engine::ParameterRole::kEmbedding) *
                        model.embedding_scale * model.embedding_scale;
  switch (model.positions) {
    case engine::Positions::kLearned:
      return tokens + InitialVariance(model, engine::ParameterRole::kPosition);
    case engine::Positions::kSinusoidal:
      return tokens + 0.5;
    case engine::Positions::kNone:
    case engine::Positions::kRotary:
    case engine::Positions::kAlibi:
      break;
  }
  return tokens;
}

}  // namespace

std::vector<std::string> ExtraChanges(const std::vector<AxisPlan>& axes, const v1::BaseSpec& base) {
  std::vector<std::string> notes;
  for (const AxisPlan& axis : axes) {
    if (axis.is_field || axis.has_switches) continue;
    v1::BaseSpec below = base;
    std::vector<Problem> problems;
    for (const AxisPlan& other : axes) {
      if (&other != &axis) Apply(other.points.front().writes, &below, &problems);
    }
    AddExtras(axis, FindChanges(axis, below), &notes);
  }
  return notes;
}

std::vector<std::string> ParameterMismatches(const std::vector<AxisPlan>& axes,
                                             const std::vector<v1::SettingParameters>& parameters) {
  std::vector<std::map<std::string, uint64_t>> counts(axes.size());
  for (const v1::SettingParameters& row : parameters) {
    const std::vector<size_t> moved = Moved(axes, row);
    for (size_t i = 0; i < axes.size(); ++i) {
      const bool along = moved.empty() || (moved.size() == 1 && moved.front() == i);
      if (along) counts[i][row.labels().at(axes[i].name)] = row.parameters();
    }
  }
  std::vector<std::string> notes;
  for (size_t i = 0; i < axes.size(); ++i) {
    std::set<uint64_t> distinct;
    for (const auto& [label, count] : counts[i]) distinct.insert(count);
    if (distinct.size() < 2) continue;
    notes.push_back(
        absl::StrCat(axes[i].name, ": parameters differ: ", ParametersByLabel(axes[i], counts[i])));
  }
  return notes;
}

std::vector<std::string> SharedRuns(const std::vector<ResolvedCell>& cells) {
  std::unordered_map<std::string, const ResolvedCell*> first;
  std::string example;
  size_t shared = 0;
  for (const ResolvedCell& cell : cells) {
    const auto [known, fresh] = first.emplace(cell.fingerprint, &cell);
    if (fresh) continue;
    if (++shared == 1) example = absl::StrCat(known->second->name, " and ", cell.name);
  }
  if (shared == 0) return {};
  const std::string more =
      shared == 1 ? "" : absl::StrCat(", and ", text::Grouped(shared - 1), " more cells likewise");
  return {absl::StrCat(example, " are one run, trained once", more)};
}

std::vector<std::string> StartNotes(const std::vector<v1::SettingParameters>& parameters,
                                    const std::vector<engine::RunConfig>& configs) {
  constexpr size_t kNamed = 4;
  std::vector<std::string> named;
  size_t high = 0;
  for (size_t i = 0; i < configs.size(); ++i) {
    const engine::ModelConfig& model = configs[i].model;
    // Logits of variance s² have a loss of about s²/2 above the uniform one, up to s = √(2 ln V).
    const double variance = model.width * FeatureSquare(model) *
                            InitialVariance(model, engine::ParameterRole::kHead) /
                            std::pow(engine::WidthRatio(model), 2);
    if (variance / 2 <= kFarAboveUniform || ++high > kNamed) continue;
    const std::string name = NameOfSetting(parameters[i]);
    named.push_back(absl::StrCat(
        name.empty() ? "" : absl::StrCat(name, " "), "(scores with a deviation of about ",
        text::ShortestDecimal(std::round(10 * std::sqrt(variance)) / 10), ", ln V = ",
        text::ShortestDecimal(std::round(100 * std::log(model.vocabulary)) / 100), ")"));
  }
  if (high == 0) return {};
  if (high > kNamed) named.push_back(absl::StrCat(high - kNamed, " more settings"));
  return {absl::StrCat(
      "the loss before the first step will be far above ln V, that of a uniform guess, which may "
      "decide a comparison: ",
      absl::StrJoin(named, ", "), "; init.kind gpt2 begins near it")};
}

std::vector<std::string> TextNotes(const std::vector<ResolvedCell>& cells,
                                   const Datasets& datasets) {
  // Data sets, shares, contexts, batches and tokens.
  std::set<std::tuple<std::string, double, uint32_t, uint32_t, uint32_t>> places;
  std::set<std::string> names;
  for (const ResolvedCell& cell : cells) {
    const v1::BaseSpec& spec = cell.run.spec();
    if (!spec.task().has_text()) continue;
    const v1::TextTask& task = spec.task().text();
    places.emplace(task.dataset(), task.validation(), spec.model().context(),
                   spec.evaluation().batches(), spec.evaluation().tokens());
    names.insert(task.dataset());
  }
  std::vector<std::string> notes;
  for (const auto& [name, validation, context, batches, tokens] : places) {
    const DatasetFacts* facts =
        datasets.Known(absl::StripPrefix(name, "datasets/"), /*as_text=*/true);
    if (facts == nullptr) continue;
    const engine::TextSplit split =
        engine::SplitText(engine::FactsOfText(*facts).tokens, validation, context);
    const uint64_t windows =
        engine::WindowsToEvaluate(split, context, {.batches = batches, .tokens = tokens}).windows;
    const uint64_t scored = windows * context;
    const uint64_t left_out = split.validation - scored - 1;  // the first is read and not scored
    if (left_out == 0) continue;
    const std::string by = windows == split.windows ? ""
                           : tokens > 0 ? absl::StrCat(" (evaluation.tokens ", tokens, ")")
                                        : absl::StrCat(" (evaluation.batches ", batches, ")");
    notes.push_back(absl::StrCat(
        names.size() > 1 ? absl::StrCat(name, ": ") : "", "evaluation scores ",
        text::Grouped(scored), scored == 1 ? " token in " : " tokens in ", text::Grouped(windows),
        windows == 1 ? " window" : " windows", " of context ", context, by, "; the last ",
        text::Grouped(left_out), " of ", text::Grouped(split.validation), " validation tokens ",
        left_out == 1 ? "is" : "are", " left out"));
  }
  return notes;
}

std::vector<std::string> CutNotes(const std::vector<ResolvedCell>& cells,
                                  const Datasets& datasets) {
  std::set<std::pair<std::string, uint32_t>> places;  // data sets and contexts
  std::set<std::string> names;
  for (const ResolvedCell& cell : cells) {
    const v1::BaseSpec& spec = cell.run.spec();
    if (!spec.task().has_documents()) continue;
    places.emplace(spec.task().documents().dataset(), spec.model().context());
    names.insert(spec.task().documents().dataset());
  }
  std::vector<std::string> notes;
  for (const auto& [name, context] : places) {
    const DatasetFacts* facts = datasets.Known(absl::StripPrefix(name, "datasets/"));
    if (facts == nullptr) continue;
    const uint64_t cut = engine::CutDocuments(facts->lengths, context);
    if (cut == 0) continue;
    const Share share = ShareOf(cut, facts->documents);
    notes.push_back(absl::StrCat(names.size() > 1 ? absl::StrCat(name, ": ") : "", share.documents,
                                 " ", share.verb, " longer than context ", context, " and ",
                                 share.verb, " cut; longest ", text::Grouped(facts->longest + 1)));
  }
  return notes;
}

}  // namespace ablate::spec
