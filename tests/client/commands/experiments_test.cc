// Tests `ls`, `show`, `runs`, `cancel`, `rm`, `logs` and `workers` against a server of the test's
// own.
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/context.h"
#include "client/output/format.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class ExperimentsTest : public ClientTest {
 protected:
  ExperimentsTest() {
    answers_.get = [this](const v1::GetExperimentRequest& request, v1::Experiment* experiment) {
      names_.push_back(request.name());
      if (request.name() == "experiments/x") return absl::NotFoundError("no experiment \"x\"");
      const bool is_small = absl::StartsWith(request.name(), "experiments/s");
      experiment->set_name(is_small ? "experiments/small-1a2b" : request.name() + "-full");
      experiment->set_state(v1::ExperimentState::ACTIVE);
      experiment->mutable_create_time()->set_seconds(absl::ToUnixSeconds(now_) - 120);
      experiment->mutable_counts()->set_done(2);
      experiment->mutable_counts()->set_failed(1);
      experiment->mutable_spec()->set_name(is_small ? "small" : "whole");
      experiment->mutable_spec()->set_question("Is it\nso?\x1b[2J");
      experiment->mutable_spec()->add_axes()->set_name("norm");
      return absl::OkStatus();
    };
    // Three cells on two pages.
    answers_.runs = [this](const v1::ListRunsRequest& request, v1::ListRunsResponse* response) {
      names_.push_back(request.experiment());
      const int first = request.page_token().empty() ? 0 : 2;
      const int last = first == 0 ? 2 : 3;
      for (int i = first; i < last; ++i) AddRow(i, response);
      if (first == 0) response->set_next_page_token("more");
      return absl::OkStatus();
    };
    answers_.remove = [this](const v1::DeleteExperimentRequest& request,
                             v1::DeleteExperimentResponse* response) {
      if (request.validate_only()) {
        previewed_.push_back(request.name());
      } else {
        asked_.push_back(request.name());
      }
      *response = deletion_;
      return result_;
    };
    answers_.run = [this](const v1::GetRunRequest&, v1::Run*) { return run_; };
    deletion_.set_runs(24);
    deletion_.mutable_device_time()->set_seconds(4 * 3600);
    deletion_.set_bytes(14'000'000);
    StartServer();
  }

  static void AddRow(int i, v1::ListRunsResponse* response) {
    v1::RunRow* row = response->add_rows();
    row->set_cell(absl::StrCat(i == 1 ? "none" : "pre", "-s", i));
    (*row->mutable_labels())["norm"] = i == 1 ? "none" : "pre";
    row->set_seed(i);
    row->set_run(absl::StrCat("runs/r", i));
    row->set_state(i == 2 ? v1::RunState::FAILED : v1::RunState::DONE);
    row->set_step(i == 2 ? 40 : 100);
    row->set_steps(100);
    if (i == 2) row->set_failure("out of memory");
    v1::Summary* summary = row->add_summaries();
    summary->set_key("eval/loss");
    summary->set_last(2.5 + i);
  }

  std::vector<std::string> names_;
  std::vector<std::string> previewed_;  // of removals
  v1::DeleteExperimentResponse deletion_;
  absl::Status run_;  // the answer to GetRun
};

