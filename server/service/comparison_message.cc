#include "server/service/comparison_message.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clean.h"
#include "base/status_macros.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"
#include "server/lookup/names.h"
#include "server/report/compare/gate.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/verdict.h"
#include "server/report/compare/wording.h"
#include "server/report/table/comparison_tables.h"

namespace ablate::service {
namespace {

using Reasons = google::protobuf::Map<std::string, v1::Undefined::Value>;

v1::Undefined::Value ReasonOf(report::Undefined undefined) {
  v1::Undefined::Value value = v1::Undefined::unspecified;
  v1::Undefined::Value_Parse(std::string(report::UndefinedName(undefined)), &value);
  return value;
}

// Sets the field `name`, or stores the reason of its absence in `undefined`.
template <class Message>
void Put(const report::Number& number, void (Message::*set)(double), const char* name,
         Message* message) {
  if (number.defined()) {
    (message->*set)(number.value);
  } else {
    (*message->mutable_undefined())[name] = ReasonOf(number.undefined);
  }
}

template <class Message>
void Put(const report::Interval& interval, void (Message::*low)(double),
         void (Message::*high)(double), const char* low_name, const char* high_name,
         Message* message) {
  const auto end = [&interval](double value) { return report::Number{value, interval.undefined}; };
  Put(end(interval.low), low, low_name, message);
  Put(end(interval.high), high, high_name, message);
}

using LabelMap = google::protobuf::Map<std::string, std::string>;

void PutLabels(const std::vector<std::string>& axes, const std::vector<std::string>& labels,
               LabelMap* map) {
  for (size_t i = 0; i < labels.size(); ++i) (*map)[axes[i]] = labels[i];
}

v1::Difference PartMessage(report::Scale scale, const report::PairedStatistics& statistics,
                           bool bootstrap) {
  using D = v1::Difference;
  D message;
  Put(statistics.mean, &D::set_mean, "mean", &message);
  Put(statistics.interval, &D::set_low, &D::set_high, "low", "high", &message);
  Put(statistics.deviation, &D::set_deviation, "deviation", &message);
  Put(statistics.t, &D::set_t, "t", &message);
  Put(statistics.skewness, &D::set_skewness, "skewness", &message);
  message.set_by_rechoosing(statistics.by_reselection);
  if (bootstrap) {
    Put(statistics.bca, &D::set_bca_low, &D::set_bca_high, "bca_low", "bca_high", &message);
  }
  if (scale == report::Scale::kRatio) {
    Put(OffScale(scale, statistics.mean), &D::set_ratio, "ratio", &message);
    Put(OffScale(scale, statistics.interval), &D::set_ratio_low, &D::set_ratio_high, "ratio_low",
        "ratio_high", &message);
  }
  return message;
}

void PutPairs(const report::ComparisonRow& row, v1::ComparisonRow* message) {
  if (!row.compared()) return;
  message->set_wins(static_cast<uint32_t>(row.pairs.wins));
  message->set_losses(static_cast<uint32_t>(row.pairs.losses));
  message->set_ties(static_cast<uint32_t>(row.pairs.ties));
  message->set_pairs(static_cast<uint32_t>(row.pairs.all));
  message->set_pairs_converged(static_cast<uint32_t>(row.pairs.converged));
}

void PutStatistics(const report::ComparisonRow& row, v1::ComparisonRow* message) {
  using R = v1::ComparisonRow;
  const report::PairedStatistics& difference = row.difference;
  Put(row.mean, &R::set_mean, "mean", message);
  Put(row.interval, &R::set_mean_low, &R::set_mean_high, "mean_low", "mean_high", message);
  Put(difference.p_sign_flip, &R::set_p_sign_flip, "p_sign_flip", message);
  Put(row.p, &R::set_p, "p", message);
  message->set_by_wins(row.by_wins);
  Put(row.p_holm, &R::set_p_holm, "p_holm", message);
  Put(difference.p_t, &R::set_p_t, "p_t", message);
  if (row.compared()) Put(row.p_t_holm, &R::set_p_t_holm, "p_t_holm", message);
  // Without a margin the test was not requested.
  if (row.p_equivalence.undefined != report::Undefined::kNotRecorded) {
    Put(row.p_equivalence, &R::set_p_equivalence, "p_equivalence", message);
  }
  message->set_exact(row.exact);
  Put(difference.effect, &R::set_effect, "effect", message);
  Put(difference.effect_unbiased, &R::set_effect_unbiased, "effect_unbiased", message);
  Put(difference.correlation, &R::set_correlation, "correlation", message);
  Put(row.noise_ratio, &R::set_noise_ratio, "noise_ratio", message);
  if (row.looks.has_value()) {
    message->set_p_any_look(row.looks->p);
    message->set_p_better_any_look(row.looks->p_better);
  }
  PutPairs(row, message);
}

void PutCosts(const report::ComparisonRow& row, v1::ComparisonRow* message) {
  using R = v1::ComparisonRow;
  if (row.parameters.has_value()) {
    message->set_parameters(static_cast<uint64_t>(row.parameters->low));
    if (row.parameters->high != row.parameters->low) {
      message->set_most_parameters(static_cast<uint64_t>(row.parameters->high));
    }
  }
  Put(row.device_seconds, &R::set_device_seconds, "device_seconds", message);
  message->set_device_seconds_all(row.device_seconds_all);
  Put(row.tokens_per_second, &R::set_tokens_per_second, "tokens_per_second", message);
}

// Converts the common part of table rows and matched blocks.
v1::ComparisonRow PartMessage(const report::Comparison& comparison,
                              const report::ComparisonRow& row, bool bootstrap) {
  v1::ComparisonRow message;
  PutLabels(comparison.row_axes, row.labels, message.mutable_labels());
  message.set_label(row.label);
  message.set_is_baseline(row.is_baseline);
  if (row.baseline.has_value()) message.set_baseline(static_cast<uint32_t>(*row.baseline));
  message.set_n(static_cast<uint32_t>(row.n));
  message.set_diverged(static_cast<uint32_t>(row.diverged));
  message.set_missing(static_cast<uint32_t>(row.missing));
  message.set_failed(static_cast<uint32_t>(row.failed));
  message.set_unfinished(static_cast<uint32_t>(row.unfinished));
  for (const std::string& path : row.scored_differently) message.add_scored_differently(path);
  *message.mutable_difference() = PartMessage(comparison.scale, row.difference, bootstrap);
  PutStatistics(row, &message);
  PutCosts(row, &message);
  return message;
}

v1::PairUnit::Value PartMessage(report::Unit unit) {
  static_assert(static_cast<int>(report::Unit::kSeed) + 1 == v1::PairUnit::SEED);
  static_assert(static_cast<int>(report::Unit::kGroup) + 1 == v1::PairUnit::GROUP);
  return static_cast<v1::PairUnit::Value>(static_cast<int>(unit) + 1);
}

v1::Better::Value PartMessage(report::Better better) {
  switch (better) {
    case report::Better::kLower:
      return v1::Better::lower;
    case report::Better::kHigher:
      return v1::Better::higher;
    case report::Better::kNeither:
      break;
  }
  return v1::Better::unspecified;
}

v1::Verdict PartMessage(const report::Verdict& verdict) {
  static_assert(static_cast<int>(report::VerdictOutcome::kBetter) + 1 ==
                v1::VerdictOutcome::BETTER);
  static_assert(static_cast<int>(report::VerdictOutcome::kScoredDifferently) + 1 ==
                v1::VerdictOutcome::SCORED_DIFFERENTLY);
  static_assert(static_cast<int>(report::VerdictOutcome::kLower) + 1 == v1::VerdictOutcome::LOWER);
  static_assert(static_cast<int>(report::VerdictOutcome::kEquivalent) + 1 ==
                v1::VerdictOutcome::EQUIVALENT);
  static_assert(static_cast<int>(report::Grade::kNoVerdict) + 1 == v1::VerdictGrade::NO_VERDICT);
  static_assert(static_cast<int>(report::Grade::kEstablished) + 1 == v1::VerdictGrade::ESTABLISHED);
  v1::Verdict message;
  message.set_outcome(
      static_cast<v1::VerdictOutcome::Value>(static_cast<int>(verdict.outcome) + 1));
  message.set_grade(static_cast<v1::VerdictGrade::Value>(static_cast<int>(verdict.grade) + 1));
  message.set_equivalent(verdict.equivalent);
  message.set_text(verdict.text);
  message.set_seeds_to_decide(static_cast<uint32_t>(verdict.seeds.seeds));
  message.set_seeds_low(static_cast<uint32_t>(verdict.seeds.low));
  message.set_seeds_high(static_cast<uint32_t>(verdict.seeds.high));
  return message;
}

v1::WindowSummary PartMessage(const v1::Window& window, const report::WindowSummary& summary) {
  using W = v1::WindowSummary;
  W message;
  *message.mutable_window() = window;
  message.set_n(static_cast<uint32_t>(summary.over.n));
  message.set_left_out(static_cast<uint32_t>(summary.left_out));
  Put(summary.over.mean, &W::set_mean, "mean", &message);
  Put(summary.over.interval, &W::set_low, &W::set_high, "low", "high", &message);
  message.set_fewest_points(summary.fewest_points);
  return message;
}

v1::FactorialEffect PartMessage(report::Scale scale, const report::Effect& effect) {
  using F = v1::FactorialEffect;
  F message;
  for (const report::Level& level : effect.levels) {
    F::Level* added = message.add_levels();
    added->set_axis(level.axis);
    added->set_label(level.label);
    added->set_baseline(level.baseline);
  }
  message.set_combinations(static_cast<uint32_t>(effect.combinations));
  message.set_pairs(static_cast<uint32_t>(effect.difference.n));
  *message.mutable_difference() = PartMessage(scale, effect.difference, false);
  Put(effect.difference.p_sign_flip, &F::set_p_sign_flip, "p_sign_flip", &message);
  Put(effect.p_holm, &F::set_p_holm, "p_holm", &message);
  return message;
}

// Sets the fields that only table rows have.
void PutDetails(const results::ComparedGrid& compared, size_t index, v1::ComparisonRow* message) {
  const report::ComparisonRow& row = compared.comparison.rows[index];
  for (const report::Choice& choice : row.chosen) {
    v1::ChosenValues* chosen = message->add_chosen();
    PutLabels(compared.comparison.tuned_axes, choice.labels, chosen->mutable_labels());
    chosen->set_seeds(static_cast<uint32_t>(choice.seeds));
  }
  for (const html::FieldChange& field : results::ChangedFields(compared, index)) {
    v1::ChangedField* changed = message->add_changed();
    changed->set_path(field.path);
    changed->set_value(field.value);
    changed->set_baseline(field.baseline);
  }
  for (size_t i = 0; i < row.runs.size(); ++i) {
    v1::SeedResult* run = message->add_runs();
    run->set_seed(row.runs[i].seed);
    run->set_cell(compared.grid.cells[compared.rows[index][i]].name);
    run->set_diverged(row.runs[i].diverged);
    if (!row.runs[i].diverged) run->set_value(row.runs[i].value);
  }
  for (size_t i = 0; i < compared.windows.windows.size(); ++i) {
    *message->add_windows() =
        PartMessage(compared.grid.spec.report().summaries(static_cast<int>(i)),
                    compared.windows.rows[index][i]);
  }
}

void PutWarnings(const report::Comparison& comparison, v1::Comparison* message) {
  using W = v1::ComparisonWarning;
  // In the order of WarningKind. A damaged run is a missing result whose warning has the reason.
  static constexpr W::Kind kKinds[] = {W::SCORED_DIFFERENTLY,
                                       W::MISSING_CELLS,
                                       W::FAILED_CELLS,
                                       W::NON_FINITE_VALUES,
                                       W::UNBALANCED_SEEDS,
                                       W::TOO_FEW_SEEDS,
                                       W::NO_BASELINE,
                                       W::UNEQUAL_PARAMETERS,
                                       W::SEVERAL_CHANGES,
                                       W::MIXED_PROVENANCE,
                                       W::CONTENDED_THROUGHPUT,
                                       W::GRID_EDGE,
                                       W::TUNED_ON_SAME_SEED,
                                       W::MISSING_CELLS,
                                       W::SEVERAL_EXPERIMENTS,
                                       W::NOT_POSITIVE,
                                       W::OTHER_CANDIDATES,
                                       W::HIGH_START,
                                       W::SEEDS_ADDED,
                                       W::NOT_BY_SEQUENCE,
                                       W::SKEWED_DIFFERENCES,
                                       W::UNEQUAL_NOISE,
                                       W::MANY_TIES};
  static_assert(std::size(kKinds) == static_cast<size_t>(report::WarningKind::kManyTies) + 1);
  for (const report::Warning& warning : comparison.warnings) {
    v1::ComparisonWarning* added = message->add_warnings();
    added->set_kind(kKinds[static_cast<size_t>(warning.kind)]);
    added->set_text(warning.text);
  }
}

v1::MatchedComparison PartMessage(const report::Comparison& comparison,
                                  const report::MatchedBlock& block) {
  v1::MatchedComparison message;
  PutLabels(comparison.tuned_axes, block.labels, message.mutable_labels());
  for (const report::ComparisonRow& row : block.rows) {
    *message.add_rows() = PartMessage(comparison, row, false);
  }
  return message;
}

// Adds all blocks if they fit into the rest of a message; otherwise only the reference.
void PutMatched(const report::Comparison& comparison, v1::Comparison* message) {
  size_t bytes = message->ByteSizeLong();
  for (size_t i = 0; i < comparison.matched.size(); ++i) {
    v1::MatchedComparison block = PartMessage(comparison, comparison.matched[i]);
    block.set_is_reference(comparison.reference == i);
    bytes += block.ByteSizeLong();
    *message->add_matched() = std::move(block);
    if (bytes > lookup::kPageBytes) break;
  }
  if (bytes <= lookup::kPageBytes) return;
  message->clear_matched();
  if (!comparison.reference.has_value()) return;
  *message->add_matched() = PartMessage(comparison, comparison.matched[*comparison.reference]);
  message->mutable_matched(0)->set_is_reference(true);
}

// Returns a line for each difference between the settings of several experiments; empty for one
// experiment, whose axes show it.
std::string SpecsText(const results::ComparedGrid& compared) {
  if (compared.operands.empty()) return "";
  std::string lines;
  for (size_t row = 0; row < compared.comparison.rows.size(); ++row) {
    std::vector<std::string> fields;
    for (const html::FieldChange& field : results::ChangedFields(compared, row)) {
      const auto shown = [](const std::string& value) {
        return value.empty() ? absl::string_view("unset") : absl::string_view(value);
      };
      fields.push_back(
          absl::StrCat(field.path, " ", shown(field.value), " (", shown(field.baseline), ")"));
    }
    if (fields.empty()) continue;
    const std::string line = absl::StrCat(report::Quoted(compared.comparison.rows[row].label), "  ",
                                          absl::StrJoin(fields, ", "));
    absl::StrAppend(&lines, lines.empty() ? "\nspecs, in brackets the baseline's:\n" : "", "  ",
                    text::CleanText(line), "\n");
  }
  return lines;
}

}  // namespace

absl::StatusOr<v1::Comparison> ToMessage(const results::ComparedGrid& compared) {
  const report::Comparison& comparison = compared.comparison;
  v1::Comparison message;
  const bool is_stored = !compared.operands.empty() || !compared.grid.record.id.empty();
  if (is_stored)
    message.set_experiment(lookup::ExperimentName(
        compared.operands.empty() ? compared.grid.record.id : compared.operands[0]));
  for (size_t i = 1; i < compared.operands.size(); ++i) message.add_others(compared.operands[i]);
  message.set_key(comparison.key);
  message.set_at(comparison.at.has_value() ? static_cast<int32_t>(*comparison.at) : -1);
  message.set_better(PartMessage(comparison.better));
  message.set_scale(comparison.scale == report::Scale::kRatio ? v1::Scale::ratio
                                                              : v1::Scale::difference);
  message.set_unit(PartMessage(comparison.unit));
  for (const std::string& axis : comparison.row_axes) message.add_row_axes(axis);
  for (const std::string& axis : comparison.tuned_axes) message.add_tuned_axes(axis);
  for (size_t i = 0; i < comparison.rows.size(); ++i) {
    v1::ComparisonRow* row = message.add_rows();
    *row = PartMessage(comparison, comparison.rows[i], true);
    PutDetails(compared, i, row);
  }
  const std::vector<report::Finding> findings = report::FindingsOf(comparison);
  for (const report::Finding& finding : findings) {
    *message.mutable_rows(static_cast<int>(finding.row))->mutable_verdict() =
        PartMessage(report::RowVerdict(comparison, finding));
  }
  message.set_family(static_cast<uint32_t>(comparison.family));
  message.set_planned(static_cast<uint32_t>(comparison.planned));
  message.set_ended(static_cast<uint32_t>(comparison.ended));
  for (const std::string& axis : comparison.within_axes) message.add_within_axes(axis);
  for (const report::Effect& effect : comparison.factorial.main) {
    *message.add_main_effects() = PartMessage(comparison.scale, effect);
  }
  for (const report::Effect& effect : comparison.factorial.interactions) {
    *message.add_interactions() = PartMessage(comparison.scale, effect);
  }
  *message.mutable_verdict() = PartMessage(report::OverallVerdict(comparison, findings));
  PutWarnings(comparison, &message);
  message.set_matched_note(report::MatchedNote(comparison, findings));
  message.set_text(absl::StrCat(report::ComparisonText(comparison, findings, compared.windows),
                                SpecsText(compared)));
  PutMatched(comparison, &message);
  if (message.ByteSizeLong() > lookup::kPageBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a comparison of ", comparison.rows.size(), " rows exceeds the limit of ",
                     lookup::kPageBytes >> 20, " MiB per answer. Use `ablate table --format csv`"));
  }
  return message;
}

