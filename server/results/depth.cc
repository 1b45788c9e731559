#include "server/results/depth.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/reflect/text.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/style.h"
#include "server/rpc/errors.h"
#include "server/rpc/limits.h"

namespace ablate::results {
namespace {

using Steps = std::vector<uint32_t>;

constexpr const char* kReported[] = {"gradient", "alignment"};

// Part of an analysis's keys, after its label.
struct ReportedAnalysis {
  const char* analysis;
  const char* family;
};

constexpr ReportedAnalysis kReportedAnalyses[] = {
    {"gradient_flow", "gradient"},
    {"gradient_alignment", "cosine"},
    // The fraction of the gradient that the norm's projection removes. Models without attention
    // have this norm, too.
    {"norm_jacobian", "r_radial/block.*.feed_forward_norm"},
    {"logit_lens", "loss"},
    {"induction", "induction"},
    {"probe", "accuracy"},
};

// Reads the metrics of one family by block.
class DepthReader {
 public:
  DepthReader(storage::Store* store, const ComparedGrid& compared, const std::string& family,
              const rpc::Cancelled& cancelled)
      : store_(store),
        compared_(compared),
        styles_(figure::StyleIndices(compared.comparison)),
        family_(family),
        cancelled_(cancelled) {}

  absl::StatusOr<figure::DepthSetting> Read(size_t row, std::optional<uint32_t> step) {
    const report::ComparisonRow& of = compared_.comparison.rows[row];
    const std::vector<ChosenRun> converged = Converged(compared_.chosen[row]);
    figure::DepthSetting setting;
    setting.label = of.mark;
    setting.style = styles_[row];
    setting.converged = converged.size();
    setting.diverged = compared_.chosen[row].size() - setting.converged;
    auto common = CommonSteps(converged, step);
    if (!common.ok()) return common.status();
    if (!step.has_value() && !common->empty()) step = common->back();
    if (!step.has_value()) return setting;
    for (const ChosenRun& run : converged) {
      auto seed = ReadSeed(run.cell, *step);
      if (!seed.ok()) return seed.status();
      if (seed->values.empty()) continue;
      seed->seed = run.seed;
      setting.seeds.push_back(*std::move(seed));
    }
    if (!setting.seeds.empty()) setting.step = step;
    return setting;
  }

  // Steps of the first run that has the family; empty if there is none.
  const Steps& some_steps() const { return some_steps_; }

 private:
  // Returns the steps that all of the runs with the family share. Reads nothing if the step is
  // `wanted` anyway and some steps are known, to be named in an error.
  absl::StatusOr<Steps> CommonSteps(const std::vector<ChosenRun>& runs,
                                    std::optional<uint32_t> wanted) {
    Steps common;
    bool first = true;
    if (wanted.has_value() && !some_steps_.empty()) return common;
    const auto keep = [&](size_t, const analysis::Points& points) {
      if (some_steps_.empty()) some_steps_ = points.steps;
      Steps both;
      std::set_intersection(points.steps.begin(), points.steps.end(), common.begin(), common.end(),
                            std::back_inserter(both));
      common = first ? points.steps : both;
      first = false;
      return absl::OkStatus();
    };
    std::vector<size_t> cells;
    for (const ChosenRun& run : runs) cells.push_back(run.cell);
    const absl::Status read =
        VisitCurves(store_, compared_.grid, figure::KeyAt(family_, 1), cells, cancelled_, keep);
    if (!read.ok()) return read;
    return common;
  }

  absl::StatusOr<figure::DepthSeed> ReadSeed(size_t cell, uint32_t step) {
    const std::string& run = compared_.grid.cells[cell].run;
    figure::DepthSeed seed;
    const auto recorded = store_->RunKeys(run);
    if (!recorded.ok()) return recorded.status();
    std::vector<std::string> keys = compared_.grid.metrics.KeysOf(run);
    for (const auto& [key, count] : *recorded) keys.push_back(key);
    SeriesCursor cursor(store_, nullptr, step, step);
    cursor.Add(&compared_.grid.metrics);
    for (const std::string& key : keys) {
      const std::optional<uint32_t> position = figure::PositionOf(family_, key);
      if (!position.has_value()) continue;
      if (cancelled_()) return rpc::CallCancelled();
      cursor.OpenSeries(run, key);
      const auto keep = [&](const Steps&, const std::vector<double>& values) {
        if (!values.empty()) seed.values[*position] = values.back();
        return true;
      };
      const auto read = cursor.Read(keep);
      if (!read.ok()) return read.status();
    }
    held_ += seed.values.size();
    if (held_ > rpc::kMaxBlockValues) return TooManyValues();
    return seed;
  }

