// Formats numbers, times and messages for people and for programs.
#ifndef ABLATE_CLIENT_OUTPUT_FORMAT_H_
#define ABLATE_CLIENT_OUTPUT_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/message.h"
#include "google/protobuf/timestamp.pb.h"

namespace ablate::client {

// Returns the shortest decimal that reads back as the same double; nan, inf, -inf.
std::string Exact(double value);
// Returns four significant digits.
std::string Short(double value);
// Returns the same with zeros at the end, so that the values of a column have equal digits.
std::string ShortAligned(double value);
// Returns a size such as 40 MB: powers of 1000, in whole units, or with one decimal below 10.
std::string Bytes(uint64_t bytes);
absl::Duration ToDuration(const google::protobuf::Duration& message);
// Returns a duration such as 6 s, 3 min 20 s, 2 h 5 min or 3 d 4 h.
std::string Duration(absl::Duration duration);
// Returns an age such as 5 s ago or 3 h ago; "just now" for a time in the future.
std::string Ago(const google::protobuf::Timestamp& time, absl::Time now);
// Returns a date in UTC, such as 2026-11-23.
std::string Day(const google::protobuf::Timestamp& time);

// Does the same, with the minute if it is less than two days away: "2026-11-24 03:10 UTC".
std::string Until(const google::protobuf::Timestamp& time, absl::Time now);
// Returns "12/50", or "12" if the number of steps isn't known (0), as for a program.
std::string StepText(uint32_t step, uint32_t steps);
// Returns "1 run" or "3 runs".
std::string Count(uint64_t count, const char* singular);

// Returns a message as JSON over several lines, ending in a line break. Field names are in
// snake_case, fields with their default value are printed, 64-bit integers are strings, and
// non-finite numbers are "NaN", "Infinity", "-Infinity", as in the JSON mapping of protocol
// buffers.
std::string ToJson(const google::protobuf::Message& message);
// Returns an array of such messages.
std::string ToJsonArray(const std::vector<const google::protobuf::Message*>& messages);
// Returns a message on one line, ending in a line break: for streams, one message per line.
std::string ToJsonLine(const google::protobuf::Message& message);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_FORMAT_H_