TEST_F(ExperimentsTest, CountsARunAsDivergedWhoseLastValueIsNotFinite) {
  answers_.runs = [](const v1::ListRunsRequest&, v1::ListRunsResponse* response) {
    for (int i = 0; i < 3; ++i) {
      AddRow(0, response);
      response->mutable_rows(i)->set_run(absl::StrCat("runs/r", i));
      v1::Summary* summary = response->mutable_rows(i)->mutable_summaries(0);
      summary->set_count(2);
      summary->set_nonfinite(i == 0 ? 0 : 1);
      if (i == 2) summary->clear_last();
    }
    return absl::OkStatus();
  };
  const Outcome outcome = Run({"show", "small"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_THAT(outcome.out, testing::ContainsRegex("pre +2\\.5 +2 +1"));
}

TEST_F(ExperimentsTest, SaysWhatTakesACell) {
  for (const std::string command : {"show", "watch"}) {
    const Outcome outcome = Run({command, "small/pre-s2"});
    EXPECT_EQ(outcome.code, command == "watch" ? kWaitFailed : kFailure);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err,
              "error: small/pre-s2 is a cell or setting of small; expected an experiment. `ablate "
              "logs small/pre-s2` and `ablate metrics small/pre-s2` take a cell.\n");
  }
  EXPECT_EQ(
      Run({"show", "runs/1a2b"}).err,
      "error: runs/1a2b is a run; expected an experiment. `ablate logs runs/1a2b` takes a run.\n");
  EXPECT_TRUE(names_.empty()) << "no server has to say so";
}

TEST_F(ExperimentsTest, ShowsQuestionStateMeansAndWhatToDoNext) {
  const Outcome outcome = Run({"show", "small"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.out,
            "small-1a2b   ACTIVE   2 done, 1 failed   created 2 min ago\n"
            "Is it so?\\x1b[2J\n"
            "\n"
            "norm  mean eval/loss  n  diverged  failed\n"
            "pre              2.5  1         0       1\n"
            "none             3.5  1         0       0\n"
            "\n"
            "failed: pre-s2: out of memory\n"
            "\n"
            "next:\n"
            "  ablate logs small-1a2b/pre-s2\n"
            "  ablate watch small-1a2b\n"
            "  ablate compare small-1a2b\n"
            "  ablate report small-1a2b -o report.html\n"
            "  ablate runs small-1a2b\n"
            "  ablate metrics small-1a2b --key eval/loss --csv\n"
            "  ablate artifact get small-1a2b/pre-s0 checkpoint -o model.safetensors\n");
  EXPECT_THAT(names_,
              ElementsAre("experiments/small", "experiments/small-1a2b", "experiments/small-1a2b"));
}

TEST_F(ExperimentsTest, NamesTheRemedyWhenAProgramLogsNoPrimaryMetric) {
  const auto get = answers_.get;
  answers_.get = [get](const v1::GetExperimentRequest& request, v1::Experiment* experiment) {
    experiment->mutable_spec()->mutable_base()->mutable_program();
    experiment->mutable_spec()->mutable_report()->set_primary("val_loss");
    return get(request, experiment);
  };
  const Outcome outcome = Run({"show", "small"});
  EXPECT_THAT(outcome.out,
              HasSubstr("\nNo run has val_loss, the primary metric; they have eval/loss. "
                        "Write one of them as report.primary into the file and submit it again, "
                        "or compare with --key KEY\n"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("ablate compare")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("--key val_loss")));
}

TEST_F(ExperimentsTest, SaysThatAProgramHasLoggedNothing) {
  const auto get = answers_.get;
  answers_.get = [get](const v1::GetExperimentRequest& request, v1::Experiment* experiment) {
    experiment->mutable_spec()->mutable_base()->mutable_program();
    return get(request, experiment);
  };
  answers_.runs = [](const v1::ListRunsRequest&, v1::ListRunsResponse* response) {
    AddRow(0, response);
    response->mutable_rows(0)->clear_summaries();
    return absl::OkStatus();
  };
  const Outcome outcome = Run({"show", "small"});
  EXPECT_THAT(outcome.out, HasSubstr("\nNo run has logged a metric\n"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("ablate compare")));
}

TEST_F(ExperimentsTest, TakesResourceNamesIdsAndPrefixes) {
  for (const char* name : {"experiments/small-1a2b", "small-1a2b", "sm"}) {
    EXPECT_EQ(Run({"show", name, "--json"}).code, kSuccess);
  }
  EXPECT_THAT(names_,
              ElementsAre("experiments/small-1a2b", "experiments/small-1a2b", "experiments/sm"));
}

TEST_F(ExperimentsTest, ListsACellALine) {
  const Outcome outcome = Run({"runs", "small"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.out,
            "cell     run  state      step  eval/loss  failure\n"
            "pre-s0   r0   DONE    100/100        2.5\n"
            "none-s1  r1   DONE    100/100        3.5\n"
            "pre-s2   r2   FAILED   40/100        4.5  out of memory\n");
}

TEST_F(ExperimentsTest, MergesThePagesOfRunsInJson) {
  const Outcome outcome = Run({"runs", "small", "--json"});
  v1::ListRunsResponse runs;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(outcome.out, &runs).ok());
  ASSERT_EQ(runs.rows_size(), 3);
  EXPECT_EQ(runs.rows(2).cell(), "pre-s2");
  EXPECT_EQ(runs.rows(1).labels().at("norm"), "none");
  EXPECT_EQ(runs.next_page_token(), "");
  EXPECT_THAT(outcome.out, HasSubstr("\"rows\": ["));
}

TEST_F(ExperimentsTest, ListsExperimentsUpToTheLimit) {
  std::vector<uint32_t> sizes;
  answers_.list = [&](const v1::ListExperimentsRequest& request,
                      v1::ListExperimentsResponse* response) {
    sizes.push_back(request.page_size());
    const int first = request.page_token().empty() ? 0 : std::stoi(request.page_token());
    const int last = std::min<int>(first + std::min<uint32_t>(request.page_size(), 2), 5);
    for (int i = first; i < last; ++i) {
      v1::Experiment* experiment = response->add_experiments();
      experiment->set_name(absl::StrCat("experiments/e", i));
      experiment->set_state(v1::ExperimentState::ENDED);
      experiment->mutable_create_time()->set_seconds(absl::ToUnixSeconds(now_) - 7200);
      experiment->mutable_counts()->set_done(1000);
      experiment->mutable_spec()->set_question("why?");
    }
    if (last < 5) response->set_next_page_token(std::to_string(last));
    return absl::OkStatus();
  };
  const Outcome three = Run({"ls", "-n", "3"});
  EXPECT_EQ(three.out,
            "experiment  state  runs        created  question\n"
            "e0          ENDED  1,000 done  2 h ago  why?\n"
            "e1          ENDED  1,000 done  2 h ago  why?\n"
            "e2          ENDED  1,000 done  2 h ago  why?\n");
  EXPECT_EQ(three.err, "note: more experiments exist; --limit 0 lists all\n");
  EXPECT_THAT(sizes, ElementsAre(3, 1));

  const Outcome all = Run({"ls", "--limit", "0", "--json"});
  v1::ListExperimentsResponse list;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(all.out, &list).ok());
  EXPECT_EQ(list.experiments_size(), 5);
  EXPECT_EQ(list.next_page_token(), "");
}

TEST_F(ExperimentsTest, SaysWhoseTheyAreWhereSeveralHaveSome) {
  answers_.list = [](const v1::ListExperimentsRequest& request,
                     v1::ListExperimentsResponse* response) {
    for (const char* owner : {"mia", "bob"}) {
      if (!request.owner().empty() && request.owner() != absl::StrCat("users/", owner)) continue;
      v1::Experiment* experiment = response->add_experiments();
      experiment->set_name(absl::StrCat("experiments/", owner, "s"));
      experiment->set_state(v1::ExperimentState::ENDED);
      experiment->set_owner(owner);
      experiment->set_private_(experiment->owner() == "mia");
    }
    return absl::OkStatus();
  };
  answers_.who = [](const v1::WhoAmIRequest&, v1::WhoAmIResponse* response) {
    response->set_user("users/bob");
    return absl::OkStatus();
  };
  EXPECT_THAT(Run({"ls"}).out, AllOf(HasSubstr("experiment  owner         state"),
                                     HasSubstr("mias        mia, private  ENDED"),
                                     HasSubstr("bobs        bob           ENDED")));
  const std::string mine = Run({"ls", "--mine"}).out;
  EXPECT_THAT(mine, AllOf(HasSubstr("bobs"), Not(HasSubstr("owner")), Not(HasSubstr("mias"))));
  EXPECT_THAT(Run({"ls", "--owner", "users/mia"}).out, HasSubstr("mia, private"));
  EXPECT_EQ(Run({"ls", "--owner", "users/rex"}).err, "rex has no experiments\n");
}

TEST_F(ExperimentsTest, SaysThatThereAreNoExperiments) {
  answers_.list = [](const v1::ListExperimentsRequest&, v1::ListExperimentsResponse*) {
    return absl::OkStatus();
  };
  const Outcome outcome = Run({"ls"});
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "no experiments: `ablate submit FILE` creates one, --archived lists archived ones\n");
  EXPECT_EQ(Run({"ls", "--archived"}).err,
            "no experiments yet: `ablate submit FILE` creates one\n");
  EXPECT_THAT(Run({"ls", "--json"}).out, HasSubstr("\"experiments\": []"));
}

