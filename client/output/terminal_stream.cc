#include "client/output/terminal_stream.h"

#include <algorithm>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/output/terminal_text.h"

namespace ablate::client {

TerminalStream::TerminalStream(std::ostream* terminal) : std::ostream(nullptr), buffer_(terminal) {
  rdbuf(&buffer_);
}

int TerminalStream::Buffer::overflow(int c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char byte = traits_type::to_char_type(c);
  return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
}

std::streamsize TerminalStream::Buffer::xsputn(const char* text, std::streamsize size) {
  absl::string_view rest(text, static_cast<size_t>(size));
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    absl::string_view line = rest.substr(0, end);
    const bool whole = end < rest.size();
    if (whole) absl::ConsumeSuffix(&line, "\r");
    *terminal_ << Printable(line) << (whole ? "\n" : "");
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return terminal_->good() ? size : 0;
}

int TerminalStream::Buffer::sync() { return terminal_->flush().good() ? 0 : -1; }

std::ostream& Unfiltered(std::ostream& out) {
  auto* buffer = dynamic_cast<TerminalStream::Buffer*>(out.rdbuf());
  return buffer == nullptr ? out : *buffer->terminal();
}

std::ostream& operator<<(std::ostream& out, const TerminalControl& control) {
  Unfiltered(out) << control.sequence;
  return out;
}

}  // namespace ablate::client
