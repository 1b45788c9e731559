// `wait`, `watch` and `submit --wait`: exit codes, progress, and servers that come and go.
#include "absl/strings/str_split.h"
#include "client/context.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class WaitTest : public ClientTest {
 protected:
  using Write = std::function<bool(const v1::ExperimentEvent&)>;

  WaitTest() {
    answers_.get = [this](const v1::GetExperimentRequest&, v1::Experiment* experiment) {
      *experiment = experiment_;
      return absl::OkStatus();
    };
    answers_.watch = [this](const v1::WatchExperimentRequest& request, const Write& write) {
      requests_.push_back(request);
      return watch_(request, write);
    };
    experiment_.set_name("experiments/small-1a2b");
    experiment_.set_state(v1::ExperimentState::ACTIVE);
    StartServer();
  }

  // Ends the experiment as soon as it is watched.
  void EndWith(v1::ExperimentState::Value state, const v1::RunCounts& counts) {
    watch_ = [this, state, counts](const v1::WatchExperimentRequest&, const Write& write) {
      write(Event("pre-s1", v1::RunState::RUNNING, "1"));
      write(Event("pre-s1", v1::RunState::DONE, "2"));
      experiment_.set_state(state);
      *experiment_.mutable_counts() = counts;
      return absl::OkStatus();
    };
  }

  static v1::ExperimentEvent Event(const std::string& cell, v1::RunState::Value state,
                                   const std::string& token) {
    v1::ExperimentEvent event;
    event.set_cell(cell);
    event.set_run("runs/r");
    event.set_state(state);
    event.set_token(token);
    event.set_steps(100);
    (*event.mutable_last())["eval/loss"] = 2.5;
    return event;
  }

  static v1::RunCounts Counts(uint32_t done, uint32_t diverged, uint32_t failed,
                              uint32_t cancelled) {
    v1::RunCounts counts;
    counts.set_done(done);
    counts.set_diverged(diverged);
    counts.set_failed(failed);
    counts.set_cancelled(cancelled);
    return counts;
  }

  v1::Experiment experiment_;
  std::function<absl::Status(const v1::WatchExperimentRequest&, const Write&)> watch_;
  std::vector<v1::WatchExperimentRequest> requests_;
};

TEST_F(WaitTest, ExitsByHowTheRunsEnded) {
  EndWith(v1::ExperimentState::ENDED, Counts(3, 0, 0, 0));
  const Outcome done = Run({"wait", "small"});
  EXPECT_EQ(done.code, kSuccess);
  EXPECT_EQ(done.out, "");
  EXPECT_EQ(done.err, "small-1a2b: 3 done\n");

  experiment_.set_state(v1::ExperimentState::ACTIVE);
  EndWith(v1::ExperimentState::ENDED, Counts(3, 2, 0, 0));
  EXPECT_EQ(Run({"wait", "small"}).code, kSuccess);

  experiment_.set_state(v1::ExperimentState::ACTIVE);
  EndWith(v1::ExperimentState::ENDED, Counts(2, 0, 1, 0));
  const Outcome failed = Run({"wait", "small"});
  EXPECT_EQ(failed.code, kFailure);
  EXPECT_EQ(failed.err,
            "small-1a2b: 2 done, 1 failed; `ablate runs small-1a2b` shows why, `ablate logs "
            "small-1a2b/CELL` what happened\n");

  experiment_.set_state(v1::ExperimentState::ACTIVE);
  EndWith(v1::ExperimentState::CANCELLED, Counts(2, 0, 0, 1));
  EXPECT_EQ(Run({"wait", "small"}).code, kCancelled);
}

TEST_F(WaitTest, DoesNotWatchWhatHasEnded) {
  experiment_.set_state(v1::ExperimentState::CANCELLED);
  const Outcome outcome = Run({"wait", "small", "--json"});
  EXPECT_EQ(outcome.code, kCancelled);
  EXPECT_THAT(outcome.out, HasSubstr("\"state\": \"CANCELLED\""));
  EXPECT_TRUE(requests_.empty());
}

