// Tests `wait`, `watch` and `submit --wait`: exit codes, progress, and servers that come and go.
#include "absl/strings/str_cat.h"
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
    watch_ = [this, state, counts](const v1::WatchExperimentRequest& request, const Write& write) {
      if (request.snapshots()) {
        write(Snapshot(.5));
        v1::ExperimentEvent last = Snapshot(1);
        *last.mutable_counts() = counts;
        write(last);
      } else {
        write(Event("pre-s1", v1::RunState::RUNNING, "1"));
        write(Event("pre-s1", v1::RunState::DONE, "2"));
      }
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
  static v1::ExperimentEvent Snapshot(double fraction) {
    v1::ExperimentEvent event;
    event.mutable_snapshot()->set_fraction(fraction);
    v1::CellValue* newest = event.mutable_snapshot()->mutable_newest();
    newest->set_cell("pre-s1");
    newest->set_key("eval/loss");
    newest->set_value(2.5);
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
  const struct {
    v1::ExperimentState::Value state;
    v1::RunCounts counts;
    int code;
    const char* message;
  } kCases[] = {
      {v1::ExperimentState::ENDED, Counts(3, 0, 0, 0), kSuccess, "3 done\n"},
      {v1::ExperimentState::ENDED, Counts(3, 2, 0, 0), kSuccess, "3 done, 2 diverged\n"},
      {v1::ExperimentState::ENDED, Counts(2, 0, 1, 0), kFailure,
       "2 done, 1 failed; `ablate runs small-1a2b` shows why, `ablate logs small-1a2b/CELL` the "
       "history\n"},
      {v1::ExperimentState::CANCELLED, Counts(2, 0, 0, 1), kCancelled, "2 done, 1 cancelled\n"},
  };
  for (const auto& [state, counts, code, message] : kCases) {
    experiment_.set_state(v1::ExperimentState::ACTIVE);
    EndWith(state, counts);
    const Outcome outcome = Run({"wait", "small"});
    EXPECT_EQ(outcome.code, code) << message;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, absl::StrCat("small-1a2b: ", message));
  }
}

