// Tests `ablate logs` of runs that are programs: the log, its end, and -f.
#include <string>
#include <vector>

#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LogsTest : public ClientTest {
 protected:
  LogsTest() {
    answers_.run = [this](const v1::GetRunRequest& request, v1::Run* run) {
      run->set_name(request.name());
      if (is_program_) run->mutable_resolved_spec()->mutable_spec()->mutable_program();
      return absl::OkStatus();
    };
    answers_.run_log = [this](const v1::ReadRunLogRequest& request,
                              v1::ReadRunLogResponse* response) {
      EXPECT_EQ(request.run(), "runs/r");
      asked_.push_back(std::to_string(request.position()));
      return read_(request.position(), response);
    };
    answers_.run_events = [](const v1::ListRunEventsRequest&, v1::ListRunEventsResponse* response) {
      response->add_events()->set_kind("granted");
      return absl::OkStatus();
    };
    AnswerRun("s0", "runs/r");
    StartServer();
  }

  // Answers with the parts of a log in turn, the run's end with the last one.
  void SetLog(std::vector<std::string> parts, bool ends = true) {
    read_ = [this, parts, ends](uint64_t position, v1::ReadRunLogResponse* response) {
      const size_t part = asked_.size() - 1;
      response->set_text(part < parts.size() ? parts[part] : "");
      response->set_next(position + response->text().size());
      response->set_complete(ends && part + 1 >= parts.size());
      return absl::OkStatus();
    };
  }

  bool is_program_ = true;
  std::function<absl::Status(uint64_t, v1::ReadRunLogResponse*)> read_;
};

TEST_F(LogsTest, PrintsAllPartsOfALog) {
  SetLog({"one\n", "two\n"});
  const Outcome outcome = Run({"logs", "small/s0"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(outcome.out, "one\ntwo\n");
  EXPECT_THAT(asked_, ElementsAre("0", "4"));
}

TEST_F(LogsTest, EndsBeforeTheRunUnlessItFollows) {
  SetLog({"one\n"}, /*ends=*/false);
  EXPECT_EQ(Run({"logs", "small/s0"}).out, "one\n");
  EXPECT_EQ(slept_, absl::ZeroDuration());
}

TEST_F(LogsTest, FollowsARunToItsEnd) {
  SetLog({"", "one\n", "", "", "two", ""});
  const Outcome outcome = Run({"logs", "small/s0", "-f"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(outcome.out, "one\ntwo");
  EXPECT_THAT(asked_, ElementsAre("0", "0", "4", "4", "4", "7"));
  EXPECT_EQ(slept_, absl::Milliseconds(1500));
}

TEST_F(LogsTest, FollowsThroughARestartOfTheServer) {
  read_ = [this](uint64_t position, v1::ReadRunLogResponse* response) {
    // The calls themselves are repeated, too.
    if (asked_.size() > 1 && asked_.size() < 8) return absl::UnavailableError("going down");
    response->set_text(asked_.size() == 1 ? "one\n" : "two\n");
    response->set_next(position + 4);
    response->set_complete(asked_.size() > 1);
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"logs", "small/s0", "-f"}).out, "one\ntwo\n");
  asked_.clear();
  EXPECT_EQ(Run({"logs", "small/s0"}).code, kNoServer) << "a script may try again";
}

TEST_F(LogsTest, ShowsControlCharactersOnATerminal) {
  SetLog({"a\x1b[2Jb\n"});
  console_.out_is_terminal = true;
  EXPECT_EQ(Run({"logs", "small/s0"}).out.find('\x1b'), std::string::npos);
}

TEST_F(LogsTest, PrintsTheHistoryOnRequest) {
  for (const char* option : {"--history", "--json"}) {
    EXPECT_THAT(Run({"logs", "small/s0", option}).out, HasSubstr("granted"));
    EXPECT_THAT(Run({"logs", "small/s0", "-f", option}).err,
                HasSubstr("--follow: can't be combined with --history or --json"));
  }
  EXPECT_TRUE(asked_.empty());
}

TEST_F(LogsTest, FollowsOnlyPrograms) {
  is_program_ = false;
  EXPECT_THAT(Run({"logs", "small/s0"}).out, HasSubstr("granted"));
  EXPECT_EQ(
      Run({"logs", "small/s0", "-f"}).err,
      "error: --follow: small/s0 isn't a run of a program, which alone writes a log; expected "
      "one\n");
}

}  // namespace
}  // namespace ablate::client
