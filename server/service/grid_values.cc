// The value of a metric that each run of a grid is judged by.
#include "server/service/grid_values.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/reflect/text.h"
#include "server/service/errors.h"

namespace ablate::service {
namespace {

using Value = absl::StatusOr<std::optional<double>>;

// The last value from `first_step` to `last_step`.
Value ReadLast(storage::Store* store, const storage::SeriesQuery& query) {
  std::optional<double> last;
  const absl::Status read = store->ReadSeries(
      query, [&last](const std::vector<uint32_t>&, const std::vector<double>& values) {
        if (!values.empty()) last = values.back();
        return true;
      });
  if (!read.ok()) return read;
  return last;
}

// Steps of a series around one that it lacks.
struct Neighbours {
  std::optional<uint32_t> first, before, after, last;
};

absl::StatusOr<Neighbours> FindNeighbours(storage::Store* store, const std::string& run,
                                          const std::string& key, uint32_t at) {
  Neighbours found;
  const absl::Status read = store->ReadSeries(
      {run, key}, [&found, at](const std::vector<uint32_t>& steps, const std::vector<double>&) {
        for (const uint32_t step : steps) {
          if (!found.first.has_value()) found.first = step;
          if (step < at) found.before = step;
          if (step > at && !found.after.has_value()) found.after = step;
          found.last = step;
        }
        return true;
      });
  if (!read.ok()) return read;
  return found;
}

std::string AllowedSteps(const Neighbours& steps) {
  std::vector<std::string> nearest;
  for (const auto& step : {steps.before, steps.after}) {
    if (step.has_value()) nearest.push_back(absl::StrCat(*step));
  }
  return absl::StrCat("-1 for the end, or a step with a point: nearest ",
                      absl::StrJoin(nearest, " and "), ", from ", *steps.first, " to ",
                      *steps.last);
}

}  // namespace

Value ReadValue(storage::Store* store, const ValueQuery& query, const std::string& run,
                const storage::RunSummaries& summaries) {
  if (!summaries.damage.empty()) return absl::DataLossError(summaries.damage);
  const auto summary =
      std::find_if(summaries.keys.begin(), summaries.keys.end(),
                   [&query](const storage::Summary& one) { return one.key == query.key; });
  if (summary == summaries.keys.end() || summary->count == 0) return std::nullopt;
  if (query.at.has_value()) return ReadLast(store, {run, query.key, *query.at, *query.at});
  if (summary->nonfinite == 0) return summary->last;
  // A summary's last value is the last finite one, which may not be the last.
  return ReadLast(store, {run, query.key, summary->first_nonfinite_step.value_or(0)});
}

absl::StatusOr<std::vector<std::string>> KeysOf(storage::Store* store,
                                                const std::string& experiment) {
  const auto counts = store->ExperimentKeys(experiment);
  if (!counts.ok()) return counts.status();
  std::vector<std::string> keys;
  for (const auto& [key, count] : *counts) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

absl::Status NoSuchKey(absl::string_view field, const std::string& key,
                       const std::string& experiment, const std::vector<std::string>& keys) {
  const std::string nearest = reflect::Nearest(key, keys);
  return InvalidField(
      field,
      absl::StrCat("no run of ", experiment, " has ", reflect::Quoted(key),
                   nearest.empty() ? "" : absl::StrCat(" (did you mean ", nearest, "?)")),
      keys.empty() ? "nothing before the first point" : absl::StrJoin(keys, ", "));
}

absl::Status NoSuchValue(storage::Store* store, const std::string& experiment,
                         const ValueQuery& query, const std::string& run) {
  if (query.at.has_value()) {
    const auto steps = FindNeighbours(store, run, query.key, *query.at);
    if (!steps.ok()) return steps.status();
    if (steps->first.has_value()) {
      return InvalidField("at",
                          absl::StrCat("no finished run of ", experiment, " has ", query.key,
                                       " at step ", *query.at),
                          AllowedSteps(*steps));
    }
  }
  const auto keys = KeysOf(store, experiment);
  return keys.ok() ? NoSuchKey("key", query.key, experiment, *keys) : keys.status();
}

}  // namespace ablate::service
