// Tests the live screens in a pseudo terminal: resized while they run, Ctrl-C, a server that goes
// away, and output that isn't a terminal.
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kBack[] = "\x1b[?7h\x1b[?25h\x1b[?1049l";  // cursor and first screen

// A program in a terminal of its own. Reading never blocks for longer than a moment.
class TerminalProgram {
 public:
  TerminalProgram(const PersonalServer& server, std::vector<std::string> arguments, int width,
                  int height, const std::string& term = "xterm") {
    winsize size = Size(width, height);
    std::string program = ABLATE_BIN "/ablate";
    std::vector<char*> pointers = {program.data()};
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (pid_ != 0) return;
    setenv("ABLATE_HOME", server.home().c_str(), 1);
    setenv("TERM", term.c_str(), 1);
    unsetenv("ABLATE_SERVER");
    if (chdir(ABLATE_SOURCE) == 0) execv(program.c_str(), pointers.data());
    _exit(127);
  }
  ~TerminalProgram() {
    if (!ended_) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(terminal_);
  }
  TerminalProgram(const TerminalProgram&) = delete;
  TerminalProgram& operator=(const TerminalProgram&) = delete;

  void Type(const std::string& text) {
    EXPECT_EQ(write(terminal_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void Send(int signal_number) { kill(pid_, signal_number); }
  void Resize(int width, int height) {
    const winsize size = Size(width, height);
    EXPECT_EQ(ioctl(terminal_, TIOCSWINSZ, &size), 0);
  }

  // Returns everything that the program wrote so far.
  const std::string& Read() {
    char bytes[65536];
    pollfd ready{terminal_, POLLIN, 0};
    while (poll(&ready, 1, 0) == 1) {
      const ssize_t size = read(terminal_, bytes, sizeof bytes);
      if (size <= 0) break;  // it has ended
      text_.append(bytes, static_cast<size_t>(size));
    }
    return text_;
  }

  // Returns the lines of the last drawing.
  std::vector<std::string> Lines() {
    std::string drawing = Read().substr(std::min(text_.rfind("\x1b[1;1H"), text_.size()));
    drawing = std::regex_replace(drawing, std::regex("\x1b\\[[JK]"), "");
    const std::regex place("\x1b\\[[0-9]+;1H");
    return {std::sregex_token_iterator(drawing.begin(), drawing.end(), place, -1), {}};
  }
  bool Shows(const std::string& text) {
    const std::vector<std::string> lines = Lines();
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }

  // Returns true if the terminal shows what is typed, and passes it on by lines.
  bool HasItsModes() const {
    termios modes{};
    EXPECT_EQ(tcgetattr(terminal_, &modes), 0);
    return (modes.c_lflag & ECHO) != 0 && (modes.c_lflag & ICANON) != 0;
  }

  // Waits for the end; returns the exit code, or 128 and the signal.
  int End() {
    int status = 0;
    ended_ = Eventually([&] {
      Read();
      return waitpid(pid_, &status, WNOHANG) == pid_;
    });
    EXPECT_TRUE(ended_) << text_;
    Read();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  static winsize Size(int width, int height) {
    winsize size{};
    size.ws_col = static_cast<unsigned short>(width);
    size.ws_row = static_cast<unsigned short>(height);
    return size;
  }

  int terminal_ = -1;
  pid_t pid_ = 0;
  bool ended_ = false;
  std::string text_;
};

// Characters of UTF-8; none of these tests' are wide.
size_t WidthOf(const std::string& line) {
  return static_cast<size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

size_t Widest(const std::vector<std::string>& lines) {
  size_t widest = 0;
  for (const std::string& line : lines) widest = std::max(widest, WidthOf(line));
  return widest;
}

size_t Times(const std::string& text, const std::string& part) {
  size_t times = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++times;
  return times;
}

// The ID and the question of the grid below.
constexpr size_t kLongestLine = 126;

// A grid whose runs end in no test, with a long question.
std::string LongGrid() {
  return SmallNames("live", 10'000'000,
                    "question: Is this line cut at the width of the window, wherever that is, "
                    "however often it changes while the screen is drawn?\n"
                    "axes: [{field: training.batch, values: [1, 2, 4]}]\nseeds: {count: 2}\n");
}

TEST(LiveScreenTest, FollowsTheWindowAndLeavesTheExperimentOnCtrlC) {
  PersonalServer server;
  server.Up();
  const std::string name = server.Json({"submit", "-", "--json"}, LongGrid())["experiment"]["name"];
  const std::string id = name.substr(std::string("experiments/").size());
  TerminalProgram watch(server, {"watch", "live"}, 80, 24);
  ASSERT_TRUE(Eventually([&] { return watch.Shows("steps/s") && watch.Shows("▁"); }));
  EXPECT_EQ(Widest(watch.Lines()), 80u);
  for (const auto& [width, height] : {std::pair(60, 12), {160, 40}, {70, 6}}) {
    watch.Resize(width, height);
    EXPECT_TRUE(Eventually([&, w = static_cast<size_t>(width)] {
      return Widest(watch.Lines()) == std::min<size_t>(w, kLongestLine);
    })) << Widest(watch.Lines());
    EXPECT_LE(watch.Lines().size(), static_cast<size_t>(height) + 1);  // with the one before
  }
  EXPECT_THAT(watch.Read(), Not(HasSubstr("\x1b[2J"))) << "clearing flickers";
  watch.Type("\x03");
  EXPECT_EQ(watch.End(), 128 + SIGINT);
  const std::string end = watch.Read().substr(watch.Read().rfind("\x1b[?1049l"));
  EXPECT_THAT(watch.Read(), HasSubstr(kBack));
  EXPECT_THAT(end, HasSubstr(id + " goes on; `ablate watch " + id + "` shows it again"));
  EXPECT_EQ(server.Json({"ls", "--json"})["experiments"][0]["state"], "ACTIVE");
}

TEST(LiveScreenTest, GivesTheTerminalBackWhenItIsTerminated) {
  PersonalServer server;
  server.Up();
  SubmitEndlessRun(server, "live");
  for (const char* command : {"watch", "top"}) {
    std::vector<std::string> arguments = {command};
    if (arguments[0] == "watch") arguments.emplace_back("live");
    TerminalProgram program(server, arguments, 80, 24);
    ASSERT_TRUE(Eventually([&] { return program.Shows("training"); })) << command;
    program.Send(SIGTERM);
    EXPECT_EQ(program.End(), 128 + SIGTERM);
    EXPECT_THAT(program.Read(), ::testing::EndsWith(kBack));
    EXPECT_TRUE(program.HasItsModes());
  }
}

TEST(LiveScreenTest, LeavesTopByAKey) {
  PersonalServer server;
  server.Up();
  TerminalProgram top(server, {"top"}, 80, 24);
  ASSERT_TRUE(Eventually([&] { return top.Shows("q leaves"); }));
  EXPECT_FALSE(top.HasItsModes());
  top.Type("xq");
  EXPECT_EQ(top.End(), 0);
  EXPECT_THAT(top.Read(), ::testing::EndsWith(kBack));
  EXPECT_TRUE(top.HasItsModes());
}

TEST(LiveScreenTest, GoesOnAfterTheServerWasAway) {
  PersonalServer server;
  server.Up();
  SubmitEndlessRun(server, "live");
  TerminalProgram watch(server, {"watch", "live"}, 80, 24);
  TerminalProgram top(server, {"top"}, 80, 24);
  ASSERT_TRUE(Eventually([&] { return watch.Shows("▁") && top.Shows("1 of"); }));
  PersonalServer::Kill(server.ServerPid());
  EXPECT_TRUE(Eventually([&] { return watch.Shows("connection lost"); }));
  EXPECT_TRUE(Eventually([&] { return top.Shows("connection lost"); }));
  server.Up();
  EXPECT_TRUE(Eventually([&] { return !watch.Shows("connection lost") && watch.Shows("▁"); }));
  EXPECT_TRUE(Eventually([&] { return !top.Shows("connection lost"); }));
  EXPECT_EQ(server.Ablate({"cancel", "live"}).exit_code, 0);
  EXPECT_EQ(watch.End(), 2) << "as `wait`";
}

TEST(LiveScreenTest, SubmitShowsTheVerdictAtTheEnd) {
  PersonalServer server;
  server.Up();
  const std::string file = server.home() + "/../small.yaml";
  WriteFile(file,
            SmallNames("small", 20,
                       "axes: [{field: training.batch, values: [1, 2]}]\nseeds: {count: 3}\n"));
  TerminalProgram submit(server, {"submit", file, "--data", ABLATE_SOURCE "/examples", "--wait"},
                         100, 30);
  EXPECT_EQ(submit.End(), 0);
  const std::string end = submit.Read().substr(submit.Read().rfind(kBack));
  EXPECT_THAT(end, AllOf(HasSubstr("100 %"), HasSubstr("6 of 6 ended"), HasSubstr("batch 2"),
                         HasSubstr("in held-out loss"), HasSubstr(": 6 done")));
}

TEST(LiveScreenTest, PrintsPlainLinesOffATerminal) {
  PersonalServer server;
  server.Up();
  const Output output =
      server.Ablate({"submit", "-", "--wait"}, SmallNames("plain", 20, "seeds: {count: 20}\n"));
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.err, Not(HasSubstr("\x1b")));
  EXPECT_LE(Times(output.err, " ended"), 11u);
  EXPECT_THAT(output.err, HasSubstr("20/20 ended"));
  TerminalProgram dumb(server, {"watch", "plain"}, 80, 24, "dumb");
  EXPECT_EQ(dumb.End(), 0);
  EXPECT_THAT(dumb.Read(), AllOf(HasSubstr("20/20 ended"), Not(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace ablate::e2e
