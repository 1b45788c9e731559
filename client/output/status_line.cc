#include "client/output/status_line.h"

#include <string>
#include <utility>

#include "client/output/terminal_stream.h"
#include "client/output/terminal_text.h"

namespace ablate::client {
namespace {

constexpr absl::Duration kLiveInterval = absl::Milliseconds(100);
constexpr absl::Duration kPlainInterval = absl::Seconds(30);
constexpr TerminalControl kClearLine = {"\r\x1b[K"};

}  // namespace

StatusLine::StatusLine(StatusLineOptions options)
    : options_(std::move(options)), drawn_(options_.live ? absl::InfinitePast() : options_.now()) {}

bool StatusLine::Due() const {
  return options_.now() - drawn_ >= (options_.live ? kLiveInterval : kPlainInterval);
}

void StatusLine::Draw(absl::string_view text) {
  drawn_ = options_.now();
  const std::string line = Printable(text);
  if (options_.live) {
    *options_.out << kClearLine << Truncate(line, options_.width - 1) << std::flush;
  } else {
    *options_.out << line << std::endl;
  }
}

void StatusLine::Tell(absl::string_view text) {
  if (!options_.live) *options_.out << Printable(text) << std::endl;
}

void StatusLine::Finish(absl::string_view text) {
  Draw(text);
  if (options_.live) *options_.out << std::endl;
}

}  // namespace ablate::client