TEST_F(WaitTest, GoesOnWhereItWasWhenTheServerComesBack) {
  watch_ = [this](const v1::WatchExperimentRequest&, const Write& write) {
    if (requests_.size() == 1) {
      write(Event("pre-s1", v1::RunState::RUNNING, "seven"));
      return absl::UnavailableError("going down");
    }
    if (requests_.size() < 5) return absl::UnavailableError("not up yet");
    experiment_.set_state(v1::ExperimentState::ENDED);
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"wait", "small"}).code, kSuccess);
  ASSERT_EQ(requests_.size(), 5u);
  EXPECT_EQ(requests_[0].token(), "");
  EXPECT_EQ(requests_[4].token(), "seven");
  EXPECT_THAT(requests_[0].keys(), ElementsAre("train/loss", "eval/loss"));
}

// gRPC itself answers so while a server shuts down, without our details.
TEST_F(WaitTest, ComesBackWhenAServerThatShutsDownCancelsIt) {
  watch_ = [this](const v1::WatchExperimentRequest&, const Write& write) {
    if (requests_.size() == 1) write(Event("pre-s1", v1::RunState::RUNNING, "seven"));
    if (requests_.size() < 3) return absl::CancelledError("");
    experiment_.set_state(v1::ExperimentState::ENDED);
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"wait", "small"}).code, kSuccess);
  ASSERT_EQ(requests_.size(), 3u);
  EXPECT_EQ(requests_[2].token(), "seven");
}

// Or whatever is between, which may say more.
TEST_F(WaitTest, ComesBackWhenSomebodyElseCancelsIt) {
  watch_ = [this](const v1::WatchExperimentRequest&, const Write& write) {
    if (requests_.size() == 1) write(Event("pre-s1", v1::RunState::RUNNING, "seven"));
    if (requests_.size() < 3) {
      absl::Status status = absl::CancelledError("upstream went away");
      status.SetPayload(kDetails, absl::Cord("details"));
      return status;
    }
    experiment_.set_state(v1::ExperimentState::ENDED);
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"wait", "small"}).code, kSuccess);
  ASSERT_EQ(requests_.size(), 3u);
  EXPECT_EQ(requests_[2].token(), "seven");
}

TEST_F(WaitTest, StartsOverWhenItsTokenIsTooOld) {
  watch_ = [this](const v1::WatchExperimentRequest& request, const Write& write) {
    if (requests_.size() == 1) {
      write(Event("pre-s1", v1::RunState::RUNNING, "old"));
      return absl::UnavailableError("going down");
    }
    if (!request.token().empty()) return absl::OutOfRangeError("list again");
    experiment_.set_state(v1::ExperimentState::ENDED);
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"wait", "small"}).code, kSuccess);
  ASSERT_EQ(requests_.size(), 3u);
  EXPECT_EQ(requests_[1].token(), "old");
  EXPECT_EQ(requests_[2].token(), "");
}

TEST_F(WaitTest, WatchesAgainWhenAWatchEndsBeforeTheExperiment) {
  watch_ = [this](const v1::WatchExperimentRequest&, const Write&) {
    if (requests_.size() == 3) experiment_.set_state(v1::ExperimentState::ENDED);
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"wait", "small"}).code, kSuccess);
  EXPECT_EQ(requests_.size(), 3u);
}

TEST_F(WaitTest, GivesUpAfterAMinute) {
  watch_ = [](const v1::WatchExperimentRequest&, const Write&) {
    return absl::UnavailableError("gone");
  };
  const Outcome outcome = Run({"wait", "small"});
  EXPECT_EQ(outcome.code, kNoServer);
  EXPECT_GE(slept_, absl::Seconds(60));
  EXPECT_LT(slept_, absl::Seconds(62));
}

TEST_F(WaitTest, GivesAServerThatWentAwayAMinuteHoweverQuietTheWatchWas) {
  watch_ = [this](const v1::WatchExperimentRequest&, const Write&) {
    if (requests_.size() == 1) now_ += absl::Seconds(120);
    if (requests_.size() <= 3) return absl::UnavailableError("going down");
    experiment_.set_state(v1::ExperimentState::ENDED);
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"wait", "small"}).code, kSuccess);
  EXPECT_EQ(requests_.size(), 4u);
}

