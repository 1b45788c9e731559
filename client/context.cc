#include "client/context.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/output/format.h"
#include "client/output/screen.h"
#include "client/output/table.h"
#include "client/output/terminal_stream.h"
#include "client/output/terminal_text.h"
#include "client/output/wrap.h"

namespace ablate::client {
namespace {

constexpr int kMinTerminalWidth = 40;
constexpr int kDefaultWidth = 80;
constexpr TerminalControl kRed = {"\x1b[31m"};
constexpr TerminalControl kYellow = {"\x1b[33m"};
constexpr TerminalControl kResetColor = {"\x1b[0m"};

// Columns of the first terminal among the standard streams.
int TerminalWidth() {
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    const int width = WindowSizeOf(stream, {0, 0}).width;
    if (width >= kMinTerminalWidth) return width;
  }
  return kDefaultWidth;
}

// Breaks a text between words if a person reads it.
std::string WrapForErr(const Console& console, const std::string& text) {
  return console.err_is_terminal ? WrapProse(text, console.width) : text;
}

void PrintLabelled(const Console& console, absl::string_view label, TerminalControl color,
                   absl::string_view message) {
  // Lines after the first begin below the message.
  const std::string indent(label.size() + 2, ' ');
  const std::string text = WrapForErr(console, absl::StrCat(indent, Printable(message)));
  if (console.color) *console.err << color;
  *console.err << label << ':';
  if (console.color) *console.err << kResetColor;
  *console.err << ' ' << absl::string_view(text).substr(indent.size()) << std::endl;
}

}  // namespace

void Console::Error(absl::string_view message) const {
  PrintLabelled(*this, "error", kRed, message);
}

void Console::Note(absl::string_view message) const {
  PrintLabelled(*this, "note", kYellow, message);
}

void Console::Info(absl::string_view message) const {
  *err << WrapForErr(*this, Printable(message)) << std::endl;
}

std::ostream& Console::data() const { return out_is_terminal ? *out : Unfiltered(*out); }

int Console::FileOf(const std::ostream* stream) const {
  return stream == out ? STDOUT_FILENO : STDERR_FILENO;
}

Console ProcessConsole(const Environment& environment) {
  // Large enough for a drawing of a screen to leave in one write.
  static char output_buffer[1 << 16];
  if (isatty(STDOUT_FILENO) == 1) setvbuf(stdout, output_buffer, _IOLBF, sizeof output_buffer);
  Console console;
  console.in = &std::cin;
  console.out = &std::cout;
  console.err = &std::cerr;
  console.in_is_terminal = isatty(STDIN_FILENO) == 1;
  console.out_is_terminal = isatty(STDOUT_FILENO) == 1;
  console.err_is_terminal = isatty(STDERR_FILENO) == 1;
  console.dumb = environment("TERM").value_or("dumb") == "dumb";
  console.color = console.err_is_terminal && !environment("NO_COLOR").has_value();
  console.width = TerminalWidth();
  return console;
}

absl::StatusOr<std::unique_ptr<Connection>> Connect(const Context& context) {
  ASSIGN_OR_RETURN(ServerAddress server, FindServer(context.environment));
  const auto tell = [console = context.console](const std::string& name, const std::string& id) {
    console.Note(absl::StrCat("several experiments are named ", name, "; using the newest, ", id));
  };
  return std::make_unique<Connection>(std::move(server), context.sleep, tell);
}

int Fail(const Context& context, const absl::Status& status) {
  context.console.Error(status.message().empty() ? absl::StatusCodeToString(status.code())
                                                 : std::string(status.message()));
  return MayTryAgain(status) ? kNoServer : kFailure;
}

int FailSettings(const Context& context, const absl::Status& status) {
  const int code = Fail(context, status);
  return code == kFailure ? kUsage : code;
}

int PrintJson(const Context& context, const google::protobuf::Message& message) {
  context.console.data() << ToJson(message);
  return kSuccess;
}

int PrintTable(const Context& context, const Table& table) {
  *context.console.out << table.Render(context.console.table_width());
  return kSuccess;
}

}  // namespace ablate::client
