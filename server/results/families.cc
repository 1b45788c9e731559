#include "server/results/families.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "proto/reflect/text.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/style.h"

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

// Returns the keys whose steps are those of the family, the first that a run has counting: that of
// block.0, or of every level.
absl::StatusOr<std::vector<std::string>> StepKeys(storage::Store* store,
                                                  const std::string& experiment,
                                                  figure::Along along, const std::string& family) {
  if (along == figure::Along::kBlocks) return std::vector{figure::KeyAt(along, family, 1)};
  auto keys = ExperimentKeys(store, experiment);
  if (!keys.ok()) return keys;
  const auto other = [&](const std::string& key) {
    return !figure::PlaceOf(along, family, key).has_value();
  };
  keys->erase(std::remove_if(keys->begin(), keys->end(), other), keys->end());
  return keys;
}

// Reads the metrics of one family.
class FamilyReader {
 public:
  FamilyReader(storage::Store* store, const ComparedGrid& compared, figure::Along along,
               const std::string& family, std::vector<std::string> step_keys,
               const lookup::Cancelled& cancelled)
      : store_(store),
        compared_(compared),
        styles_(figure::StyleIndices(compared.comparison)),
        along_(along),
        family_(family),
        step_keys_(std::move(step_keys)),
        cancelled_(cancelled) {}