TEST_F(ExperimentsTest, FitsTablesToTheTerminal) {
  console_.out_is_terminal = true;
  console_.width = 50;
  EXPECT_THAT(Run({"runs", "small"}).out, HasSubstr("…\n"));
}

TEST_F(ExperimentsTest, CancelsSeveralAndFailsIfOneCantBe) {
  answers_.cancel = [](const v1::CancelExperimentRequest& request, v1::Experiment* experiment) {
    if (request.name() == "experiments/b-full") {
      return absl::NotFoundError("no experiment \"b\"; did you mean \"bb\"?");
    }
    experiment->set_name(request.name());
    experiment->mutable_counts()->set_cancelled(3);
    return absl::OkStatus();
  };
  const Outcome outcome = Run({"cancel", "a", "b", "c"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err,
            "a-full: 3 cancelled\nerror: no experiment \"b\"; did you mean \"bb\"?\n"
            "c-full: 3 cancelled\n");
}

TEST_F(ExperimentsTest, TakesAFullNameAsItIsWhenItCancelsOrRemoves) {
  answers_.cancel = [this](const v1::CancelExperimentRequest& request, v1::Experiment* experiment) {
    asked_.push_back(request.name());
    experiment->set_name(request.name());
    return absl::OkStatus();
  };
  result_ = absl::NotFoundError("there is no experiment \"small\"");
  EXPECT_EQ(Run({"cancel", "experiments/small"}).code, kSuccess);
  EXPECT_EQ(Run({"rm", "experiments/small", "--yes"}).code, kFailure);
  EXPECT_THAT(asked_, ElementsAre("experiments/small", "experiments/small"));
  EXPECT_THAT(names_, ::testing::IsEmpty());  // nothing was looked up
}

TEST_F(ExperimentsTest, SaysWhichOfSeveralExperimentsOfANameIsMeant) {
  answers_.newest_of = "small small-1a2b";
  const Outcome shown = Run({"show", "small"});
  EXPECT_EQ(shown.code, kSuccess);
  EXPECT_EQ(shown.err, "note: several experiments are named small; using the newest, small-1a2b\n");
}

TEST_F(ExperimentsTest, ChangesNoneOfSeveralExperimentsOfAName) {
  answers_.newest_of = "small small-1a2b";
  for (const auto& command : {std::vector<std::string>{"cancel", "small"}, {"rm", "small", "-y"}}) {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.code, kFailure);
    EXPECT_EQ(outcome.err,
              "error: \"small\" is the name of several experiments, the newest small-1a2b; "
              "expected a whole ID. `ablate ls --archived` lists the IDs.\n");
  }
}

