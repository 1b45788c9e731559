#include "server/program/metric_lines.h"

#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clean.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"

namespace ablate::program {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 16;
constexpr size_t kMaxQuotedBytes = 60;

// Returns the beginning of a foreign text for a remark.
std::string Quoted(absl::string_view text) {
  const std::string clean = text::CleanText(text.substr(0, kMaxQuotedBytes));
  return absl::StrCat("\"", clean, text.size() > kMaxQuotedBytes ? "…\"" : "\"");
}

// Returns a value for a remark; lists and objects only by their kind, because they may be deep.
std::string Shown(const json& value) {
  return value.is_primitive() ? Quoted(value.dump(-1, ' ', true)) : value.type_name();
}

// Puts NaN, Infinity and -Infinity outside of strings into quotes, which JSON requires.
std::string QuoteNotFinite(absl::string_view line) {
  std::string result;
  bool in_string = false;
  for (size_t at = 0; at < line.size();) {
    size_t size = 1;
    if (line[at] == '"') in_string = !in_string;
    if (in_string && line[at] == '\\') size = 2;
    bool quote = false;
    for (absl::string_view word : {"NaN", "Infinity", "-Infinity"}) {
      if (in_string || !absl::StartsWith(line.substr(at), word)) continue;
      size = word.size();
      quote = true;
    }
    const absl::string_view part = line.substr(at, size);
    quote ? absl::StrAppend(&result, "\"", part, "\"") : absl::StrAppend(&result, part);
    at += size;
  }
  return result;
}

json Parse(absl::string_view line) {
  json parsed = json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_discarded()) return parsed;
  if (!absl::StrContains(line, "NaN") && !absl::StrContains(line, "Infinity")) return parsed;
  return json::parse(QuoteNotFinite(line), nullptr, /*allow_exceptions=*/false);
}

std::optional<double> Number(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.get_ref<const std::string&>();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

// Returns a whole number from 0 to `max`, such as 5 or 5.0.
std::optional<uint64_t> WholeNumber(const json& value, uint64_t max) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  if (!(number >= 0 && number <= static_cast<double>(max)) || number != std::floor(number)) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(number);
}

std::optional<uint32_t> Step(const json& value) {
  const auto number = WholeNumber(value, std::numeric_limits<uint32_t>::max());
  return number.has_value() ? std::optional(static_cast<uint32_t>(*number)) : std::nullopt;
}

constexpr uint64_t kMaxProgress = uint64_t{1} << 53;

// Returns the progress if the line has these fields and no others.
std::optional<Progress> ProgressOf(const json& line) {
  const size_t fields = line.contains("of") ? 2 : 1;
  if (line.size() != fields || !line.contains("progress")) return std::nullopt;
  const auto done = WholeNumber(line["progress"], kMaxProgress);
  const auto of = fields == 2 ? WholeNumber(line["of"], kMaxProgress) : 0;
  if (!done.has_value() || !of.has_value()) return std::nullopt;
  return Progress{*done, *of};
}

}  // namespace

MetricEvents MetricLines::Take(bool last) {
  MetricEvents events;
  size_t begin = 0;
  while (!events.checkpoint.has_value()) {
    size_t end = buffer_.find('\n', begin);
    if (end == std::string::npos) {
      if (!last || begin == buffer_.size()) break;
      end = buffer_.size();
    }
    const absl::string_view line = absl::string_view(buffer_).substr(begin, end - begin);
    if (!std::exchange(skipping_, false)) TakeLine(line, &events);
    begin = std::min(end + 1, buffer_.size());
  }
  buffer_.erase(0, begin);
  const bool has_line = buffer_.find('\n') != std::string::npos;
  if (!has_line && (skipping_ || buffer_.size() > kMaxLineBytes)) {
    if (!skipping_) TakeLine(buffer_, &events);
    skipping_ = true;
    buffer_.clear();
  }
  return events;
}

