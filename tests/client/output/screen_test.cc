// Tests what drawing writes to a terminal.
#include "client/output/screen.h"

#include <optional>
#include <sstream>

#include "client/output/terminal_stream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::client {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Counts the writes that reach it.
class Terminal : public std::stringbuf {
 public:
  int writes() const { return writes_; }

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    ++writes_;
    return std::stringbuf::xsputn(text, size);
  }

 private:
  int writes_ = 0;
};

class ScreenTest : public ::testing::Test {
 protected:
  // Returns what drawing these lines wrote.
  std::string Draw(const std::vector<std::string>& lines) {
    terminal_.str("");
    screen_->Draw(lines);
    return terminal_.str();
  }

  Terminal terminal_;
  std::ostream raw_{&terminal_};
  TerminalStream out_{&raw_};
  std::optional<Screen> screen_{std::in_place, &out_, -1, WindowSize{10, 3}, ""};
};

TEST_F(ScreenTest, WritesEachDrawingAtOnceWithoutClearing) {
  const int before = terminal_.writes();
  EXPECT_EQ(Draw({"one", "two"}), "\x1b[1;1Hone\x1b[K\x1b[2;1Htwo\x1b[K\x1b[3;1H\x1b[J");
  EXPECT_EQ(terminal_.writes(), before + 1);
}

TEST_F(ScreenTest, WritesNothingIfNothingChanged) {
  EXPECT_NE(Draw({"one"}), "");
  EXPECT_EQ(Draw({"one"}), "");
  EXPECT_NE(Draw({"two"}), "");
}

TEST_F(ScreenTest, StaysInTheWindow) {
  const std::string drawn = Draw({"0123456789", "0123456789abc", "3", "4"});
  EXPECT_EQ(drawn, "\x1b[1;1H0123456789\x1b[2;1H012345678…\x1b[3;1H3\x1b[K");
}

TEST_F(ScreenTest, EscapesControlCharacters) {
  EXPECT_THAT(Draw({"a\x1b[2Jb"}), HasSubstr("a\\x1b[2Jb"));
}

TEST_F(ScreenTest, GivesTheTerminalBack) {
  EXPECT_THAT(terminal_.str(), StartsWith("\x1b[?1049h"));
  terminal_.str("");
  screen_.reset();
  EXPECT_EQ(terminal_.str(), "\x1b[?7h\x1b[?25h\x1b[?1049l");
}

}  // namespace
}  // namespace ablate::client
