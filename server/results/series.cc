#include "server/results/series.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "proto/reflect/text.h"
#include "server/experiment/analysis_numbers.h"
#include "server/experiment/experiment_analyses.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"
#include "server/results/trained_grid.h"

namespace ablate::results {
namespace {

constexpr size_t kMaxNamedDamages = 5;
constexpr uint32_t kPointsPerBucket = 4;

// Returns the kind of the analyses with this label in the experiment, from its file or from
// requests; nothing if there are none.
absl::StatusOr<std::optional<v1::AnalysisKind>> KindOfLabel(storage::Store* store,
                                                            const std::string& experiment,
                                                            const std::string& label) {
  ASSIGN_OR_RETURN(const auto stored, LoadExperiment(store, experiment));
  const auto entry = spec::EntryWithNumbers(stored.spec, label);
  if (entry.has_value()) return entry->analysis;
  if (label.empty()) return std::nullopt;  // the store would take it for all labels
  ASSIGN_OR_RETURN(const auto labelled, store->LabelledAnalyses(experiment, label));
  if (labelled.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(const auto record, store->GetAnalysis(labelled.front().id));
  ASSIGN_OR_RETURN(const auto asked, analysis::ReadAnalysis(record.id, record.request));
  return asked.analysis();
}

}  // namespace

absl::Status CheckKeys(const WantedKeys& wanted) {
  if (wanted.size() > lookup::kMaxQueryKeys) {
    return lookup::TooMany("keys", wanted.size(), lookup::kMaxQueryKeys);
  }
  for (int i = 0; i < wanted.size(); ++i) {
    if (text::IsPrintable(wanted[i], storage::kMaxKeyBytes)) continue;
    return lookup::InvalidField(absl::StrCat("keys[", i, "]"),
                                absl::StrCat(reflect::Quoted(wanted[i]), " isn't a valid key"),
                                "a metric such as train/loss");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ExperimentKeys(storage::Store* store,
                                                        const std::string& experiment) {
  ASSIGN_OR_RETURN(const auto counts, store->ExperimentKeys(experiment));
  std::vector<std::string> keys;
  for (const auto& [key, count] : counts) keys.push_back(key);
  ASSIGN_OR_RETURN(const auto metrics, analysis::AnalysisMetrics::Load(store, experiment));
  for (const auto& [key, count] : metrics.Keys()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

absl::Status NoSuchKey(storage::Store* store, absl::string_view field, const std::string& key,
                       const std::string& experiment, absl::string_view next) {
  const std::string label = key.substr(0, key.find('/'));
  const auto kind = KindOfLabel(store, experiment, label);
  if (!kind.ok()) return kind.status();
  if (kind->has_value()) {
    const std::string number = key.substr(std::min(key.size(), label.size() + 1));
    const auto complaint = spec::NumberComplaint(**kind, label, number);
    if (complaint.has_value())
      return lookup::InvalidField(field, complaint->first, complaint->second);
  }
  auto keys = ExperimentKeys(store, experiment);
  if (!keys.ok()) return keys.status();
  const std::string guess = reflect::DidYouMean(key, *keys, " (", ")");
  std::vector<std::string> of_label;
  std::copy_if(
      keys->begin(), keys->end(), std::back_inserter(of_label),
      [&label](const std::string& one) { return absl::StartsWith(one, absl::StrCat(label, "/")); });
  if (kind->has_value() || !of_label.empty()) *keys = std::move(of_label);
  constexpr size_t kNamed = 20;
  const size_t more = keys->size() - std::min(keys->size(), kNamed);
  if (more > 0) keys->resize(kNamed);
  const std::string none = kind->has_value()
                               ? absl::StrCat("a recorded key. No analysis with the label ", label,
                                              " has ended yet; retry later")
                               : "a recorded key. No run has a point yet; retry later";
  return lookup::InvalidField(
      field, absl::StrCat("no run of ", experiment, " has ", reflect::Quoted(key), guess),
      absl::StrCat(keys->empty() ? none : absl::StrJoin(*keys, ", "),
                   more > 0 ? absl::StrCat(" and ", more, " more") : "",
                   keys->empty() ? "" : next));
}

absl::Status CheckKnownKey(storage::Store* store, absl::string_view field, const std::string& key,
                           const std::string& experiment) {
  ASSIGN_OR_RETURN(const auto keys, ExperimentKeys(store, experiment));
  const bool known = std::binary_search(keys.begin(), keys.end(), key);
  return known || keys.empty() ? absl::OkStatus() : NoSuchKey(store, field, key, experiment);
}

void Damages::Add(const absl::Status& status) {
  if (named_.size() < kMaxNamedDamages) named_.emplace_back(status.message());
  ++count_;
}

absl::Status Damages::ToStatus() const {
  const std::string others =
      count_ > named_.size() ? absl::StrCat("; and ", count_ - named_.size(), " more") : "";
  return absl::DataLossError(absl::StrCat(absl::StrJoin(named_, "; "), others));
}

SeriesCursor::SeriesCursor(storage::Store* store, Damages* damages, uint32_t first_step,
                           uint32_t last_step)
    : store_(store), damages_(damages), first_step_(first_step), last_step_(last_step) {}

absl::Status SeriesCursor::OpenRun(const std::string& run, const WantedKeys& wanted) {
  run_ = run;
  keys_.clear();
  key_ = 0;
  position_ = {};
  const auto present = store_->RunKeys(run);
  if (!present.ok()) return Note(present.status());
  std::set<std::string> sorted;
  for (const auto& [key, count] : *present) sorted.insert(key);
  if (metrics_ != nullptr) {
    for (std::string& key : metrics_->KeysOf(run)) sorted.insert(std::move(key));
  }
  if (wanted.empty()) keys_.assign(sorted.begin(), sorted.end());
  for (const std::string& key : wanted) {
    if (sorted.erase(key) > 0) keys_.push_back(key);  // once, however often it is requested
  }
  return absl::OkStatus();
}

void SeriesCursor::OpenSeries(const std::string& run, const std::string& key) {
  run_ = run;
  keys_ = {key};
  key_ = 0;
  position_ = {};
}

absl::StatusOr<SeriesEnd> SeriesCursor::Read(const storage::SeriesPiece& visit) {
  const analysis::Points* points = metrics_ == nullptr ? nullptr : metrics_->Find(run_, key());
  if (points != nullptr) return ReadPoints(*points, visit);
  absl::Status read = store_->ReadSeries({run_, key(), first_step_, last_step_}, visit, &position_);
  if (absl::IsCancelled(read)) return SeriesEnd::kStopped;
  const bool damaged = absl::IsDataLoss(read);
  if (damaged) read = Note(read);
  if (!read.ok()) return read;
  NextSeries();
  return damaged ? SeriesEnd::kDamaged : SeriesEnd::kComplete;
}

SeriesEnd SeriesCursor::ReadPoints(const analysis::Points& points,
                                   const storage::SeriesPiece& visit) {
  const uint64_t first = std::max<uint64_t>(first_step_, position_.next_step);
  const auto from = std::lower_bound(points.steps.begin(), points.steps.end(), first);
  const auto to = std::upper_bound(from, points.steps.end(), last_step_);
  const auto values = points.values.begin() + (from - points.steps.begin());
  if (from < to && !visit({from, to}, {values, values + (to - from)})) {
    position_.next_step = uint64_t{*(to - 1)} + 1;
    return SeriesEnd::kStopped;
  }
  NextSeries();
  return SeriesEnd::kComplete;
}

void SeriesCursor::NextSeries() {
  ++key_;
  position_ = {};
}

absl::Status SeriesCursor::Note(const absl::Status& damage) {
  if (damages_ == nullptr || !absl::IsDataLoss(damage)) return damage;
  damages_->Add(damage);
  return absl::OkStatus();
}

Downsampler::Downsampler(uint32_t max_points, uint32_t last_step)
    : max_points_(max_points), last_step_(last_step) {}

void Downsampler::Add(const std::vector<uint32_t>& steps, const std::vector<double>& values) {
  for (size_t i = 0; i < steps.size(); ++i) AddPoint(steps[i], values[i]);
}

void Downsampler::AddPoint(uint32_t step, double value) {
  if (!bucketing_) {
    if (kept_.steps.size() < max_points_) {
      kept_.steps.push_back(step);
      kept_.values.push_back(value);
      return;
    }
    StartBuckets();
  }
  AddToBucket({seen_++, step, value});
}

void Downsampler::StartBuckets() {
  bucketing_ = true;
  const analysis::Points all = std::exchange(kept_, {});
  first_step_ = all.steps.front();
  const double span = static_cast<double>(std::max(last_step_, all.steps.back())) - first_step_ + 1;
  const uint32_t buckets = max_points_ / kPointsPerBucket;
  buckets_per_step_ = buckets / span;
  for (size_t i = 0; i < all.steps.size(); ++i) {
    AddToBucket({seen_++, all.steps[i], all.values[i]});
  }
}

void Downsampler::AddToBucket(const Point& point) {
  const auto wanted = static_cast<uint32_t>((point.step - first_step_) * buckets_per_step_);
  const uint32_t bucket = std::min(wanted, max_points_ / kPointsPerBucket - 1);
  if (bucket != bucket_) CloseBucket();
  bucket_ = bucket;
  if (bucket_empty_) {
    first_ = smallest_ = largest_ = point;
    bucket_empty_ = false;
  }
  if (point.value < smallest_.value || std::isnan(smallest_.value)) smallest_ = point;
  if (point.value > largest_.value || std::isnan(largest_.value)) largest_ = point;
  last_ = point;
}

void Downsampler::CloseBucket() {
  if (bucket_empty_) return;
  std::array<Point, kPointsPerBucket> points = {first_, smallest_, largest_, last_};
  if (points[1].place > points[2].place) std::swap(points[1], points[2]);
  for (size_t i = 0; i < points.size(); ++i) {
    if (i > 0 && points[i].place == points[i - 1].place) continue;
    kept_.steps.push_back(points[i].step);
    kept_.values.push_back(points[i].value);
  }
  bucket_empty_ = true;
}

analysis::Points Downsampler::Finish() {
  CloseBucket();
  return std::exchange(kept_, {});
}

}  // namespace ablate::results