TEST_F(WaitTest, GivesEachRestartAMinuteOfItsOwn) {
  watch_ = [this](const v1::WatchExperimentRequest&, const Write& write) {
    if (requests_.size() == 8) experiment_.set_state(v1::ExperimentState::ENDED);
    if (requests_.size() == 8) return absl::OkStatus();
    now_ += absl::Seconds(25);
    if (requests_.size() % 2 == 0) write(Event("pre-s1", v1::RunState::RUNNING, "1"));
    return absl::UnavailableError("going down");
  };
  EXPECT_EQ(Run({"wait", "small"}).code, kSuccess);
}

TEST_F(WaitTest, ReportsOtherErrorsAtOnce) {
  watch_ = [](const v1::WatchExperimentRequest&, const Write&) {
    return absl::NotFoundError("it was removed");
  };
  const Outcome outcome = Run({"wait", "small"});
  EXPECT_EQ(outcome.code, kWaitFailed) << "1 would be a run that FAILED";
  EXPECT_EQ(outcome.err, "error: it was removed\n");
  answers_.get = [](const v1::GetExperimentRequest&, v1::Experiment*) {
    return absl::NotFoundError("there is none");
  };
  EXPECT_EQ(Run({"wait", "small"}).code, kWaitFailed);
}

TEST_F(WaitTest, WaitsForRoomForItsWatch) {
  watch_ = [this](const v1::WatchExperimentRequest&, const Write&) {
    if (requests_.size() < 3) return absl::ResourceExhaustedError("too many watches");
    experiment_.set_state(v1::ExperimentState::ENDED);
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"wait", "small"}).code, kSuccess);
  EXPECT_EQ(requests_.size(), 3u);
}

TEST_F(WaitTest, WatchPrintsAPlainLineForEachCellThatEnds) {
  EndWith(v1::ExperimentState::ENDED, Counts(1, 0, 1, 0));
  const Outcome outcome = Run({"watch", "small"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_THAT(outcome.out, ::testing::StartsWith("pre-s1  DONE  eval/loss 2.5\n"));
  EXPECT_THAT(outcome.err, ::testing::StartsWith("small-1a2b: 1 done, 1 failed;"));
}

TEST_F(WaitTest, WatchRewritesALineOnATerminal) {
  EndWith(v1::ExperimentState::ENDED, Counts(1, 0, 0, 0));
  console_.out_is_terminal = true;
  const Outcome outcome = Run({"watch", "small"});
  EXPECT_THAT(outcome.out, ::testing::StartsWith("\r\x1b[Ksmall-1a2b  "));
  EXPECT_THAT(outcome.out, EndsWith("\n"));
}

TEST_F(WaitTest, WatchPrintsEventsAsJsonLines) {
  EndWith(v1::ExperimentState::ENDED, Counts(1, 0, 0, 0));
  const Outcome outcome = Run({"watch", "small", "--json"});
  const std::vector<std::string> lines = absl::StrSplit(outcome.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u);
  v1::ExperimentEvent event;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(lines[1], &event).ok());
  EXPECT_EQ(event.cell(), "pre-s1");
  EXPECT_EQ(event.state(), v1::RunState::DONE);
}

TEST_F(WaitTest, SubmitWaitsWithTheSameExitCodes) {
  answers_.create = [this](const v1::CreateExperimentRequest&,
                           v1::CreateExperimentResponse* response) {
    *response->mutable_experiment() = experiment_;
    return absl::OkStatus();
  };
  EndWith(v1::ExperimentState::ENDED, Counts(0, 0, 1, 0));
  const std::string text = "name: a\nbase: {task: {legacy_recall: {}}}\n";
  const Outcome outcome = Run({"submit", "-", "--wait", "--json"}, text);
  EXPECT_EQ(outcome.code, kFailure);
  v1::CreateExperimentResponse response;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(outcome.out, &response).ok());
  EXPECT_EQ(response.experiment().name(), "experiments/small-1a2b");
  EXPECT_THAT(outcome.err, HasSubstr("pre-s1  DONE"));
  EXPECT_THAT(outcome.err, HasSubstr("small-1a2b: 1 failed"));
}

}  // namespace
}  // namespace ablate::client
