// Bounds the log of a program: its beginning and its end are kept.
#ifndef ABLATE_SERVER_PROGRAM_LOG_TAIL_H_
#define ABLATE_SERVER_PROGRAM_LOG_TAIL_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace ablate::program {

inline constexpr size_t kLogHeadBytes = 256 << 10;
inline constexpr size_t kLogTailBytes = 64 << 10;
inline constexpr size_t kMaxLastLines = 2 << 10;

// Returns bytes as text, such as "1.2 GB".
std::string FormatBytes(uint64_t bytes);

// Passes on the first bytes of a log and keeps its last ones. Its texts are UTF-8, with U+FFFD for
// each invalid byte.
class LogTail {
 public:
  explicit LogTail(size_t head_bytes = kLogHeadBytes, size_t tail_bytes = kLogTailBytes)
      : head_left_(head_bytes), tail_bytes_(tail_bytes) {}

  // Adds bytes and returns those that pass.
  std::string Add(absl::string_view bytes);
  // Returns a line of the library's own. It passes in any case, on a line of its own.
  std::string AddRemark(absl::string_view text);
  // Returns the kept end, after a line that says how much was left out. Call it once, last.
  std::string Finish();
  // Returns the last lines of everything added, at most kMaxLastLines bytes.
  std::string LastLines() const;

 private:
  size_t head_left_;         // bytes that may still pass
  const size_t tail_bytes_;  // kept after that
  std::string unfinished_;   // beginning of a character whose other bytes haven't come
  bool at_line_begin_ = true;
  std::string recent_;     // the last bytes added, at most twice tail_bytes_
  uint64_t unpassed_ = 0;  // bytes that haven't passed, also those in recent_
};

}  // namespace ablate::program

#endif  // ABLATE_SERVER_PROGRAM_LOG_TAIL_H_
