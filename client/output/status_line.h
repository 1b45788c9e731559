// Shows the progress of something that is waited for: a live line on a terminal, plain lines
// elsewhere.
#ifndef ABLATE_CLIENT_OUTPUT_STATUS_LINE_H_
#define ABLATE_CLIENT_OUTPUT_STATUS_LINE_H_

#include <functional>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace ablate::client {

struct StatusLineOptions {
  bool live = false;  // rewrite one line
  int width = 80;     // of the terminal
  std::ostream* out = nullptr;
  std::function<absl::Time()> now;
};

// Texts are made fit for a terminal. Not thread-safe.
class StatusLine {
 public:
  explicit StatusLine(StatusLineOptions options);

  // Returns true if it is time to draw again: after 0.1 s if live, after 10 minutes if not.
  bool Due() const;
  void Draw(absl::string_view text);
  // Prints a plain line, such as a failure; none if live.
  void Tell(absl::string_view text);
  // Prints a plain line if `fraction` of the work, 0 to 1, is the first beyond another tenth.
  void Advance(double fraction, absl::string_view text);
  // Marks the tenths up to `fraction` as printed.
  void Begin(double fraction);
  // Draws a last time and ends the line. A plain line isn't repeated.
  void Finish(absl::string_view text);

 private:
  const StatusLineOptions options_;
  absl::Time drawn_;
  std::string last_;  // as drawn
  int tenths_ = 0;    // printed so far
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_STATUS_LINE_H_
