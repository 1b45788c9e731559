#include "client/output/screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/output/terminal_stream.h"
#include "client/output/terminal_text.h"

namespace ablate::client {
namespace {

// Second screen, no cursor, no wrapping at the right edge; and back.
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[J";
constexpr char kLeave[] = "\x1b[?7h\x1b[?25h\x1b[?1049l";

constexpr int kEndings[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGABRT, SIGSEGV, SIGBUS};

// For signal handlers, which can't be passed anything.
std::atomic<const SignalGuard*> guard = nullptr;
std::atomic<bool> continued = false;

// The modes of a terminal whose keys are read.
struct KeyModes {
  int file;
  termios before, keys;
};
std::atomic<const KeyModes*> key_modes = nullptr;

void ShowKeys() {
  if (const KeyModes* modes = key_modes.load()) tcsetattr(modes->file, TCSANOW, &modes->before);
}

void HideKeys() {
  if (const KeyModes* modes = key_modes.load()) tcsetattr(modes->file, TCSANOW, &modes->keys);
}

void WriteAll(int file, const char* text, size_t size) {
  while (size > 0) {
    const ssize_t written = write(file, text, size);
    if (written <= 0) return;
    text += written;
    size -= static_cast<size_t>(written);
  }
}

// Ends or stops the process as if the signal weren't handled.
void PassOn(int signal_number) {
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void LeaveScreen() {
  ShowKeys();
  const SignalGuard* now = guard.load();
  if (now != nullptr && now->terminal() >= 0) WriteAll(now->terminal(), kLeave, sizeof(kLeave) - 1);
}

void OnEnding(int signal_number) {
  LeaveScreen();
  const SignalGuard* now = guard.load();
  if (now != nullptr && signal_number == SIGINT) {
    WriteAll(STDERR_FILENO, now->message().data(), now->message().size());
  }
  PassOn(signal_number);
}

void Handle(int signal_number, void (*handler)(int)) {
  struct sigaction before {};
  sigaction(signal_number, nullptr, &before);
  if (before.sa_handler == SIG_IGN) return;  // as under nohup
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal_number, &action, nullptr);
}

// Stops the process, unless the shell has no job control, and takes the screen again.
void OnStop(int) {
  LeaveScreen();
  PassOn(SIGTSTP);
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);  // stops here
  Handle(SIGTSTP, OnStop);
  if (const SignalGuard* now = guard.load()) {
    WriteAll(now->terminal(), kEnter, sizeof(kEnter) - 1);
  }
  HideKeys();
  continued = true;
}

}  // namespace

WindowSize WindowSizeOf(int terminal, WindowSize otherwise) {
  winsize size{};
  if (ioctl(terminal, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return otherwise;
  }
  return {size.ws_col, size.ws_row};
}

// The echo of Ctrl-C is on the second screen, or at the end of a line.
SignalGuard::SignalGuard(int terminal, const std::string& message)
    : terminal_(terminal),
      message_(message.empty() ? ""
                               : absl::StrCat(terminal < 0 ? "\n" : "", Printable(message), "\n")) {
  guard = this;
  for (const int signal_number : kEndings) Handle(signal_number, OnEnding);
  if (terminal >= 0) Handle(SIGTSTP, OnStop);
}

SignalGuard::~SignalGuard() {
  for (const int signal_number : kEndings) Handle(signal_number, SIG_DFL);
  Handle(SIGTSTP, SIG_DFL);
  guard = nullptr;
}

bool SignalGuard::Continued() { return continued.exchange(false); }

Keys::Keys(int file) : file_(-1) {
  static KeyModes modes;
  if (tcgetattr(file, &modes.before) != 0) return;
  file_ = modes.file = file;
  modes.keys = modes.before;
  modes.keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  modes.keys.c_cc[VMIN] = 1;
  modes.keys.c_cc[VTIME] = 0;
  key_modes = &modes;
  HideKeys();
}

Keys::~Keys() {
  ShowKeys();
  key_modes = nullptr;
}

bool Keys::WaitFor(char key, absl::Duration time) const {
  const absl::Time end = absl::Now() + time;
  while (true) {
    const int64_t left = std::max<int64_t>(absl::ToInt64Milliseconds(end - absl::Now()), 0);
    pollfd ready{file_, POLLIN, 0};
    char pressed = 0;
    if (poll(&ready, 1, static_cast<int>(left)) <= 0 || read(file_, &pressed, 1) != 1) return false;
    if (pressed == key) return true;
  }
}

Screen::Screen(std::ostream* out, int terminal, WindowSize otherwise, const std::string& message)
    : out_(out), terminal_(terminal), otherwise_(otherwise), guard_(terminal, message) {
  *out_ << TerminalControl{kEnter} << std::flush;
}

Screen::~Screen() { *out_ << TerminalControl{kLeave} << std::flush; }

void Screen::Draw(const std::vector<std::string>& lines) {
  const WindowSize window = size();
  std::string frame;
  int row = 0;
  for (const std::string& line : lines) {
    if (++row > window.height) break;
    const std::string shown = Truncate(Printable(line), window.width);
    // A line that fills its row would lose its last character to the erasure.
    const bool full = DisplayWidth(shown) >= window.width;
    absl::StrAppend(&frame, "\x1b[", row, ";1H", shown, full ? "" : "\x1b[K");
  }
  if (row < window.height) absl::StrAppend(&frame, "\x1b[", row + 1, ";1H\x1b[J");
  const std::string key = absl::StrCat(window.width, "x", window.height, frame);
  if (!SignalGuard::Continued() && key == drawn_) return;
  drawn_ = key;
  *out_ << TerminalControl{frame.c_str()} << std::flush;
}

}  // namespace ablate::client
