// Tests completion in real shells, with the names that a real server has. zsh and fish may lack.
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::HasSubstr;

// A shell could take parts of it for commands.
constexpr char kQuestion[] =
    "seeds: {count: 2}\nquestion: \"Is it $(touch hit) `touch hit` %F{red} \\\\ ' \\\" x?\"\n";

class CompletionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.Up({"--lanes", "1"});
    for (const char* name : {"small", "other"}) {
      const Output submitted =
          server_.Ablate({"submit", "-", "--wait"}, SmallNames(name, 50, kQuestion));
      ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
    }
  }

  // Runs a script in a shell, which is given a minute.
  Output Run(const std::string& shell, const std::string& script) const {
    const std::string path = std::string(ABLATE_BIN ":") + std::getenv("PATH");
    return RunProgram(
        {"/usr/bin/timeout", "60", shell, "-c", "cd " + server_.home() + "\n" + script}, "",
        {{"ABLATE_HOME", server_.home()}, {"ABLATE_SERVER", ""}, {"PATH", path}});
  }

  void ExpectNothingRun() const { EXPECT_FALSE(std::filesystem::exists(server_.home() + "/hit")); }

  PersonalServer server_;
};

TEST_F(CompletionTest, CompletesInBash) {
  // `offer LINE WORD...` completes a line, which readline has split into these words.
  const Output output = Run("/bin/bash", R"sh(
set -eu
eval "$(ablate completion bash)"
complete -p ablate
offer() {
  COMP_LINE=$1 COMP_POINT=${#1}
  shift
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
  _ablate 2>/dev/null || true  # compopt wants a terminal
  echo "$COMP_LINE:" "${COMPREPLY[@]}"
}
offer 'ablate su' ablate su
offer 'ablate  admin   user ' ablate admin user ''
offer 'ablate show s' ablate show s
offer 'ablate show ' ablate show ''
offer 'ablate logs s' ablate logs s
offer 'ablate logs small/' ablate logs small/
offer 'ablate logs small/@' ablate logs small/ @
offer 'ablate logs small/@b' ablate logs small/ @ b
offer 'ablate compare small small/' ablate compare small small/
offer 'ablate data get n' ablate data get n
offer 'ablate table small --format=c' ablate table small --format = c
offer 'ablate table small --with=' ablate table small --with =
offer 'ablate ls --server=personal --owner a' ablate ls --server = personal --owner a
offer 'ablate submit ' ablate submit ''
program=$(type -P ablate)
offer "$program show o" "$program" show o
)sh");
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_EQ(output.err, "");
  EXPECT_EQ(output.out,
            "complete -F _ablate ablate\n"
            "ablate su: submit\n"
            "ablate  admin   user : add ls role programs rm\n"
            "ablate show s: small\n"
            "ablate show : other small\n"
            "ablate logs s: small/\n"
            "ablate logs small/: small/s0 small/s1 small/@best\n"
            "ablate logs small/@: @best\n"
            "ablate logs small/@b: @best\n"
            "ablate compare small small/: small/s0 small/s1\n"
            "ablate data get n: names.txt\n"
            "ablate table small --format=c: csv\n"
            "ablate table small --with=: other small\n"
            "ablate ls --server=personal --owner a:\n"
            "ablate submit :\n" ABLATE_BIN "/ablate show o: other\n");
  ExpectNothingRun();
}

TEST_F(CompletionTest, CompletesInZsh) {
  if (!std::filesystem::exists("/usr/bin/zsh")) GTEST_SKIP() << "zsh isn't installed";
  // Typed at a terminal of zsh's own; each read waits for what zsh must show.
  const Output output = Run("/usr/bin/zsh", R"sh(
zmodload zsh/zpty
zpty inner 'TERM=xterm zsh -f -i'
zpty -w inner 'autoload -U compinit; compinit -D -u; eval "$(ablate completion zsh)"; echo rea""dy'
zpty -r inner shown '*ready*'
zpty -w -n inner $'ablate show sm\t'
zpty -r inner shown '*small*' && echo one
zpty -w -n inner $'\x15ablate table small --format=c\t'
zpty -r inner shown '*--format=csv*' && echo two
zpty -w -n inner $'\x15ablate show \t'
zpty -r inner shown '*small*--*touch hit*' && echo three
[[ $shown != *$'\e[31m'* ]] && echo four
zpty -d inner
)sh");
  EXPECT_EQ(output.out, "one\ntwo\nthree\nfour\n") << output.err;
  ExpectNothingRun();
}

TEST_F(CompletionTest, CompletesInFish) {
  if (!std::filesystem::exists("/usr/bin/fish")) GTEST_SKIP() << "fish isn't installed";
  const Output output = Run("/usr/bin/fish", R"sh(
ablate completion fish | source
complete -C 'ablate su'
complete -C 'ablate logs small/'
complete -C 'ablate table small --format=c'
complete -C 'ablate show s'
)sh");
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.out,
              ::testing::StartsWith("submit\tCreate an experiment from a file and queue its runs\n"
                                    "small/s0\tdone\nsmall/s1\tdone\n"
                                    "small/@best\tthe best run\n"
                                    "--format=csv\n"
                                    "small\tIs it $(touch hit) `touch hit` %F{red} \\"));
  ExpectNothingRun();
}

TEST_F(CompletionTest, OffersNothingWhenTheServerHangsOrHasEnded) {
  const std::vector<std::string> words = {"__complete", "show", "s"};
  EXPECT_THAT(server_.Ablate(words).out, HasSubstr("small"));
  const int pid = server_.ServerPid();
  ASSERT_EQ(kill(pid, SIGSTOP), 0);
  const auto began = std::chrono::steady_clock::now();
  const Output hangs = server_.Ablate(words);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  kill(pid, SIGCONT);
  EXPECT_EQ(hangs.out + hangs.err, "words\n");
  EXPECT_EQ(server_.Ablate({"down"}).exit_code, 0);
  const Output ended = server_.Ablate(words);
  EXPECT_EQ(ended.out + ended.err, "words\n");
  EXPECT_EQ(server_.ServerPid(), 0) << "a server was started";
}

TEST(ManualTest, IsReadByGroffWithoutAWarning) {
  if (!std::filesystem::exists("/usr/bin/groff")) GTEST_SKIP() << "groff isn't installed";
  PersonalServer server;
  const std::string folder = server.home() + "/man1";
  ASSERT_EQ(server.Ablate({"help", "--man", folder}).exit_code, 0);
  std::vector<std::string> command = {"/usr/bin/groff", "-ww", "-man", "-Tutf8"};
  for (const auto& page : std::filesystem::directory_iterator(folder)) {
    command.push_back(page.path());
  }
  EXPECT_GT(command.size(), 50);
  const Output output = RunProgram(command, "", {});
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_EQ(output.err, "");
  EXPECT_THAT(output.out, HasSubstr("Create an experiment from a file and queue its runs"));
}

}  // namespace
}  // namespace ablate::e2e