  absl::StatusOr<figure::FamilySetting> Read(size_t row, std::optional<uint32_t> step) {
    const report::ComparisonRow& of = compared_.comparison.rows[row];
    const std::vector<ChosenRun> converged = Converged(compared_.chosen[row]);
    figure::FamilySetting setting;
    setting.label = of.label;
    setting.style = styles_[row];
    setting.converged = converged.size();
    setting.diverged = compared_.chosen[row].size() - setting.converged;
    ASSIGN_OR_RETURN(auto common, CommonSteps(converged, step));
    if (!step.has_value() && !common.empty()) step = common.back();
    if (!step.has_value()) return setting;
    for (const ChosenRun& run : converged) {
      ASSIGN_OR_RETURN(auto seed, ReadSeed(run.cell, *step));
      if (seed.values.empty()) continue;
      seed.seed = run.seed;
      setting.seeds.push_back(std::move(seed));
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
    if (wanted.has_value() && !some_steps_.empty()) return Steps();
    std::vector<size_t> cells;
    for (const ChosenRun& run : runs) cells.push_back(run.cell);
    for (const std::string& key : step_keys_) {
      auto common = StepsOf(key, cells);
      if (!common.ok() || !common->empty()) return common;
    }
    return Steps();
  }

  // Returns the steps that all of the cells with the key share.
  absl::StatusOr<Steps> StepsOf(const std::string& key, const std::vector<size_t>& cells) {
    Steps common;
    bool first = true;
    const auto keep = [&](size_t, const analysis::Points& points) {
      if (some_steps_.empty()) some_steps_ = points.steps;
      Steps both;
      std::set_intersection(points.steps.begin(), points.steps.end(), common.begin(), common.end(),
                            std::back_inserter(both));
      common = first ? points.steps : both;
      first = false;
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(VisitCurves(store_, compared_.grid, key, cells, cancelled_, keep));
    return common;
  }

  absl::StatusOr<figure::FamilySeed> ReadSeed(size_t cell, uint32_t step) {
    const std::string& run = compared_.grid.cells[cell].run;
    figure::FamilySeed seed;
    ASSIGN_OR_RETURN(const auto recorded, store_->RunKeys(run));
    std::vector<std::string> keys = compared_.grid.metrics.KeysOf(run);
    for (const auto& [key, count] : recorded) keys.push_back(key);
    SeriesCursor cursor(store_, nullptr, step, step);
    cursor.Add(&compared_.grid.metrics);
    for (const std::string& key : keys) {
      const std::optional<double> place = figure::PlaceOf(along_, family_, key);
      if (!place.has_value()) continue;
      if (cancelled_()) return lookup::CallCancelled();
      cursor.OpenSeries(run, key);
      const auto keep = [&](const Steps&, const std::vector<double>& values) {
        if (!values.empty()) seed.values[*place] = values.back();
        return true;
      };
      RETURN_IF_ERROR(cursor.Read(keep).status());
    }
    held_ += seed.values.size();
    if (held_ > lookup::kMaxFamilyValues) return TooManyValues();
    return seed;
  }

  absl::Status TooManyValues() const {
    return absl::ResourceExhaustedError(absl::StrCat(
        "key: the runs have more than ", lookup::kMaxFamilyValues, " values of ",
        reflect::Quoted(family_), " at one step, the limit of a figure. Compare fewer settings"));
  }

  storage::Store* const store_;
  const ComparedGrid& compared_;
  const std::vector<size_t> styles_;  // of all rows
  const figure::Along along_;
  const std::string& family_;
  const std::vector<std::string> step_keys_;
  const lookup::Cancelled& cancelled_;
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

// Returns the labels' families by level that some key is of, of the increase of the loss.
std::vector<std::string> IncreasesIn(const std::vector<std::string>& keys,
                                     const std::vector<std::string>& labels) {
  std::vector<std::string> families;
  for (const std::string& key : keys) {
    auto family = figure::FamilyOf(figure::Along::kLevels, key);
    if (!family.has_value() || !absl::EndsWith(*family, "@*/increase")) continue;
    const std::string label = family->substr(0, family->find('/'));
    const bool labelled = std::find(labels.begin(), labels.end(), label) != labels.end();
    const bool known = std::find(families.begin(), families.end(), *family) != families.end();
    if (labelled && !known) families.push_back(*std::move(family));
  }
  return families;
}

bool IsListed(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

// Returns the families of the keys; those of whole blocks first, because heads and tensors have
// many.
std::vector<std::string> FamiliesIn(const std::vector<std::string>& keys, figure::Along along) {
  std::vector<std::string> families;
  for (const std::string& key : keys) {
    auto family = figure::FamilyOf(along, key);
    if (family.has_value() && !IsListed(families, *family)) families.push_back(*std::move(family));
  }
  std::stable_partition(families.begin(), families.end(), [&](const std::string& one) {
    return along == figure::Along::kBlocks && one.find('*') == std::string::npos;
  });
  return families;
}

}  // namespace

absl::StatusOr<std::vector<figure::FamilySetting>> ReadFamily(
    storage::Store* store, const ComparedGrid& compared, figure::Along along,
    const std::string& family, std::optional<uint32_t> step, const lookup::Cancelled& cancelled) {
  ASSIGN_OR_RETURN(auto step_keys, StepKeys(store, compared.grid.record.id, along, family));
  FamilyReader reader(store, compared, along, family, std::move(step_keys), cancelled);
  std::vector<figure::FamilySetting> settings;
  bool any = false;
  for (size_t row = 0; row < compared.rows.size(); ++row) {
    ASSIGN_OR_RETURN(auto setting, reader.Read(row, step));
    any = any || !setting.seeds.empty();
    settings.push_back(std::move(setting));
  }
  if (any || !step.has_value() || reader.some_steps().empty()) return settings;
  const std::string key =
      along == figure::Along::kBlocks ? figure::KeyAt(along, family, 1) : family;
  return lookup::InvalidField("step",
                              absl::StrCat("no converged run has ", key, " at step ", *step),
                              absl::StrCat("-1 for the last one, or a step with points: ",
                                           StepsText(reader.some_steps(), *step)));
}

absl::StatusOr<std::vector<std::string>> ReportedFamilies(storage::Store* store,
                                                          const std::string& experiment,
                                                          const LabelledResults& results,
                                                          figure::Along along) {
  ASSIGN_OR_RETURN(const auto keys, ExperimentKeys(store, experiment));
  if (along == figure::Along::kLevels) return IncreasesIn(keys, results.LabelsOf("robustness"));
  std::vector<std::string> families;
  const auto add = [&](const std::string& family) {
    if (std::binary_search(keys.begin(), keys.end(), figure::KeyAt(along, family, 1))) {
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

absl::StatusOr<std::string> DefaultFamily(storage::Store* store, const std::string& experiment,
                                          const LabelledResults& results, figure::Along along,
                                          const std::string& usual) {
  ASSIGN_OR_RETURN(const auto keys, ExperimentKeys(store, experiment));
  const std::vector<std::string> families = FamiliesIn(keys, along);
  if (families.empty() || IsListed(families, usual)) return usual;
  ASSIGN_OR_RETURN(const auto reported, ReportedFamilies(store, experiment, results, along));
  return reported.empty() ? families.front() : reported.front();
}

absl::Status CheckKnownFamily(storage::Store* store, const std::string& experiment,
                              figure::Along along, const std::string& family, bool asked) {
  ASSIGN_OR_RETURN(const auto keys, ExperimentKeys(store, experiment));
  std::vector<std::string> families = FamiliesIn(keys, along), of_label;
  if (IsListed(families, family) || (families.empty() && !asked)) return absl::OkStatus();
  const std::string label = absl::StrCat(family.substr(0, family.find('/')), "/");
  std::copy_if(families.begin(), families.end(), std::back_inserter(of_label),
               [&](const std::string& one) { return absl::StartsWith(one, label); });
  if (!of_label.empty()) families = std::move(of_label);
  const bool blocks = along == figure::Along::kBlocks;
  constexpr size_t kNamed = 20;
  return lookup::InvalidField(
      "key",
      absl::StrCat("no converged run has metrics by ", blocks ? "block" : "level", " of ",
                   reflect::Quoted(family)),
      !families.empty() ? report::Enumerated(families, kNamed)
      : blocks          ? "a family that `evaluation.record` or `ablate analyze` gave"
                        : "LABEL/PERTURBATION@*/NUMBER of an analysis of kind robustness. Make one "
                          "with `ablate analyze robustness`");
}

}  // namespace ablate::results
