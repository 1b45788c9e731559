#include "client/output/status_line.h"

#include <algorithm>
#include <string>
#include <utility>

#include "client/output/terminal_stream.h"
#include "client/output/terminal_text.h"

namespace ablate::client {
namespace {

constexpr absl::Duration kLiveInterval = absl::Milliseconds(100);
constexpr absl::Duration kPlainInterval = absl::Minutes(10);
constexpr TerminalControl kClearLine = {"\r\x1b[K"};

// The whole tenths in a fraction; sums of fractions may be a little too small.
int Tenths(double fraction) { return static_cast<int>(fraction * 10 + 1e-6); }

}  // namespace

StatusLine::StatusLine(StatusLineOptions options)
    : options_(std::move(options)), drawn_(options_.live ? absl::InfinitePast() : options_.now()) {}

bool StatusLine::Due() const {
  return options_.now() - drawn_ >= (options_.live ? kLiveInterval : kPlainInterval);
}

void StatusLine::Draw(absl::string_view text) {
  drawn_ = options_.now();
  last_ = std::string(text);
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

void StatusLine::Begin(double fraction) { tenths_ = std::max(tenths_, Tenths(fraction)); }

void StatusLine::Advance(double fraction, absl::string_view text) {
  if (Tenths(fraction) <= tenths_) return;
  Begin(fraction);
  if (!options_.live && last_ != text) Draw(text);
}

void StatusLine::Finish(absl::string_view text) {
  if (options_.live || last_ != text) Draw(text);
  if (options_.live) *options_.out << std::endl;
}

}  // namespace ablate::client
