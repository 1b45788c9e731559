#include "server/imports/results.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "proto/reflect/from_value.h"
#include "proto/reflect/text.h"
#include "server/lookup/errors.h"
#include "storage/records.h"

namespace ablate::imports {
namespace {

constexpr size_t kMaxNameBytes = 1'000;
constexpr size_t kMaxValueBytes = 4'000;
constexpr double kLastMicros = 4e15;  // the year 2096

absl::Status Wrong(const Run& run, absl::string_view complaint, absl::string_view allowed) {
  return lookup::InvalidField("runs", absl::StrCat(reflect::ShortText(run.name), ": ", complaint),
                              allowed);
}

absl::Status TooMuch(absl::string_view what, size_t most) {
  return absl::ResourceExhaustedError(absl::StrCat("the results have too many ", what,
                                                   "; expected at most ", text::Grouped(most),
                                                   ". Import fewer metrics or runs at once"));
}

bool IsKey(const std::string& key) {
  return !key.empty() && key.size() <= storage::kMaxKeyBytes && text::IsUtf8(key) &&
         !text::HasControlCharacter(key);
}

int64_t MicrosOf(const google::protobuf::Timestamp& time) {
  const double micros = static_cast<double>(time.seconds()) * 1e6 + time.nanos() / 1e3;
  return micros > 0 && micros < kLastMicros ? static_cast<int64_t>(micros) : 0;
}

}  // namespace

absl::Status Results::Add(const v1::ImportRequest& request) {
  for (const v1::ImportedRun& run : request.runs()) RETURN_IF_ERROR(AddRun(run));
  return absl::OkStatus();
}

absl::Status Results::AddRun(const v1::ImportedRun& message) {
  const auto [place, is_new] = places_.emplace(message.name(), runs_.size());
  if (is_new) {
    if (runs_.size() == kMaxRuns) return TooMuch("runs", kMaxRuns);
    runs_.emplace_back().name = message.name();
  }
  Run& run = runs_[place->second];
  if (run.name.empty() || run.name.size() > kMaxNameBytes || !text::IsUtf8(run.name)) {
    return Wrong(run, "the name is invalid", "1 to 1,000 bytes of UTF-8");
  }
  if (message.state() != v1::ImportedState::unspecified) run.state = message.state();
  if (message.has_start_time()) run.start_time = MicrosOf(message.start_time());
  if (message.has_end_time()) run.end_time = MicrosOf(message.end_time());
  RETURN_IF_ERROR(AddSettings(message, &run));
  for (const v1::ImportedSeries& series : message.series())
    RETURN_IF_ERROR(AddSeries(series, &run));
  return absl::OkStatus();
}

absl::Status Results::AddSettings(const v1::ImportedRun& message, Run* run) {
  for (const auto& [key, value] : message.settings()) {
    if (!IsKey(key)) {
      return Wrong(*run, absl::StrCat("setting ", reflect::Quoted(key), " has an invalid name"),
                   "1 to 200 bytes of UTF-8 without control characters");
    }
    google::protobuf::Value& stored = run->settings[key] = value;
    if (value.has_number_value() && !std::isfinite(value.number_value())) {
      stored.set_string_value(text::ShortestDecimal(value.number_value()));
    }
    std::vector<reflect::FieldProblem> problems;
    if (!reflect::CheckValue(stored, key, &problems)) {
      return Wrong(*run, problems.front().message, "another value");
    }
    if (stored.ByteSizeLong() > kMaxValueBytes) {
      return Wrong(*run, absl::StrCat("setting ", key, " has ", stored.ByteSizeLong(), " bytes"),
                   "at most 4,000");
    }
    setting_bytes_ += key.size() + value.ByteSizeLong();
  }
  if (run->settings.size() > kMaxSettings) return TooMuch("settings", kMaxSettings);
  if (setting_bytes_ > kMaxSettingBytes) return TooMuch("bytes of settings", kMaxSettingBytes);
  return absl::OkStatus();
}

absl::Status Results::AddSeries(const v1::ImportedSeries& message, Run* run) {
  const std::string& key = message.key();
  if (!IsKey(key)) {
    return Wrong(*run, absl::StrCat("metric ", reflect::Quoted(key), " has an invalid name"),
                 "1 to 200 bytes of UTF-8 without control characters");
  }
  if (message.values().empty()) return absl::OkStatus();
  points_ += static_cast<size_t>(message.values_size());
  if (points_ > kMaxPoints) return TooMuch("points", kMaxPoints);
  const bool by_item = message.items_size() > 0;
  const int places = by_item ? message.items_size() : message.steps_size();
  const bool grouped = message.groups_size() == 0 || message.groups_size() == places;
  if (places != message.values_size() || (by_item && message.steps_size() > 0) || !grouped) {
    return Wrong(*run,
                 absl::StrCat(key, " has ", message.values_size(), " values, ",
                              message.steps_size(), " steps, ", message.items_size(), " items and ",
                              message.groups_size(), " groups"),
                 "a step or an item for each value");
  }
  Series& series = run->series[key];
  if (run->series.size() > kMaxSeries) return TooMuch("metrics", kMaxSeries);
  const bool fits = series.values.empty() || (series.items.empty() != by_item &&
                                              series.groups.empty() == message.groups().empty());
  if (!fits) return Wrong(*run, absl::StrCat(key, " is given by step and by item"), "one of them");
  for (const uint32_t step : message.steps()) {
    if (!series.steps.empty() && step <= series.steps.back()) {
      return Wrong(*run, absl::StrCat(key, " has step ", step, " after step ", series.steps.back()),
                   "steps that ascend");
    }
    series.steps.push_back(step);
  }
  series.values.insert(series.values.end(), message.values().begin(), message.values().end());
  for (const std::string& item : message.items()) {
    if (!IsKey(item)) {
      return Wrong(*run, absl::StrCat("item ", reflect::Quoted(item), " is invalid"),
                   "1 to 200 bytes of UTF-8 without control characters");
    }
  }
  series.items.insert(series.items.end(), message.items().begin(), message.items().end());
  series.groups.insert(series.groups.end(), message.groups().begin(), message.groups().end());
  return absl::OkStatus();
}

}  // namespace ablate::imports