TEST_F(ExperimentsTest, RemovesNothingWithoutATerminalUnlessToldTo) {
  const Outcome outcome = Run({"rm", "small-1a2b"});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_EQ(outcome.err,
            "error: ablate rm: standard input is not a terminal, so rm can't ask; add --yes\n");
  EXPECT_THAT(names_, ::testing::IsEmpty());
}

TEST_F(ExperimentsTest, RemovesWholeNamesAloneWhenItDoesNotAsk) {
  const Outcome outcome = Run({"rm", "sma", "small", "small-1a2b", "experiments/y", "--yes"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err,
            "error: sma is a prefix of small-1a2b; expected a whole ID or name with --yes\n");
  EXPECT_THAT(asked_, ::testing::IsEmpty()) << "nothing goes if a name is wrong";
  EXPECT_EQ(Run({"rm", "small", "small-1a2b", "experiments/y", "--yes"}).err,
            "removed small-1a2b: 24 runs, 4 h, 14 MB\nremoved y: 24 runs, 4 h, 14 MB\n");
  EXPECT_THAT(asked_, ElementsAre("experiments/small-1a2b", "experiments/y"));
  console_.in_is_terminal = true;
  EXPECT_EQ(Run({"rm", "sma", "--yes"}).code, kFailure);
  EXPECT_EQ(Run({"rm", "sma"}, "y\n").code, kSuccess) << "what goes was shown";
}

TEST_F(ExperimentsTest, RemovesSeveralAndGoesOnAfterAMistake) {
  console_.in_is_terminal = true;
  const Outcome outcome = Run({"rm", "a", "b", "--json"}, "y\n");
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.out, ToJson(deletion_) + ToJson(deletion_));
  EXPECT_THAT(asked_, ElementsAre("experiments/a-full", "experiments/b-full"));

  const Outcome some = Run({"rm", "x", "c"}, "y\n");
  EXPECT_EQ(some.code, kFailure);
  EXPECT_EQ(some.err,
            "error: no experiment \"x\"; `ablate ls` lists experiments\n"
            "c-full: 24 runs, 4 h, 14 MB\nremove? [y/N] removed c-full: 24 runs, 4 h, 14 MB\n");
}

