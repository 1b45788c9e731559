// Draws lines on a whole terminal window, and gives the terminal back on every way out.
#ifndef ABLATE_CLIENT_OUTPUT_SCREEN_H_
#define ABLATE_CLIENT_OUTPUT_SCREEN_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace ablate::client {

struct WindowSize {
  int width = 80;
  int height = 24;
};

// Returns the size of the terminal at a file descriptor; `otherwise` if it isn't one.
WindowSize WindowSizeOf(int terminal, WindowSize otherwise);

// While it lives, a signal that ends the process first gives the terminal back, and Ctrl-C prints
// `message`, unless it is empty. At most one may live at a time.
class SignalGuard {
 public:
  // `terminal` has a screen to leave, or is −1.
  SignalGuard(int terminal, const std::string& message);
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  int terminal() const { return terminal_; }
  const std::string& message() const { return message_; }
  // Returns true once after the process was stopped and continues: the window must be drawn again.
  static bool Continued();

 private:
  const int terminal_;
  const std::string message_;
};

// While it lives, a terminal passes on single keys, without showing them. A signal that ends or
// stops the process first restores the terminal's mode. At most one may live at a time.
class Keys {
 public:
  // Reads nothing if `file` isn't a terminal.
  explicit Keys(int file);
  ~Keys();
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  // Returns true if keys can be read.
  bool is_terminal() const { return file_ >= 0; }
  // Waits for a key; returns true as soon as it is `key`, false after `time`.
  bool WaitFor(char key, absl::Duration time) const;

 private:
  int file_;  // -1: no terminal
};

// Not thread-safe. Shows the terminal's second screen, without a cursor, so that the text before is
// there again afterwards.
class Screen {
 public:
  // `out` writes to `terminal`, or to a test's buffer.
  Screen(std::ostream* out, int terminal, WindowSize otherwise, const std::string& message);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  WindowSize size() const { return WindowSizeOf(terminal_, otherwise_); }
  // Shows the lines from the top on, and nothing below. Writes once, and only if something changed.
  // Lines are made fit for a terminal, and cut to its width and height.
  void Draw(const std::vector<std::string>& lines);

 private:
  std::ostream* const out_;
  const int terminal_;
  const WindowSize otherwise_;
  const SignalGuard guard_;
  std::string drawn_;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_SCREEN_H_
