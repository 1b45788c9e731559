// Tests which characters of a text TerminalStream passes to the terminal.
#include "client/output/terminal_stream.h"

#include <sstream>

#include "gtest/gtest.h"

namespace ablate::client {
namespace {

TEST(TerminalStreamTest, ShowsWhatATerminalWouldObey) {
  std::ostringstream terminal;
  TerminalStream stream(&terminal);
  stream << "a\x1b]0;title\a\n" << std::string("b\xC2\x9B\u202E") << '\x1b' << "\n\n\xff" << 7;
  EXPECT_EQ(terminal.str(), "a\\x1b]0;title\\x07\nb\\x9b\\u202e\\x1b\n\n\\xff7");
}

TEST(TerminalStreamTest, LeavesPlainTextAsItIs) {
  std::ostringstream terminal;
  TerminalStream stream(&terminal);
  stream << "a,b\r\n";
  stream << "grün 名前 😀 −1 × …\n  indented" << std::endl;
  EXPECT_EQ(terminal.str(), "a,b\ngrün 名前 😀 −1 × …\n  indented\n");
}

TEST(TerminalStreamTest, PassesOnTheProgramsOwnSequences) {
  std::ostringstream terminal;
  TerminalStream stream(&terminal);
  stream << TerminalControl{"\r\x1b[K"} << "a\x1b";
  EXPECT_EQ(terminal.str(), "\r\x1b[Ka\\x1b");
  std::ostringstream pipe;
  pipe << TerminalControl{"\x1b[0m"};
  EXPECT_EQ(pipe.str(), "\x1b[0m");
}

TEST(TerminalStreamTest, FailsWithTheStreamBelow) {
  std::ostringstream terminal;
  TerminalStream stream(&terminal);
  terminal.setstate(std::ios::badbit);
  EXPECT_FALSE(stream << "a");
  TerminalStream flushed(&terminal);
  EXPECT_FALSE(flushed.flush());
}

}  // namespace
}  // namespace ablate::client