TEST_F(ExperimentsTest, AsksBeforeItRemovesOnATerminal) {
  console_.in_is_terminal = true;
  const Outcome no = Run({"rm", "a"}, "\n");
  EXPECT_EQ(no.code, kFailure);
  EXPECT_EQ(no.err, "a-full: 24 runs, 4 h, 14 MB\nremove? [y/N] nothing was removed\n");
  EXPECT_TRUE(asked_.empty());
  EXPECT_EQ(Run({"rm", "a"}, "Yes\n").code, kSuccess);
  EXPECT_EQ(Run({"rm", "whole", "-y"}).code, kSuccess);
  EXPECT_THAT(asked_, ElementsAre("experiments/a-full", "experiments/whole-full"));
}

TEST_F(ExperimentsTest, PrintsWhatWouldBeRemovedInADryRun) {
  deletion_.set_analyses(2);
  deletion_.set_shared_runs(1);
  deletion_.add_shared_with("experiments/other-2b3c");
  deletion_.add_checkpoint_of("experiments/tuned-3c4d");
  deletion_.add_checkpoint_of("experiments/tuned-4d5e");
  const Outcome outcome = Run({"rm", "a", "--dry-run"});  // needs no terminal
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.out,
            "a-full: 24 runs, 2 analyses, 4 h, 14 MB\n"
            "  1 run stays for other experiments: other-2b3c\n"
            "  checkpoints stay that other experiments began with: tuned-3c4d, tuned-4d5e\n");
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(Run({"rm", "a-full", "--dry-run", "--json"}).out, ToJson(deletion_));
  EXPECT_THAT(asked_, ::testing::IsEmpty());
  EXPECT_EQ(Run({"rm", "experiments/a-full", "--yes"}).err, "removed " + outcome.out);
}

