// Gives a command its environment (console, variables, clock, server) and the exit codes.
#ifndef ABLATE_CLIENT_CONTEXT_H_
#define ABLATE_CLIENT_CONTEXT_H_

#include <functional>
#include <istream>
#include <memory>
#include <ostream>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/connection.h"
#include "client/personal_server.h"
#include "google/protobuf/message.h"

namespace ablate::client {

class Table;

// Exit codes.
inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;      // a problem with the request, or a run FAILED
inline constexpr int kCancelled = 2;    // what was waited for was cancelled
inline constexpr int kUsage = 64;       // EX_USAGE of sysexits.h: arguments or settings
inline constexpr int kNoServer = 69;    // EX_UNAVAILABLE
inline constexpr int kWaitFailed = 70;  // EX_SOFTWARE: waiting failed, which says nothing of runs

// The terminal, or files in its place: results go to `out`, messages to `err`.
struct Console {
  std::istream* in = nullptr;
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool dumb = false;   // TERM is dumb or not set: lines can't be drawn again
  bool color = false;  // err may be coloured: a terminal, and NO_COLOR is not set
  int width = 80;      // columns of the terminal

  // Prints a line on `err` after a word for its kind; made fit for a terminal, and on a terminal
  // broken between words.
  void Error(absl::string_view message) const;
  void Note(absl::string_view message) const;
  // Prints a line on `err` without such a word.
  void Info(absl::string_view message) const;

  // Returns the stream for formats that programs read: `out`, without a filter unless a terminal
  // shows them.
  std::ostream& data() const;

  // Return true if a live line or screen can be drawn.
  bool out_is_live() const { return out_is_terminal && !dumb; }
  bool err_is_live() const { return err_is_terminal && !dumb; }

  // Returns the file descriptor of `out` or `err`.
  int FileOf(const std::ostream* stream) const;

  // Returns the greatest width of a table on `out`, 0 for any width if a program reads it.
  int table_width() const { return out_is_terminal ? width : 0; }
};

// Returns the process's own streams.
Console ProcessConsole(const Environment& environment);

struct Context {
  Console console;
  Environment environment;
  std::function<absl::Time()> now;
  Sleep sleep;
};

// Returns a connection to the server that the environment names. An error other than UNAVAILABLE is
// an error of the settings, for FailSettings.
absl::StatusOr<std::unique_ptr<Connection>> Connect(const Context& context);

// Prints an error; returns its exit code.
int Fail(const Context& context, const absl::Status& status);

// Does the same for an error in the client's own settings, such as ABLATE_SERVER or ABLATE_HOME.
int FailSettings(const Context& context, const absl::Status& status);

// Print a result on `out`; return kSuccess.
int PrintJson(const Context& context, const google::protobuf::Message& message);
int PrintTable(const Context& context, const Table& table);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_CONTEXT_H_
