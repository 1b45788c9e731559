// The terminal, or whatever stands in its place.
#include "client/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>

#include "client/utf8.h"

namespace ablate::client {
namespace {

constexpr int kLeastWidth = 40;
constexpr const char* kRed = "\x1b[31m";
constexpr const char* kYellow = "\x1b[33m";
constexpr const char* kPlain = "\x1b[0m";

// Columns of the first terminal among the standard streams.
int TerminalWidth() {
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    winsize size{};
    if (ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col >= kLeastWidth) return size.ws_col;
  }
  return 80;
}

void Labelled(const Console& console, absl::string_view label, const char* color,
              absl::string_view message) {
  if (console.color) *console.err << color;
  *console.err << label << ':';
  if (console.color) *console.err << kPlain;
  *console.err << ' ' << Printable(message) << std::endl;
}

}  // namespace

void Console::Error(absl::string_view message) const { Labelled(*this, "error", kRed, message); }

void Console::Note(absl::string_view message) const { Labelled(*this, "note", kYellow, message); }

void Console::Say(absl::string_view message) const { *err << Printable(message) << std::endl; }

Console ProcessConsole(bool no_color) {
  Console console;
  console.in = &std::cin;
  console.out = &std::cout;
  console.err = &std::cerr;
  console.in_is_terminal = isatty(STDIN_FILENO) == 1;
  console.out_is_terminal = isatty(STDOUT_FILENO) == 1;
  console.err_is_terminal = isatty(STDERR_FILENO) == 1;
  console.color = console.err_is_terminal && !no_color;
  console.width = TerminalWidth();
  return console;
}

}  // namespace ablate::client