TEST_F(ExperimentsTest, NamesTheExtensionBeforeItRemoves) {
  answers_.sql = [](const v1::SqlRequest& request,
                    const std::function<bool(const v1::SqlRows&)>& write) {
    const std::string select = "SELECT experiment FROM experiments WHERE extends = ";
    v1::SqlRows rows;
    if (request.statement() == select + "'a-full'")
      rows.add_rows()->add_values()->set_text("a-9z9z");
    write(rows);
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"rm", "a", "--dry-run"}).out,
            "a-full: 24 runs, 4 h, 14 MB\n  a-9z9z extends it, and stays with all of its cells\n");
  EXPECT_THAT(Run({"rm", "a-full", "experiments/a-9z9z", "--dry-run"}).out,
              ::testing::Not(HasSubstr("extends it")));
}

TEST_F(ExperimentsTest, AsksAboutNothingThatCannotBeRemoved) {
  console_.in_is_terminal = true;
  result_ = absl::FailedPreconditionError("experiment 'a-full' is active");
  const Outcome outcome = Run({"rm", "a"}, "y\n");
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err, "error: experiment 'a-full' is active\n");
  EXPECT_THAT(previewed_, ElementsAre("experiments/a-full"));
  EXPECT_THAT(asked_, ::testing::IsEmpty());
}

TEST_F(ExperimentsTest, ShowsTheHistoryOfACellOrRun) {
  std::vector<std::string> runs;
  answers_.run_events = [&](const v1::ListRunEventsRequest& request,
                            v1::ListRunEventsResponse* response) {
    runs.push_back(request.run());
    v1::RunEvent* event = response->add_events();
    event->set_kind("granted");
    event->set_worker("workers/cpu-train");
    event = response->add_events();
    event->set_kind("failed");
    event->set_step(40);
    event->set_message("out of\nmemory");
    return absl::OkStatus();
  };
  const Outcome outcome = Run({"logs", "small/pre-s2"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("  granted     0  cpu-train\n"));
  EXPECT_THAT(outcome.out, EndsWith("  failed     40             out of memory\n"));
  EXPECT_EQ(Run({"logs", "runs/abc"}).code, kSuccess);
  EXPECT_EQ(Run({"logs", "abc"}).code, kSuccess);
  EXPECT_EQ(Run({"logs", "experiments/small/none-s1"}).code, kSuccess);
  EXPECT_THAT(runs, ElementsAre("runs/r2", "runs/abc", "runs/abc", "runs/r1"));
}

TEST_F(ExperimentsTest, NeedsOneCellForALog) {
  answers_.run_events = [](const v1::ListRunEventsRequest& request, v1::ListRunEventsResponse*) {
    EXPECT_EQ(request.run(), "runs/r1");
    return absl::OkStatus();
  };
  const Outcome outcome = Run({"logs", "small/pre"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err,
            "error: small/pre has 2 cells; expected one, such as pre-s0, pre-s2, or small/@best, "
            "the best of all\n");
  EXPECT_EQ(Run({"logs", "small/none"}).code, kSuccess) << "a setting of one cell";
  EXPECT_EQ(Run({"logs", "small/whatever"}).err,
            "error: no cell \"whatever\" in small; `ablate runs small` lists cells\n");
}

TEST_F(ExperimentsTest, SaysHowCellsAreNamed) {
  run_ = NotFound("nothing of that name", "RUN_NOT_FOUND");
  EXPECT_EQ(Run({"logs", "small"}).err,
            "error: small is an experiment; expected one of its cells, such as small-1a2b/pre-s0. "
            "`ablate runs small-1a2b` lists them.\n");
  EXPECT_EQ(Run({"logs", "x"}).err,
            "error: nothing of that name; no experiment has that name, either; expected EXP/CELL "
            "or runs/ID\n");
  EXPECT_EQ(Run({"logs", "runs/small"}).err, "error: nothing of that name\n");
  run_ = NotFound("there is no run left", "ARTIFACT_NOT_FOUND");
  EXPECT_EQ(Run({"logs", "small"}).err, "error: there is no run left\n") << "the reason counts";
}

TEST_F(ExperimentsTest, SaysWhatStalls) {
  answers_.get = [](const v1::GetExperimentRequest&, v1::Experiment* experiment) {
    experiment->set_name("experiments/small-1a2b");
    experiment->set_state(v1::ExperimentState::ACTIVE);
    experiment->set_stalled("disk full");
    return absl::OkStatus();
  };
  answers_.list = [this](const v1::ListExperimentsRequest&, v1::ListExperimentsResponse* list) {
    return answers_.get({}, list->add_experiments());
  };
  answers_.workers = [](const v1::ListWorkersRequest&, v1::ListWorkersResponse* response) {
    response->add_workers()->set_state(v1::WorkerState::BUSY);
    response->mutable_workers(0)->set_stalled("disk full");
    return absl::OkStatus();
  };
  EXPECT_THAT(Run({"show", "small"}).out, HasSubstr("small-1a2b   STALLED: disk full   "));
  EXPECT_THAT(Run({"ls"}).out, HasSubstr("small-1a2b  STALLED: disk full  "));
  EXPECT_THAT(Run({"workers"}).out, HasSubstr("STALLED: disk full"));
}

TEST_F(ExperimentsTest, SaysWhyTheServerCancelled) {
  answers_.get = [](const v1::GetExperimentRequest&, v1::Experiment* experiment) {
    experiment->set_name("experiments/small-1a2b");
    experiment->set_state(v1::ExperimentState::CANCELLED);
    experiment->set_why_cancelled("2 runs failed; limits.failures is 2");
    return absl::OkStatus();
  };
  EXPECT_THAT(Run({"show", "small"}).out,
              HasSubstr("small-1a2b   CANCELLED: 2 runs failed; limits.failures is 2   "));
}

TEST_F(ExperimentsTest, ListsWorkers) {
  answers_.workers = [this](const v1::ListWorkersRequest& request,
                            v1::ListWorkersResponse* response) {
    if (request.page_token().empty()) {
      response->set_next_page_token("more");
      return absl::OkStatus();
    }
    v1::Worker* worker = response->add_workers();
    worker->set_name("workers/cpu-train");
    worker->set_device("cpu, 2 lanes");
    worker->set_lanes(2);
    worker->set_role(v1::WorkerRole::train);
    worker->set_state(v1::WorkerState::BUSY);
    worker->add_runs("runs/a");
    worker->set_build("ablate 0.1.0");
    worker->mutable_attach_time()->set_seconds(absl::ToUnixSeconds(now_) - 30);
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"workers"}).out,
            "worker     role   state  device        lanes  runs  since     build\n"
            "cpu-train  train  BUSY   cpu, 2 lanes      2     1  30 s ago  ablate 0.1.0\n");
  EXPECT_THAT(Run({"workers", "--json"}).out, HasSubstr("\"state\": \"BUSY\""));
}

