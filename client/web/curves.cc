#include "client/web/curves.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

namespace ablate::web {
namespace {

// Enough digits for a screen.
void AppendValue(double value, std::string* out) { absl::StrAppendFormat(out, "%.5g", value); }

}  // namespace

std::string JsonText(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void CurveTable::Bucket::Add(double value) {
  low = count == 0 ? value : std::min(low, value);
  high = count == 0 ? value : std::max(high, value);
  sum += value;
  ++count;
}

CurveTable::CurveTable(std::vector<Curve> curves, uint32_t steps)
    : curves_(std::move(curves)), width_(std::max<uint32_t>(1, (steps + kBuckets - 1) / kBuckets)) {
  for (const Curve& curve : curves_) {
    for (const std::string& run : curve.runs) runs_[run];
  }
}

void CurveTable::Add(const v1::Series& series) {
  MutexLock lock(&mutex_);
  const auto found = runs_.find(series.run());
  if (found == runs_.end()) return;
  Run& run = found->second;
  const int points = std::min(series.steps_size(), series.values_size());
  for (int i = 0; i < points; ++i) {
    const uint32_t step = series.steps(i);
    if (step < run.next) continue;
    run.next = step + 1;
    if (!std::isfinite(series.values(i))) continue;
    const size_t bucket = step / width_;
    if (run.buckets.size() <= bucket) run.buckets.resize(bucket + 1);
    run.buckets[bucket].Add(series.values(i));
    changed_.insert(bucket);
  }
}

uint32_t CurveTable::NextStep(const std::string& run) const {
  MutexLock lock(&mutex_);
  const auto found = runs_.find(run);
  return found == runs_.end() ? 0 : found->second.next;
}

std::string CurveTable::TakeChanges() {
  MutexLock lock(&mutex_);
  if (changed_.empty()) return "";
  return Json(std::exchange(changed_, {}), /*whole=*/false);
}

std::string CurveTable::Whole() const {
  MutexLock lock(&mutex_);
  std::set<size_t> buckets;
  for (const auto& [name, run] : runs_) {
    for (size_t i = 0; i < run.buckets.size(); ++i) {
      if (run.buckets[i].count > 0) buckets.insert(i);
    }
  }
  return Json(buckets, /*whole=*/true);
}

std::string CurveTable::Json(const std::set<size_t>& buckets, bool whole) const {
  std::vector<std::vector<const Run*>> runs;  // of each curve
  for (const Curve& curve : curves_) {
    runs.emplace_back();
    for (const std::string& run : curve.runs) runs.back().push_back(&runs_.at(run));
  }
  std::string json = absl::StrCat("{\"whole\":", whole ? "true" : "false", ",\"width\":", width_);
  if (whole) {
    absl::StrAppend(
        &json, ",\"labels\":[",
        absl::StrJoin(curves_, ",",
                      [](std::string* out, const Curve& c) { out->append(JsonText(c.label)); }),
        "],\"hues\":[",
        absl::StrJoin(curves_, ",",
                      [](std::string* out, const Curve& c) { absl::StrAppend(out, c.hue); }),
        "]");
  }
  absl::StrAppend(&json, ",\"rows\":[");
  for (const size_t bucket : buckets) {
    if (json.back() == ']') json.push_back(',');
    absl::StrAppend(&json, "[", bucket * width_);
    for (const std::vector<const Run*>& members : runs) {
      Bucket all;  // of the runs' means
      double low = 0, high = 0;
      for (const Run* run : members) {
        if (run->buckets.size() <= bucket || run->buckets[bucket].count == 0) continue;
        const Bucket& one = run->buckets[bucket];
        all.Add(one.sum / one.count);
        low = one.low;
        high = one.high;
      }
      json.push_back(',');
      if (all.count == 0) {
        json.append("null");
        continue;
      }
      const bool alone = members.size() == 1;
      json.push_back('[');
      AppendValue(alone ? low : all.low, &json);
      json.push_back(',');
      AppendValue(all.sum / all.count, &json);
      json.push_back(',');
      AppendValue(alone ? high : all.high, &json);
      json.push_back(']');
    }
    json.push_back(']');
  }
  json.append("]}");
  return json;
}

}  // namespace ablate::web
