// The terminal, or whatever stands in its place: results go to `out`, messages to `err`.
#ifndef ABLATE_CLIENT_CONSOLE_H_
#define ABLATE_CLIENT_CONSOLE_H_

#include <istream>
#include <ostream>

#include "absl/strings/string_view.h"

namespace ablate::client {

struct Console {
  std::istream* in = nullptr;
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool color = false;  // err may be coloured: a terminal, and NO_COLOR is not set
  int width = 80;      // columns of the terminal

  // How wide a table on `out` may be, 0 if it may be as wide as it is: it goes to a program.
  int table_width() const { return out_is_terminal ? width : 0; }

  // A line on `err` behind a word that says what kind it is; made fit for a terminal.
  void Error(absl::string_view message) const;
  void Note(absl::string_view message) const;
  // A line on `err` without such a word.
  void Say(absl::string_view message) const;
};

// The process's own streams. `no_color` is whether NO_COLOR is set.
Console ProcessConsole(bool no_color);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_CONSOLE_H_
