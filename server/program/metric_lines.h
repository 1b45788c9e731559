// Parses the lines of JSON that a program writes to its metrics descriptor.
#ifndef ABLATE_SERVER_PROGRAM_METRIC_LINES_H_
#define ABLATE_SERVER_PROGRAM_METRIC_LINES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

namespace ablate::program {

inline constexpr size_t kMaxLineBytes = 64 << 10;
inline constexpr size_t kMaxKeys = 1000;
inline constexpr size_t kMaxKeyBytes = 100;
inline constexpr size_t kMaxRemarks = 20;

struct Point {
  std::string key;
  uint32_t step = 0;
  double value = 0;  // may be NaN or infinite

  friend bool operator==(const Point&, const Point&) = default;
};

struct Progress {
  uint64_t done = 0;
  uint64_t of = 0;  // 0: unknown

  friend bool operator==(const Progress&, const Progress&) = default;
};

// Holds the content of some lines.
struct MetricEvents {
  std::vector<Point> points;
  std::optional<uint32_t> checkpoint;  // nothing follows it in these events
  size_t rejected_checkpoints = 0;     // whose step is below the last one; each waits for a reply
  std::optional<Progress> progress;    // the last one
  std::vector<std::string> remarks;    // for the run's log, without line breaks
};

// Parses a stream of lines in bounded memory. Three kinds are known:
//   {"step": 5, "loss": 0.25, "layer": {"0": 1}}  points at step 5, with keys loss and layer/0
//   {"checkpoint": 5}                             the state of step 5 is whole
//   {"progress": 5, "of": 100}
// A line without step has the last step, 0 at first. Steps don't decrease, and a key has one value
// per step. Values are numbers, booleans, and NaN, Infinity and -Infinity, bare or as text. Other
// lines and values are ignored with a remark, and at most kMaxRemarks remarks are made.
class MetricLines {
 public:
  // Adds bytes of the stream. Call Take until it has no checkpoint before adding more.
  void Add(absl::string_view bytes) { buffer_.append(bytes.data(), bytes.size()); }

  // Parses up to the first checkpoint, or all whole lines; with `last`, an unfinished line too.
  MetricEvents Take(bool last = false);

 private:
  void TakeLine(absl::string_view line, MetricEvents* events);
  void TakeCheckpoint(const nlohmann::json& value, MetricEvents* events);
  void TakePoints(const nlohmann::json& line, MetricEvents* events);
  void TakeValue(const std::string& key, const nlohmann::json& value, int depth,
                 MetricEvents* events);
  void AddPoint(const std::string& key, double value, MetricEvents* events);
  // Adds the remark unless one of the same subject was made.
  void Remark(const std::string& subject, absl::string_view text, MetricEvents* events);

  std::string buffer_;
  bool skipping_ = false;  // the beginning of a line that is too long was dropped
  uint32_t step_ = 0;
  std::unordered_map<std::string, uint32_t> last_steps_;  // by key, at most kMaxKeys
  std::set<std::string> remarked_;                        // at most kMaxRemarks subjects
};

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_METRIC_LINES_H_