TEST_F(ExperimentsTest, ShowsTheUseOfAGpu) {
  uint32_t others = 1, watts = 0;
  answers_.workers = [&](const v1::ListWorkersRequest&, v1::ListWorkersResponse* response) {
    v1::Worker* worker = response->add_workers();
    worker->set_device("NVIDIA L4, 22 GiB, 4 lanes");
    worker->mutable_device_use()->set_utilization(62);
    worker->mutable_device_use()->set_used_bytes(10'000'000'000);
    worker->mutable_device_use()->set_others(others);
    worker->mutable_device_use()->set_watts(watts);
    worker->mutable_device_use()->set_ecc_errors(watts / 100);
    return absl::OkStatus();
  };
  EXPECT_THAT(Run({"workers"}).out,
              HasSubstr("NVIDIA L4, 22 GiB, 4 lanes; 62 % busy, 10 GB in use, 1 other program  "));
  others = 0;
  EXPECT_THAT(Run({"workers"}).out, HasSubstr("62 % busy, 10 GB in use  "));
  watts = 72;
  EXPECT_THAT(Run({"workers"}).out, HasSubstr("10 GB in use, 72 W  "));
  watts = 350;
  EXPECT_THAT(Run({"workers"}).out, HasSubstr("10 GB in use, 350 W, 3 memory errors  "));
}

}  // namespace
}  // namespace ablate::client
