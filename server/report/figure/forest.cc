#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "server/report/compare/column_digits.h"
#include "server/report/compare/decision.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/scale.h"
#include "server/report/compare/verdict.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/dot_plot.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/layout.h"

namespace ablate::figure {
namespace {

using report::Comparison;
using report::ComparisonRow;

constexpr absl::string_view kScoredOnOtherData = "other evaluation data";

// Returns differences on the scale by seed, for seeds on which both converged. None for pairs of
// sequences: one seed's is the mean.
std::vector<DotSeed> Differences(report::Unit unit, report::Scale scale, const ComparisonRow& row,
                                 const ComparisonRow& baseline) {
  if (unit != report::Unit::kSeed) return {};
  std::map<uint32_t, double> of_baseline;
  for (const report::SeedRun& run : baseline.runs) {
    if (!run.diverged) of_baseline[run.seed] = report::OnScale(scale, run.value);
  }
  std::vector<DotSeed> differences;
  for (const report::SeedRun& run : row.runs) {
    const auto pair = of_baseline.find(run.seed);
    if (!run.diverged && pair != of_baseline.end()) {
      differences.push_back({report::OnScale(scale, run.value) - pair->second, run.seed});
    }
  }
  return differences;
}

// Returns "0.004", or the most frequent selection: "0.002 6/12 …". "" if nothing is tuned.
std::string ShortChoice(const ComparisonRow& row) {
  if (row.chosen.empty()) return "";
  const auto fewer = [](const report::Choice& a, const report::Choice& b) {
    return a.seeds < b.seeds;
  };
  const report::Choice& most = *std::max_element(row.chosen.begin(), row.chosen.end(), fewer);
  const std::string values = absl::StrJoin(most.labels, ", ");
  if (row.chosen.size() == 1) return values;
  size_t seeds = 0;
  for (const report::Choice& choice : row.chosen) seeds += choice.seeds;
  return absl::StrCat(values, " ", most.seeds, "/", seeds, " …");
}

bool HasWins(const Comparison& comparison) { return comparison.better != report::Better::kNeither; }

// Properties that a figure's rows share.
struct RowLook {
  const Comparison& comparison;
  std::map<std::string, size_t> styles{};  // by label
  bool many = false;                       // all in one ink
  std::string tuned{};                     // "lr"; "" if nothing is tuned
};

RowLook LookOf(const Comparison& comparison) {
  RowLook look{comparison};
  const std::vector<size_t> indices = StyleIndices(comparison);
  for (size_t i = 0; i < indices.size(); ++i) look.styles[comparison.rows[i].label] = indices[i];
  look.many = HasManySettings(comparison);
  look.tuned = absl::StrJoin(comparison.tuned_axes, ", ");
  return look;
}

DotRow RowOf(const ComparisonRow& row, const ComparisonRow& baseline, const RowLook& look,
             bool judged) {
  DotRow dots;
  dots.label = row.label;
  dots.style = StyleOf(look.many ? kPlainStyle : look.styles.at(row.label));
  dots.seeds = Differences(look.comparison.unit, look.comparison.scale, row, baseline);
  dots.mean = row.difference.mean;
  dots.interval = row.difference.interval;
  const report::Pairs& pairs = row.pairs;
  const std::string all = text::Grouped(pairs.all);
  const std::string n = pairs.converged == pairs.all
                            ? all
                            : absl::StrCat(text::Grouped(pairs.converged), " of ", all);
  if (!look.tuned.empty()) {
    const std::string choice = judged ? ShortChoice(row) : "";
    dots.columns.push_back(choice);
    if (!choice.empty()) dots.narrow_remark = absl::StrCat(look.tuned, " ", choice);
  }
  dots.columns.push_back(n);
  const std::string number = UnitsText(look.comparison.unit, n);
  dots.short_remark = number;
  if (HasWins(look.comparison)) {
    const std::string wins = text::Grouped(pairs.wins);
    dots.columns.push_back(absl::StrCat(wins, "/", all));
    absl::StrAppend(&dots.short_remark, ", wins ", wins);
  }
  if (!row.in_family()) {
    dots.remark = absl::StrCat("(", kScoredOnOtherData, ")");
    dots.short_remark = absl::StrCat(number, " ", dots.remark);
  } else if (report::DivergedBySequence(look.comparison.unit, row, baseline)) {
    dots.remark = row.diverged > 0 ? "(diverged)" : "(baseline diverged)";
    dots.short_remark = dots.remark;
  }
  return dots;
}

// Returns a group's title: the baseline of rows of `labels`, and the tuned values.
std::string TitleOf(const std::string& tuning, const std::string& baseline, bool several) {
  const std::string against = several ? absl::StrCat("vs ", baseline) : "";
  const bool both = !tuning.empty() && several;
  return report::Capitalized(absl::StrCat(against, both ? ", " : "", tuning));
}

struct Source {
  const std::vector<ComparisonRow>* rows;
  std::string tuning;  // "each at its selected lr", "all at lr 0.01"; empty if nothing is tuned
};

std::vector<Source> SourcesOf(const Comparison& comparison) {
  if (comparison.tuned_axes.empty()) return {{&comparison.rows, ""}};
  std::vector<Source> sources = {
      {&comparison.rows,
       absl::StrCat("each at its selected ", absl::StrJoin(comparison.tuned_axes, ", "))}};
  if (!comparison.reference) return sources;
  const report::MatchedBlock& block = comparison.matched[*comparison.reference];
  std::vector<std::string> at;
  for (size_t i = 0; i < block.labels.size(); ++i) {
    at.push_back(absl::StrCat(comparison.tuned_axes[i], " ", block.labels[i]));
  }
  sources.push_back({&block.rows, absl::StrCat("all at ", absl::StrJoin(at, ", "))});
  return sources;
}

// Rows at one choice of the tuned axes aren't tested, and have no choice of their own.
bool IsJudged(const Comparison& comparison, const Source& source) {
  return source.rows == &comparison.rows;
}

// Returns the group of a source's rows, at least one, that share a baseline.
DotGroup GroupOf(const Source& source, const std::vector<const ComparisonRow*>& rows,
                 const RowLook& look) {
  const Comparison& comparison = look.comparison;
  const ComparisonRow& baseline = (*source.rows)[*rows[0]->baseline];
  const bool judged = IsJudged(comparison, source);
  const bool several = !report::SharedBaseline(comparison).has_value();
  DotGroup group;
  group.title = TitleOf(source.tuning, report::Listed(baseline.label), several);
  if (judged && !baseline.chosen.empty()) {
    group.remark = absl::StrCat(baseline.label, ": ", look.tuned, " ", ShortChoice(baseline));
  }
  for (const ComparisonRow* row : rows) {
    DotRow dots = RowOf(*row, baseline, look, judged);
    if (look.many && judged) dots.mark = MarkOf(comparison, *row);
    group.rows.push_back(std::move(dots));
  }
  WriteValues(true, comparison.scale, &group);
  if (look.many) SortRows(comparison.better, &group.rows);
  return group;
}

// Returns one group for each baseline, in their order.
std::vector<DotGroup> GroupsOf(const Source& source, const RowLook& look) {
  std::map<size_t, std::vector<const ComparisonRow*>> compared;
  for (const ComparisonRow& row : *source.rows) {
    if (row.compared()) compared[*row.baseline].push_back(&row);
  }
  std::vector<DotGroup> groups;
  for (const auto& [baseline, rows] : compared) {
    groups.push_back(GroupOf(source, rows, look));
  }
  return groups;
}

// Returns the verdict's name, as in the comparison's table; for rows that aren't tested, only why
// they could not be.
std::string VerdictName(const Comparison& comparison, const Source& source,
                        const ComparisonRow& row) {
  if (!IsJudged(comparison, source) && row.withheld == report::Withheld::kNo) return "";
  return std::string(report::OutcomeName(report::Decide(comparison, row).outcome));
}

// Returns the number of the row's runs in the mean: by sequence its only one, or none.
size_t PairedRuns(report::Unit unit, const report::Pairs& pairs) {
  return unit != report::Unit::kSeed ? std::min<size_t>(pairs.converged, 1) : pairs.converged;
}

void AddCsv(const Comparison& comparison, const Source& source, std::string* csv) {
  for (const ComparisonRow& row : *source.rows) {
    if (!row.compared()) continue;
    const ComparisonRow& baseline = (*source.rows)[*row.baseline];
    const std::string verdict = VerdictName(comparison, source, row);
    const report::Number mean = OffScale(comparison.scale, row.difference.mean);
    const report::Interval interval = OffScale(comparison.scale, row.difference.interval);
    const auto add = [&](const auto&... fields) {
      AddCsvRow(csv, source.tuning, row.label, baseline.label, fields..., comparison.ended,
                comparison.planned, verdict);
    };
    add("", mean.value, interval.low, interval.high, PairedRuns(comparison.unit, row.pairs),
        row.pairs.all, HasWins(comparison) ? absl::StrCat(row.pairs.wins) : "");
    for (const DotSeed& seed : Differences(comparison.unit, comparison.scale, row, baseline)) {
      const report::Number value = OffScale(comparison.scale, report::Defined(seed.value));
      add(*seed.seed, value.value, "", "", "", "", "");
    }
  }
}

// Returns the kinds of intervals: "Student's t", or "permutation test at the selected lr, Student's
// t at 0.01".
std::string IntervalsText(const Comparison& comparison) {
  if (!IsReselected(comparison)) return "Student's t";
  const std::string tuned = absl::StrJoin(comparison.tuned_axes, " and ");
  const std::string chosen = absl::StrCat("permutation test at the selected ", tuned);
  if (!comparison.reference) return chosen;
  return absl::StrCat(chosen, ", Student's t at ",
                      absl::StrJoin(comparison.matched[*comparison.reference].labels, ", "));
}

void AddWords(const Comparison& comparison, const RowLook& look, double width, DotPlot* dots) {
  const bool lower = comparison.better == report::Better::kLower;
  const bool neither = !HasWins(comparison);
  const bool ratio = comparison.scale == report::Scale::kRatio;
  dots->zero = true;
  dots->ratios = ratio;
  dots->below = neither ? "← lower" : lower ? "← better" : "← worse";
  dots->above = neither ? "higher →" : lower ? "worse →" : "better →";
  dots->value_title = ratio ? "ratio [95 % interval]" : "mean [95 % interval]";
  if (!look.tuned.empty()) dots->column_titles.push_back(look.tuned);
  dots->column_titles.push_back(UnitsTitle(look.comparison.unit));
  if (!neither) dots->column_titles.emplace_back("wins");
  const report::MetricName name = comparison.Metric();
  const auto shared = report::SharedBaseline(comparison);
  const std::string baseline = shared.has_value() ? comparison.rows[*shared].label : "";
  for (DotGroup& group : dots->groups) {
    group.axis_title = DifferenceTitle(comparison.scale, name, baseline, width - 2 * kEdge);
  }
  const std::string named = BaselineNote(comparison.scale, name, baseline, width - 2 * kEdge);
  dots->footnote =
      comparison.unit != report::Unit::kSeed
          ? absl::StrCat("over sequences; bar: 95 % interval of the mean, by ",
                         IntervalsText(comparison))
          : absl::StrCat(ratio ? "ratios" : "differences", " by seed; bar: 95 % interval of the ",
                         report::MeanName(comparison.scale), ", by ", IntervalsText(comparison));
  if (!named.empty()) dots->footnote = absl::StrCat(named, "; ", dots->footnote);
  if (look.many) absl::StrAppend(&dots->footnote, "; ", kMarkText);
  if (const std::string preliminary = report::PreliminaryText(comparison); !preliminary.empty()) {
    dots->footnote = absl::StrCat(preliminary, "; ", dots->footnote);
  }
}

std::string ForestCaption(const Input& input) {
  const Comparison& comparison = *input.comparison;
  const bool groups = comparison.reference.has_value() && !comparison.tuned_axes.empty();
  return absl::StrCat(
      DifferenceName(comparison.scale, comparison.Metric()),
      " to the baseline: ", report::MeanName(comparison.scale),
      comparison.unit != report::Unit::kSeed
          ? " and 95 % interval over the sequences that the models read. Intervals are by "
          : " and 95 % interval over the seeds on which both converged; dots are single seeds. "
            "Intervals are by ",
      IntervalsText(comparison),
      comparison.family > 1 ? "; they are per comparison, and only p values are Holm-adjusted" : "",
      ".",
      groups ? absl::StrCat(" First each setting at its selected ",
                            absl::StrJoin(comparison.tuned_axes, " and "), ", then all at ",
                            absl::StrJoin(comparison.matched[*comparison.reference].labels, ", "),
                            "; each group has its own scale.")
             : "",
      SettingsText(comparison));
}

std::string DifferencesText(report::Scale scale, const std::vector<ComparisonRow>& rows,
                            int decimals) {
  std::vector<std::string> differences;
  for (const ComparisonRow& row : rows) {
    if (!row.compared()) continue;
    if (!row.difference.mean.defined()) {
      differences.push_back(absl::StrCat(report::Listed(row.label), " (",
                                         report::PairReasonText(row.difference.mean.undefined),
                                         ")"));
      continue;
    }
    differences.push_back(absl::StrCat(
        report::Listed(row.label), " ",
        report::ShownDifference(scale, row.difference.mean, row.difference.interval, decimals)
            .text(),
        row.in_family() ? "" : absl::StrCat(" (", kScoredOnOtherData, ")")));
  }
  return report::Enumerated(differences, kMostNamed);
}

std::string ForestDescription(const Comparison& comparison) {
  const bool ratio = comparison.scale == report::Scale::kRatio;
  std::string text = absl::StrCat(
      ratio ? "Ratios of " : "Differences in ", comparison.Metric().text, ": ",
      DifferencesText(comparison.scale, comparison.rows, report::DifferenceDecimals(comparison)),
      ".");
  if (!comparison.reference.has_value()) return text;
  const report::MatchedBlock& block = comparison.matched[*comparison.reference];
  return absl::StrCat(text, " All at ", absl::StrJoin(block.labels, ", "), ": ",
                      DifferencesText(comparison.scale, block.rows, -1), ".");
}

absl::StatusOr<Drawing> DrawForest(const Input& input) {
  const Comparison& comparison = *input.comparison;
  const RowLook look = LookOf(comparison);
  const bool ratio = comparison.scale == report::Scale::kRatio;
  DotPlot dots;
  Drawing drawing;
  drawing.csv = absl::StrCat("group,setting,baseline,seed,", ratio ? "ratio" : "difference",
                             ",low,high,n,pairs,wins,ended,planned,verdict\n");
  for (const Source& source : SourcesOf(comparison)) {
    for (DotGroup& group : GroupsOf(source, look)) {
      dots.groups.push_back(std::move(group));
    }
    AddCsv(comparison, source, &drawing.csv);
  }
  if (dots.groups.empty()) {
    return absl::FailedPreconditionError(
        "kind: forest needs a comparison with a baseline, and nothing is compared here; expected "
        "an experiment with an axis that isn't tuned");
  }
  AddWords(comparison, look, input.width, &dots);
  ASSIGN_OR_RETURN(drawing.figure, DrawDotPlot(dots, input.width));
  drawing.figure.title = absl::StrCat(input.title, ": ", dots.groups[0].axis_title, ", paired by ",
                                      report::UnitName(comparison.unit));
  drawing.figure.description = ForestDescription(comparison);
  return drawing;
}

}  // namespace

// Paired differences to the baseline, each setting at its own choice of the tuned axes, and beside
// them all at one choice.
constexpr Kind kForest = {
    .name = "forest",
    .title = "Paired differences",
    .key = "",
    .wide = false,
    .folded = false,
    .reads = Reads::kComparison,
    .forms = {},
    .wanted = [](const Comparison& comparison) { return comparison.family > 0; },
    .reduce = nullptr,
    .draw = DrawForest,
    .caption = ForestCaption,
};

}  // namespace ablate::figure
