#include "server/report/compare/gate.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "server/report/compare/decision.h"
#include "server/report/compare/looks.h"
#include "server/report/compare/phrases.h"
#include "server/report/compare/wording.h"

namespace ablate::report {
namespace {

std::string WithheldText(Withheld withheld) {
  switch (withheld) {
    case Withheld::kUnfinished:
      return "runs have not ended";
    case Withheld::kScoredDifferently:
      return "evaluated on different data";
    case Withheld::kExploratory:
      return "not the planned metric";
    case Withheld::kTooFewPairs:
    case Withheld::kNo:
      break;
  }
  return "too few pairs";
}

struct RowGate {
  GateDecision decision = GateDecision::kCannotSay;
  size_t more_pairs = 0;
  std::string text;  // "established better (p = 0.003)"
};

// Returns the name of a decided row's direction.
std::string Established(int toward, Better better, const std::string& p) {
  return absl::StrCat("established ", DirectionName(toward, better), " (", p, ")");
}

std::string MoreText(size_t pairs, Unit unit) {
  if (pairs == 0) return "";
  return absl::StrCat(", at least ", Counted(pairs, absl::StrCat("more ", UnitName(unit))),
                      " needed");
}

GateDecision Decided(int toward, Better better) {
  if (better == Better::kNeither) return GateDecision::kNotShown;
  return toward > 0 ? GateDecision::kBetter : GateDecision::kWorse;
}

// Decides by the verdict, which counts on one look.
RowGate DecideOnce(const Comparison& comparison, const ComparisonRow& row, double level) {
  const Decision verdict = Decide(comparison, row);
  const bool reaches = row.p_holm.defined() && row.p_holm.value <= level;
  if (verdict.grade == Grade::kEstablished && reaches) {
    return {Decided(verdict.toward, comparison.better), 0,
            Established(verdict.toward, comparison.better, PText(row.p_holm.value))};
  }
  const size_t fewest =
      FewestPairsOfSignFlip(level / static_cast<double>(std::max<size_t>(comparison.family, 1)));
  const size_t pairs = row.tested_pairs();
  RowGate gate;
  if (row.withheld != Withheld::kNo || pairs < fewest) {
    if (row.withheld != Withheld::kScoredDifferently && pairs < fewest) {
      gate.more_pairs = fewest - pairs;
    }
    gate.text =
        absl::StrCat(WithheldText(row.withheld), MoreText(gate.more_pairs, comparison.unit));
    return gate;
  }
  gate.decision = GateDecision::kNotShown;
  if (row.needed.estimate.defined() && row.needed.estimate.value > static_cast<double>(pairs)) {
    gate.more_pairs = static_cast<size_t>(row.needed.estimate.value) - pairs;
  }
  gate.text = absl::StrCat(
      "not shown", row.p_holm.defined() ? absl::StrCat(" (", PText(row.p_holm.value), ")") : "");
  return gate;
}

// Decides by a p that holds at any look.
RowGate DecideAtAnyLook(const Comparison& comparison, const ComparisonRow& row, Sides sides,
                        double p, double level) {
  RowGate gate;
  const std::string shown = absl::StrCat(PText(p), " at any look");
  const Looks& looks = *row.looks;
  const int toward = looks.p_better <= looks.p_worse ? 1 : -1;
  // A change that is worse leaves a session without spending its level.
  const bool worse = sides == Sides::kBetter && looks.p_worse <= level;
  if (p <= level || worse) {
    gate.decision = Decided(worse ? -1 : toward, comparison.better);
    gate.text = Established(worse ? -1 : toward, comparison.better,
                            worse ? absl::StrCat(PText(looks.p_worse), " at any look") : shown);
    return gate;
  }
  gate.more_pairs = MorePairsToDecide(looks, sides, level);
  const bool futile = IsFutile(looks, row.pairs.all);
  gate.decision = futile ? GateDecision::kNotShown : GateDecision::kCannotSay;
  gate.text = absl::StrCat(futile ? "not shown, and not worth more pairs (" : "undecided (", shown,
                           ")", futile ? "" : MoreText(gate.more_pairs, comparison.unit));
  return gate;
}

// Decides about the rows of a comparison one by one.
class GateMaker {
 public:
  GateMaker(const Comparison& comparison, const GateOptions& options)
      : comparison_(comparison), options_(options) {
    gate_.changes = options.changes;
  }