TEST_F(WaitTest, PrintsWhyTheServerCancelled) {
  experiment_.set_state(v1::ExperimentState::CANCELLED);
  *experiment_.mutable_counts() = Counts(0, 0, 1, 2);
  experiment_.set_why_cancelled("1 run failed; limits.failures is 1");
  const Outcome outcome = Run({"wait", "small"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_THAT(outcome.err, HasSubstr("small-1a2b: 1 failed, 2 cancelled; CANCELLED: 1 run failed; "
                                     "limits.failures is 1; `ablate runs"));
}

TEST_F(WaitTest, PrintsTheLastLinesOfAFailedProgram) {
  EndWith(v1::ExperimentState::ENDED, Counts(2, 0, 1, 0));
  experiment_.mutable_spec()->mutable_base()->mutable_program();
  answers_.runs = [](const v1::ListRunsRequest& request, v1::ListRunsResponse* response) {
    EXPECT_EQ(request.filter(), "state = failed");
    v1::RunRow* row = response->add_rows();
    row->set_cell("pre-s1");
    row->set_experiment("experiments/small-1a2b");
    row->set_failure("exit code 1\n1\n2\n3\n4\n\x1b[2J5\nValueError: bad\n");
    return absl::OkStatus();
  };
  const Outcome outcome = Run({"wait", "small"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err,
            "failed: pre-s1: exit code 1\n  2\n  3\n  4\n  \\x1b[2J5\n  ValueError: bad\n"
            "small-1a2b: 2 done, 1 failed; `ablate runs small-1a2b` shows why, `ablate logs "
            "small-1a2b/CELL` the log\n");
  answers_.runs = nullptr;
  EXPECT_THAT(Run({"wait", "small"}).err, ::testing::StartsWith("small-1a2b: 2 done"));
}

TEST_F(WaitTest, DoesNotWatchWhatHasEnded) {
  experiment_.set_state(v1::ExperimentState::CANCELLED);
  const Outcome outcome = Run({"wait", "small", "--json"});
  EXPECT_EQ(outcome.code, kCancelled);
  EXPECT_THAT(outcome.out, HasSubstr("\"state\": \"CANCELLED\""));
  EXPECT_TRUE(requests_.empty());
}

TEST_F(WaitTest, GoesOnWhereItWasAfterWhatPasses) {
  // With details: whatever is between, which may say more than gRPC itself, which cancels without
  // ours while a server shuts down.
  absl::Status between = absl::CancelledError("upstream went away");
  between.SetPayload(kDetails, absl::Cord("details"));
  for (const absl::Status& passing :
       {absl::UnavailableError("going down"), absl::CancelledError(""), between,
        absl::ResourceExhaustedError("too many watches"), absl::OkStatus()}) {
    SCOPED_TRACE(passing.ToString());
    requests_.clear();
    experiment_.set_state(v1::ExperimentState::ACTIVE);
    watch_ = [&](const v1::WatchExperimentRequest&, const Write& write) {
      if (requests_.size() == 1) write(Event("pre-s1", v1::RunState::RUNNING, "seven"));
      if (requests_.size() < 5) return passing;
      experiment_.set_state(v1::ExperimentState::ENDED);
      return absl::OkStatus();
    };
    EXPECT_EQ(Run({"watch", "small", "--json"}).code, kSuccess);
    ASSERT_EQ(requests_.size(), 5u);
    EXPECT_EQ(requests_[0].token(), "");
    EXPECT_EQ(requests_[4].token(), "seven");
    EXPECT_THAT(requests_[0].keys(), ElementsAre("train/loss", "eval/loss"));
  }
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
  EXPECT_EQ(Run({"watch", "small", "--json"}).code, kSuccess);
  ASSERT_EQ(requests_.size(), 3u);
  EXPECT_EQ(requests_[1].token(), "old");
  EXPECT_EQ(requests_[2].token(), "");
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

TEST_F(WaitTest, WatchPrintsPlainLinesElsewhere) {
  EndWith(v1::ExperimentState::ENDED, Counts(1, 0, 1, 0));
  const Outcome outcome = Run({"watch", "small"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_THAT(outcome.out,
              ::testing::StartsWith("small-1a2b  2/2 ended, 1 failed   eval/loss 2.5 of pre-s1\n"));
  EXPECT_THAT(outcome.err, ::testing::StartsWith("small-1a2b: 1 done, 1 failed;"));
}

TEST_F(WaitTest, WatchPrintsPlainLinesOnADumbTerminal) {
  EndWith(v1::ExperimentState::ENDED, Counts(1, 0, 0, 0));
  console_.out_is_terminal = true;
  console_.dumb = true;
  EXPECT_THAT(Run({"watch", "small"}).out, ::testing::StartsWith("small-1a2b  1/1 ended"));
}

TEST_F(WaitTest, WatchDrawsAScreenAndLeavesItsEndBehind) {
  EndWith(v1::ExperimentState::ENDED, Counts(1, 0, 0, 0));
  answers_.compare = [](const v1::CompareRequest&, v1::Comparison* comparison) {
    comparison->set_key("eval/loss");
    comparison->mutable_verdict()->set_text("Nothing to compare.");
    v1::ComparisonRow* row = comparison->add_rows();
    row->set_label("base");
    row->set_mean(2.5);
    row->set_n(1);
    return absl::OkStatus();
  };
  console_.out_is_terminal = true;
  const Outcome outcome = Run({"watch", "small"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_THAT(outcome.out, ::testing::StartsWith("\x1b[?1049h"));
  const std::string end = outcome.out.substr(outcome.out.find("\x1b[?1049l"));
  EXPECT_THAT(end, HasSubstr("1 of 1 ended\n\neval/loss\nsetting   mean  n\nbase     2.500  1\n"));
  EXPECT_THAT(end, EndsWith("\n\nNothing to compare.\n"));
  EXPECT_EQ(outcome.err, "small-1a2b: 1 done\n");
}

TEST_F(WaitTest, AsksForNothingThatASnapshotHas) {
  EndWith(v1::ExperimentState::ENDED, Counts(1, 0, 0, 0));
  answers_.runs = nullptr;
  answers_.workers = nullptr;
  answers_.query = nullptr;
  for (const bool live : {false, true}) {
    SCOPED_TRACE(live);
    experiment_.set_state(v1::ExperimentState::ACTIVE);
    console_.out_is_terminal = live;
    EXPECT_EQ(Run({"watch", "small"}).code, kSuccess);
    EXPECT_TRUE(requests_.back().snapshots());
    EXPECT_EQ(requests_.back().token(), "");
  }
}

TEST_F(WaitTest, WatchShowsTheLastStateOfAnExperimentThatHasEnded) {
  EndWith(v1::ExperimentState::CANCELLED, Counts(1, 0, 0, 1));
  watch_ = [](const v1::WatchExperimentRequest&, const Write& write) {
    v1::ExperimentEvent event = Snapshot(1);
    v1::SettingMean* setting = event.mutable_snapshot()->add_settings();
    setting->set_mean(2.5);
    setting->set_n(1);
    setting->set_cells(2);
    write(event);
    return absl::OkStatus();
  };
  experiment_.set_state(v1::ExperimentState::CANCELLED);
  console_.out_is_terminal = true;
  EXPECT_THAT(Run({"watch", "small"}).out, HasSubstr("base     2.500  1/2\n"));
}

TEST_F(WaitTest, WatchExitsAsWaitDoes) {
  for (const v1::RunCounts& counts : {Counts(1, 0, 0, 0), Counts(1, 0, 1, 0), Counts(1, 0, 0, 1)}) {
    for (const auto state : {v1::ExperimentState::ENDED, v1::ExperimentState::CANCELLED}) {
      experiment_.set_state(v1::ExperimentState::ACTIVE);
      EndWith(state, counts);
      const int code = Run({"wait", "small"}).code;
      for (const std::vector<std::string>& options : {std::vector<std::string>{}, {"--json"}}) {
        experiment_.set_state(v1::ExperimentState::ACTIVE);
        EXPECT_EQ(Run(With({"watch", "small"}, options)).code, code);
      }
    }
  }
  answers_.get = [](const v1::GetExperimentRequest&, v1::Experiment*) {
    return absl::NotFoundError("there is none");
  };
  EXPECT_EQ(Run({"watch", "small"}).code, kWaitFailed);
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
  EXPECT_THAT(outcome.err, HasSubstr("small-1a2b  1/1 ended, 1 failed"));
  EXPECT_THAT(outcome.err, HasSubstr("small-1a2b: 1 failed"));
}

}  // namespace
}  // namespace ablate::client