void MetricLines::TakeLine(absl::string_view line, MetricEvents* events) {
  line = absl::StripAsciiWhitespace(line);
  if (line.empty()) return;
  if (line.size() > kMaxLineBytes) {
    return Remark("/long", "a line is longer than 64 KiB; it is left out", events);
  }
  const json parsed = Parse(line);
  if (!parsed.is_object()) {
    return Remark("/json",
                  absl::StrCat("a line isn't a JSON object; it is left out: ", Quoted(line)),
                  events);
  }
  if (parsed.size() == 1 && parsed.contains("checkpoint")) {
    return TakeCheckpoint(parsed["checkpoint"], events);
  }
  if (const auto progress = ProgressOf(parsed)) {
    events->progress = progress;
    return;
  }
  TakePoints(parsed, events);
}

void MetricLines::TakeCheckpoint(const json& value, MetricEvents* events) {
  const auto step = Step(value);
  if (step.has_value() && *step >= step_) {
    events->checkpoint = step;
    return;
  }
  ++events->rejected_checkpoints;
  Remark("/checkpoint",
         absl::StrCat("checkpoint: ", Shown(value), "; expected a step of at least ", step_,
                      ", the last one logged"),
         events);
}

void MetricLines::TakePoints(const json& line, MetricEvents* events) {
  const auto given = line.find("step");
  if (given != line.end()) {
    const auto step = Step(*given);
    if (!step.has_value()) {
      return Remark("/step",
                    absl::StrCat("step: ", Shown(*given),
                                 "; expected a whole number, 0–4294967295; its line is left out"),
                    events);
    }
    if (*step < step_) {
      return Remark("/decreasing",
                    absl::StrCat("step: ", *step, " comes after ", step_,
                                 "; expected steps that don't decrease; its line is left out"),
                    events);
    }
    step_ = *step;
  }
  for (const auto& [key, value] : line.items()) {
    if (key != "step") TakeValue(key, value, 1, events);
  }
}

void MetricLines::TakeValue(const std::string& key, const json& value, int depth,
                            MetricEvents* events) {
  if (value.is_object() && depth < kMaxDepth && key.size() <= kMaxKeyBytes) {
    for (const auto& [name, inner] : value.items()) {
      TakeValue(absl::StrCat(key, "/", name), inner, depth + 1, events);
    }
    return;
  }
  if (key.size() > kMaxKeyBytes || !text::IsPrintable(key, kMaxKeyBytes)) {
    return Remark("/key",
                  absl::StrCat("key ", Quoted(key),
                               "; expected 1–100 bytes of printable UTF-8; it is left out"),
                  events);
  }
  const auto number = Number(value);
  if (!number.has_value()) {
    return Remark("value/" + key,
                  absl::StrCat("values of ", Quoted(key),
                               " that aren't numbers are left out: ", Shown(value)),
                  events);
  }
  AddPoint(key, *number, events);
}

void MetricLines::AddPoint(const std::string& key, double value, MetricEvents* events) {
  const auto last = last_steps_.find(key);
  if (last == last_steps_.end()) {
    if (last_steps_.size() >= kMaxKeys) {
      return Remark("/keys",
                    absl::StrCat("more than ", kMaxKeys, " keys; ", Quoted(key),
                                 " and later ones are left out"),
                    events);
    }
    last_steps_.emplace(key, step_);
  } else if (last->second == step_) {
    return Remark(
        "again/" + key,
        absl::StrCat(Quoted(key), " has several values at step ", step_, "; the first one counts"),
        events);
  } else {
    last->second = step_;
  }
  events->points.push_back({key, step_, value});
}

void MetricLines::Remark(const std::string& subject, absl::string_view text, MetricEvents* events) {
  if (remarked_.size() >= kMaxRemarks || !remarked_.insert(subject).second) return;
  const bool last = remarked_.size() == kMaxRemarks;
  events->remarks.push_back(absl::StrCat("metrics: ", text, last ? " (the last remark)" : ""));
}

}  // namespace ablate::program
