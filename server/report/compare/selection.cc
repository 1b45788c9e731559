#include "server/report/compare/selection.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "server/report/compare/statistics.h"

namespace ablate::report {
namespace {

// A candidate's results over some seeds; losses are values with the sign that makes lower better.
struct Record {
  CompensatedSum losses;
  size_t converged = 0;
  size_t diverged = 0;

  void Add(const Trial& trial, Better better) {
    if (trial.state == Trial::State::kConverged) {
      losses.Add(better == Better::kHigher ? -trial.value : trial.value);
      ++converged;
    }
    diverged += trial.state == Trial::State::kDiverged;
  }

  void Add(const Record& other) {
    losses.Add(other.losses);
    converged += other.converged;
    diverged += other.diverged;
  }

  Standing standing() const {
    const double mean = converged > 0 ? losses.Total() / static_cast<double>(converged) : 0;
    return {mean, converged, diverged};
  }
};

// Returns the first of the best records; nothing if all are empty.
std::optional<size_t> Best(absl::Span<const Record> records) {
  size_t best = 0;
  for (size_t i = 1; i < records.size(); ++i) {
    if (Beats(records[i].standing(), records[best].standing())) best = i;
  }
  if (records.empty() || records[best].standing().empty()) return std::nullopt;
  return best;
}

// Returns one candidate's record of each seed's *other* seeds.
std::vector<Record> LeftOut(absl::Span<const Trial> trials, Better better) {
  std::vector<Record> others(trials.size());
  Record before;
  for (size_t seed = 0; seed < trials.size(); ++seed) {
    others[seed] = before;
    before.Add(trials[seed], better);
  }
  Record after;
  for (size_t seed = trials.size(); seed-- > 0;) {
    others[seed].Add(after);
    after.Add(trials[seed], better);
  }
  return others;
}

}  // namespace

bool Beats(const Standing& a, const Standing& b) {
  if (a.empty() || b.empty()) return !a.empty() && b.empty();
  if (a.diverged != b.diverged) return a.diverged < b.diverged;
  if (a.converged == 0 || b.converged == 0) return a.converged > b.converged;
  if (std::isinf(a.mean) || std::isinf(b.mean)) return a.mean < b.mean;  // sums too large
  return a.mean < b.mean - kTie * std::max(std::abs(a.mean), std::abs(b.mean));
}

Selection LeaveOneSeedOut(absl::Span<const Trial> trials, size_t candidates, size_t seeds,
                          Better better) {
  std::vector<std::vector<Record>> others;
  for (size_t candidate = 0; candidate < candidates; ++candidate) {
    others.push_back(LeftOut(trials.subspan(candidate * seeds, seeds), better));
  }
  Selection selection;
  selection.picks.resize(seeds);
  selection.counts.resize(candidates);
  std::vector<Record> records(candidates);
  for (size_t seed = 0; seed < seeds; ++seed) {
    for (size_t candidate = 0; candidate < candidates; ++candidate) {
      records[candidate] = others[candidate][seed];
    }
    std::optional<size_t> pick = Best(records);
    if (!pick.has_value()) {
      for (size_t candidate = 0; candidate < candidates; ++candidate) {
        records[candidate] = Record();
        records[candidate].Add(trials[candidate * seeds + seed], better);
      }
      pick = Best(records);
      if (candidates > 1 && pick.has_value()) ++selection.same_seed;
    }
    selection.picks[seed] = pick;
    if (pick.has_value() && trials[*pick * seeds + seed].state != Trial::State::kNone) {
      ++selection.counts[*pick];
    }
  }
  return selection;
}

std::optional<EdgePicks> CountEdgePicks(absl::Span<const double> values,
                                        const Selection& selection) {
  const std::set<double> tried(values.begin(), values.end());
  if (tried.size() < 3) return std::nullopt;
  EdgePicks edges{*tried.begin(), *tried.rbegin(), 0, 0};
  for (size_t candidate = 0; candidate < values.size(); ++candidate) {
    if (values[candidate] == edges.lowest) edges.at_lowest += selection.counts[candidate];
    if (values[candidate] == edges.highest) edges.at_highest += selection.counts[candidate];
  }
  return edges;
}

}  // namespace ablate::report
