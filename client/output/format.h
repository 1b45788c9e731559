// Numbers, times and messages as people read them, and as programs do.
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

// The shortest decimal that reads back as the same double; nan, inf, -inf.
std::string Exact(double value);
// Four significant digits.
std::string Short(double value);
// 40 MB: powers of 1000, two significant digits or whole bytes.
std::string Bytes(uint64_t bytes);
absl::Duration ToDuration(const google::protobuf::Duration& message);
// 6 s, 3 min 20 s, 2 h 5 min, 3 d 4 h.
std::string Duration(absl::Duration duration);
// 5 s ago, 3 h ago; of a time in the future: just now.
std::string Ago(const google::protobuf::Timestamp& time, absl::Time now);
// 2026-11-23, in UTC.
std::string Day(const google::protobuf::Timestamp& time);

// The same, with the minute where it is less than two days away: "2026-11-24 03:10 UTC".
std::string Until(const google::protobuf::Timestamp& time, absl::Time now);
// "1 run", "3 runs".
std::string Count(uint64_t count, const char* singular);

// A message as JSON over several lines, ending in a line break. Field names are in snake_case,
// fields with their default value are printed too, 64-bit integers are strings and non-finite
// numbers "NaN", "Infinity", "-Infinity", as the JSON mapping of protocol buffers has it.
std::string ToJson(const google::protobuf::Message& message);
// An array of such messages.
std::string ToJsonArray(const std::vector<const google::protobuf::Message*>& messages);
// A message on one line, ending in a line break: for streams, one message a line.
std::string ToJsonLine(const google::protobuf::Message& message);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_FORMAT_H_