namespace {

constexpr int kMaxSessionChanges = 1'000;

absl::StatusOr<report::GateOptions> ReadGate(const report::Comparison& comparison,
                                             const v1::GateRequest& request) {
  report::GateOptions options;
  options.looks = request.looks();
  options.session = request.session();
  if (request.has_level()) options.level = request.level();
  if (!(options.level > 0 && options.level <= report::kAlpha)) {
    return lookup::InvalidField("gate.level", absl::StrCat(options.level, " is out of range"),
                                absl::StrCat("above 0, at most ", report::kAlpha));
  }
  if (request.changes_size() > kMaxSessionChanges) {
    return lookup::TooMany("gate.changes", request.changes_size(), kMaxSessionChanges);
  }
  if (comparison.better == report::Better::kNeither) {
    return lookup::InvalidField(
        "gate", absl::StrCat("nothing says which values of ", comparison.key, " are better"),
        "a metric with report.better, or a loss or accuracy");
  }
  if ((options.looks || options.session) && comparison.unit != report::Unit::kSeed) {
    return lookup::InvalidField("gate.looks",
                                absl::StrCat("pairs are ", report::UnitName(comparison.unit),
                                             "s, which are all there at once"),
                                "one look, and no session");
  }
  options.changes.assign(request.changes().begin(), request.changes().end());
  return options;
}

}  // namespace

absl::StatusOr<v1::Comparison> ToMessage(const results::ComparedGrid& compared,
                                         const v1::GateRequest& gate) {
  ASSIGN_OR_RETURN(const auto options, ReadGate(compared.comparison, gate));
  ASSIGN_OR_RETURN(v1::Comparison message, ToMessage(compared));
  static_assert(static_cast<int>(report::GateDecision::kBetter) + 1 == v1::Gate::BETTER);
  static_assert(static_cast<int>(report::GateDecision::kCannotSay) + 1 == v1::Gate::CANNOT_SAY);
  const report::Gate decided = report::DecideGate(compared.comparison, options);
  v1::Gate* to = message.mutable_gate();
  to->set_decision(static_cast<v1::Gate::Decision>(static_cast<int>(decided.decision) + 1));
  to->set_text(decided.text);
  to->set_more_pairs(static_cast<uint32_t>(decided.more_pairs));
  to->set_next(decided.next);
  to->mutable_changes()->Add(decided.changes.begin(), decided.changes.end());
  return message;
}

}  // namespace ablate::service
