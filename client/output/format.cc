#include "client/output/format.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"

namespace ablate::client {
namespace {

std::string PrintMessage(const google::protobuf::Message& message, bool several_lines) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = several_lines;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  // Fails only for messages that no server sends: a Value or Any without content.
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (!status.ok()) return "null\n";
  if (json.empty() || json.back() != '\n') json += '\n';
  return json;
}

}  // namespace

std::string Exact(double value) {
  if (std::isnan(value)) return "nan";  // without the sign that some machines give it
  return fmt::format("{}", value);
}

std::string Short(double value) {
  if (std::isnan(value)) return "nan";
  return fmt::format("{:.4g}", value);
}

std::string ShortAligned(double value) {
  if (!std::isfinite(value)) return Short(value);
  constexpr double kNoFraction = 1000;  // from here on four digits are a whole number
  return std::fabs(value) < kNoFraction ? fmt::format("{:#.4g}", value) : Short(value);
}

std::string Bytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  // 999.5 would be shown as 1000.
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  const bool fraction = unit > 0 && value < 9.95;
  return fmt::format("{:.{}f} {}", value, fraction ? 1 : 0, kUnits[unit]);
}

absl::Duration ToDuration(const google::protobuf::Duration& message) {
  return absl::Seconds(message.seconds()) + absl::Nanoseconds(message.nanos());
}

std::string Duration(absl::Duration duration) {
  const double exact = absl::ToDoubleSeconds(duration);
  if (!std::isfinite(exact)) return "forever";
  if (exact < 1) return exact <= 0 ? "0 s" : "1 s";
  const auto seconds = static_cast<int64_t>(std::llround(exact));
  const auto pair = [](int64_t large, const char* unit, int64_t small, const char* rest) {
    return small == 0 ? fmt::format("{} {}", large, unit)
                      : fmt::format("{} {} {} {}", large, unit, small, rest);
  };
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return pair(seconds / 60, "min", seconds % 60, "s");
  if (seconds < 86400) return pair(seconds / 3600, "h", seconds % 3600 / 60, "min");
  return pair(seconds / 86400, "d", seconds % 86400 / 3600, "h");
}

std::string Ago(const google::protobuf::Timestamp& time, absl::Time now) {
  const absl::Duration age = now - absl::FromUnixSeconds(time.seconds());
  if (age < absl::Seconds(1)) return "just now";
  for (const auto& [unit, name] : {std::pair(absl::Hours(24), "d"), std::pair(absl::Hours(1), "h"),
                                   std::pair(absl::Minutes(1), "min")}) {
    if (age >= unit) return fmt::format("{} {} ago", age / unit, name);
  }
  return fmt::format("{} s ago", age / absl::Seconds(1));
}

std::string Day(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%d", absl::FromUnixSeconds(time.seconds()), absl::UTCTimeZone());
}

std::string Until(const google::protobuf::Timestamp& time, absl::Time now) {
  const absl::Time at = absl::FromUnixSeconds(time.seconds());
  if (at - now >= absl::Hours(48)) return Day(time);
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", at, absl::UTCTimeZone());
}

std::string StepText(uint32_t step, uint32_t steps) {
  return steps == 0 ? text::Grouped(step)
                    : absl::StrCat(text::Grouped(step), "/", text::Grouped(steps));
}

std::string Count(uint64_t count, const char* singular) {
  return fmt::format("{} {}{}", text::Grouped(count), singular, count == 1 ? "" : "s");
}

std::string ToJson(const google::protobuf::Message& message) { return PrintMessage(message, true); }

std::string ToJsonArray(const std::vector<const google::protobuf::Message*>& messages) {
  return absl::StrCat("[",
                      absl::StrJoin(messages, ",",
                                    [](std::string* out, const google::protobuf::Message* message) {
                                      const std::string json = ToJson(*message);
                                      absl::StrAppend(out, "\n", absl::StripSuffix(json, "\n"));
                                    }),
                      "\n]\n");
}

std::string ToJsonLine(const google::protobuf::Message& message) {
  return PrintMessage(message, false);
}

}  // namespace ablate::client