  Gate Make() {
    const std::vector<Number> adjusted = AdjustedLooks();
    std::vector<std::string> texts;
    size_t rows = 0, worse = 0;
    bool better = false, undecided = false;
    double most = -std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < comparison_.rows.size(); ++i) {
      const ComparisonRow& row = comparison_.rows[i];
      if (!row.compared()) continue;
      const RowGate decided = DecideRow(row, adjusted[i]);
      texts.push_back(absl::StrCat(Quoted(row.label), ": ", decided.text));
      ++rows;
      better = better || decided.decision == GateDecision::kBetter;
      worse += decided.decision == GateDecision::kWorse ? 1 : 0;
      undecided = undecided || decided.decision == GateDecision::kCannotSay;
      if (decided.decision != GateDecision::kCannotSay) continue;
      if (decided.more_pairs > 0 &&
          (gate_.more_pairs == 0 || decided.more_pairs < gate_.more_pairs)) {
        gate_.more_pairs = decided.more_pairs;
      }
      const double evidence = row.looks.has_value() ? row.looks->LogBetter() : 0;
      if (evidence <= most) continue;
      most = evidence;
      gate_.next = row.label;
    }
    gate_.decision = better                   ? GateDecision::kBetter
                     : undecided || rows == 0 ? GateDecision::kCannotSay
                     : worse == rows          ? GateDecision::kWorse
                                              : GateDecision::kNotShown;
    gate_.text = texts.empty() ? "nothing is compared with a baseline" : absl::StrJoin(texts, "; ");
    return std::move(gate_);
  }

 private:
  bool by_looks() const { return options_.looks || options_.session; }

  // Returns p at any look of each row, Holm-adjusted over those that are compared.
  std::vector<Number> AdjustedLooks() const {
    std::vector<Number> p;
    std::vector<size_t> places;
    for (size_t i = 0; i < comparison_.rows.size(); ++i) {
      const ComparisonRow& row = comparison_.rows[i];
      if (!row.in_family()) continue;
      p.push_back(row.looks.has_value() ? Defined(row.looks->p)
                                        : NoNumber(Undefined::kTooFewPairs));
      places.push_back(i);
    }
    const std::vector<Number> adjusted = HolmAdjust(p);
    std::vector<Number> by_row(comparison_.rows.size(), NoNumber(Undefined::kNotRecorded));
    for (size_t i = 0; i < places.size(); ++i) by_row[places[i]] = adjusted[i];
    return by_row;
  }

  RowGate DecideRow(const ComparisonRow& row, const Number& adjusted) {
    if (!by_looks()) return DecideOnce(comparison_, row, options_.level);
    const double level = options_.session ? LevelOf(ChangeOf(row)) : options_.level;
    const bool waits = row.withheld == Withheld::kUnfinished;
    if (!row.looks.has_value() || !row.in_family() || waits) {
      return {GateDecision::kCannotSay, 0, waits ? "runs have not ended" : "no pairs"};
    }
    if (!options_.session) {
      return DecideAtAnyLook(comparison_, row, Sides::kEither, adjusted.value, level);
    }
    return DecideAtAnyLook(comparison_, row, Sides::kBetter, row.looks->p_better, level);
  }

  // Returns the identity of a change: its label and its first pair, which further pairs leave as it
  // is, so that two changes of one label differ.
  std::string ChangeOf(const ComparisonRow& row) const {
    const std::vector<SeedRun>& baseline = comparison_.rows[*row.baseline].runs;
    for (const SeedRun& run : row.runs) {
      for (const SeedRun& other : baseline) {
        if (run.seed != other.seed) continue;
        return absl::StrCat(row.label, ", seed ", run.seed, ": ", text::ShortestDecimal(run.value),
                            " against ", text::ShortestDecimal(other.value));
      }
    }
    return row.label;
  }

  // Returns the level of a change, a new one if the session doesn't have it.
  double LevelOf(const std::string& change) {
    auto place = std::find(gate_.changes.begin(), gate_.changes.end(), change);
    const auto number = static_cast<size_t>(place - gate_.changes.begin()) + 1;
    if (place == gate_.changes.end()) gate_.changes.push_back(change);
    return LevelOfChange(number, kPlannedChanges, options_.level);
  }

  const Comparison& comparison_;
  const GateOptions& options_;
  Gate gate_;
};

}  // namespace

Gate DecideGate(const Comparison& comparison, const GateOptions& options) {
  return GateMaker(comparison, options).Make();
}

}  // namespace ablate::report
