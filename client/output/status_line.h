// How far something is, while one waits for it: a live line on a terminal, plain lines elsewhere.
#ifndef ABLATE_CLIENT_OUTPUT_STATUS_LINE_H_
#define ABLATE_CLIENT_OUTPUT_STATUS_LINE_H_

#include <functional>
#include <ostream>

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

  // Whether it is time to draw again: live lines often, plain ones twice a minute.
  bool Due() const;
  void Draw(absl::string_view text);
  // Something that has ended, which only plain lines tell.
  void Tell(absl::string_view text);
  // Draws a last time and leaves the line.
  void Finish(absl::string_view text);

 private:
  const StatusLineOptions options_;
  absl::Time drawn_;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_STATUS_LINE_H_