  absl::Status TooManyValues() const {
    return absl::ResourceExhaustedError(absl::StrCat(
        "key: the runs have more than ", rpc::kMaxBlockValues, " values of ",
        reflect::Quoted(family_), " at one step, the limit of a figure. Compare fewer settings"));
  }

  storage::Store* const store_;
  const ComparedGrid& compared_;
  const std::vector<size_t> styles_;  // of all rows
  const std::string& family_;
  const rpc::Cancelled& cancelled_;
  Steps some_steps_;
  size_t held_ = 0;  // values of all settings
};

// Returns "0, 50, 100" or, if there are many, the nearest ones and the range.
std::string StepsText(const Steps& steps, uint32_t wanted) {
  constexpr size_t kNamed = 12;
  if (steps.size() <= kNamed) return absl::StrJoin(steps, ", ");
  const auto after = std::lower_bound(steps.begin(), steps.end(), wanted);
  Steps nearest;
  if (after != steps.begin()) nearest.push_back(*std::prev(after));
  if (after != steps.end()) nearest.push_back(*after);
  return absl::StrCat("nearest ", absl::StrJoin(nearest, " and "), ", from ", steps.front(), " to ",
                      steps.back());
}

}  // namespace

absl::StatusOr<std::vector<figure::DepthSetting>> ReadDepth(storage::Store* store,
                                                            const ComparedGrid& compared,
                                                            const std::string& family,
                                                            std::optional<uint32_t> step,
                                                            const rpc::Cancelled& cancelled) {
  DepthReader reader(store, compared, family, cancelled);
  std::vector<figure::DepthSetting> settings;
  bool any = false;
  for (size_t row = 0; row < compared.rows.size(); ++row) {
    auto setting = reader.Read(row, step);
    if (!setting.ok()) return setting.status();
    any = any || !setting->seeds.empty();
    settings.push_back(*std::move(setting));
  }
  if (any || !step.has_value() || reader.some_steps().empty()) return settings;
  return rpc::InvalidField(
      "step", absl::StrCat("no converged run has ", figure::KeyAt(family, 1), " at step ", *step),
      absl::StrCat("-1 for the last one, or a step with points: ",
                   StepsText(reader.some_steps(), *step)));
}

absl::StatusOr<std::vector<std::string>> ReportedFamilies(storage::Store* store,
                                                          const std::string& experiment,
                                                          const LabelledResults& results) {
  const auto keys = ExperimentKeys(store, experiment);
  if (!keys.ok()) return keys.status();
  std::vector<std::string> families;
  const auto add = [&](const std::string& family) {
    if (std::binary_search(keys->begin(), keys->end(), figure::KeyAt(family, 1))) {
      families.push_back(family);
    }
  };
  for (const char* family : kReported) add(family);
  for (const ReportedAnalysis& reported : kReportedAnalyses) {
    for (const std::string& label : results.LabelsOf(reported.analysis)) {
      add(absl::StrCat(label, "/", reported.family));
    }
  }
  return families;
}

absl::Status NoSuchFamily(storage::Store* store, const std::string& experiment,
                          const std::string& family) {
  const auto keys = ExperimentKeys(store, experiment);
  if (!keys.ok()) return keys.status();
  std::vector<std::string> families, of_label;
  const std::string label = family.substr(0, family.find('/'));
  for (const std::string& key : *keys) {
    auto one = figure::FamilyOf(key);
    if (!one.has_value()) continue;
    if (absl::StartsWith(*one, absl::StrCat(label, "/"))) of_label.push_back(*one);
    families.push_back(*std::move(one));
  }
  if (!of_label.empty()) families = std::move(of_label);
  // Families of whole blocks first, because heads and tensors have many.
  std::stable_partition(families.begin(), families.end(),
                        [](const std::string& one) { return one.find('*') == std::string::npos; });
  constexpr size_t kNamed = 20;
  return rpc::InvalidField(
      "key", absl::StrCat("no converged run has metrics by block of ", reflect::Quoted(family)),
      families.empty() ? "a family that `evaluation.record` or `ablate analyze` gave"
                       : report::Enumerated(families, kNamed));
}

}  // namespace ablate::results
