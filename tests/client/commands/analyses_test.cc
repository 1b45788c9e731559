// Tests `ablate analyses`, `ablate cancel analyses/ID` and `ablate rm analyses/ID`.
#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AnalysesTest : public ClientTest {
 protected:
  AnalysesTest() {
    answers_.get = [](const v1::GetExperimentRequest& request, v1::Experiment* experiment) {
      EXPECT_EQ(request.name(), "experiments/small");
      experiment->set_name("experiments/small-1a2b");
      return absl::OkStatus();
    };
    AnswerRun("pre-s1", "runs/r");
    answers_.analyses = [this](const v1::ListAnalysesRequest& request,
                               v1::ListAnalysesResponse* response) {
      request_ = request;
      if (empty_) return absl::OkStatus();
      v1::Analysis* analysis = response->add_analyses();
      analysis->set_name("analyses/a1");
      analysis->mutable_analysis()->mutable_cka();
      std::vector<std::string> runs = {"runs/r", "runs/other"};
      runs.resize(subjects_, "runs/more");
      for (const std::string& run : runs) {
        v1::AnalysisSubject* subject = analysis->add_subjects();
        subject->set_run(run);
        subject->set_step(1000);
      }
      analysis->set_state(failure_.empty() ? v1::AnalysisState::RUNNING
                                           : v1::AnalysisState::FAILED);
      analysis->set_failure(failure_);
      analysis->set_progress(.429);
      analysis->mutable_labels()->Assign(labels_.begin(), labels_.end());
      analysis->mutable_create_time()->set_seconds(absl::ToUnixSeconds(now_) - 90);
      response->set_next_page_token(request.page_size() < 1000 ? "more" : "");
      return absl::OkStatus();
    };
    StartServer();
  }

  bool empty_ = false;
  size_t subjects_ = 2;
  std::string failure_;
  std::vector<std::string> labels_;
  v1::ListAnalysesRequest request_;
};

TEST_F(AnalysesTest, ListsThoseOfAnExperimentByItsCells) {
  const auto list = [this] { return Run({"analyses", "small", "--limit", "0"}).out; };
  EXPECT_EQ(list(),
            "analysis  kind  subjects                      state    progress  created\n"
            "a1        cka   pre-s1@1000, runs/other@1000  RUNNING      42 %  1 min ago\n");
  EXPECT_EQ(request_.parent(), "experiments/small-1a2b");
  subjects_ = 30;
  EXPECT_EQ(list(),
            "analysis  kind  subjects         state    progress  created\n"
            "a1        cka   pre-s1@1000 +29  RUNNING      42 %  1 min ago\n");
  labels_ = {"cka", "late"};
  failure_ = "the worker died three times";
  EXPECT_EQ(list(),
            "analysis  kind  label      subjects         state   progress  created    failure\n"
            "a1        cka   cka, late  pre-s1@1000 +29  FAILED      42 %  1 min ago  the worker "
            "died three times\n");
}

TEST_F(AnalysesTest, AsksForACellARunOrAll) {
  labels_ = {"late"};
  const Outcome cell = Run({"analyses", "small/pre-s1"});
  EXPECT_EQ(cell.out,
            "analysis  kind  label  subjects                      state    progress  created\n"
            "a1        cka   late   pre-s1@1000, runs/other@1000  RUNNING      42 %  1 min ago\n");
  EXPECT_EQ(request_.parent(), "experiments/small") << "only an experiment has labels";
  subjects_ = 0;
  EXPECT_EQ(Run({"analyses", "small/pre-s1"}).out, "") << "analyses of other cells";
  subjects_ = 2;
  EXPECT_THAT(Run({"analyses", "runs/r"}).out, HasSubstr("runs/r@1000"));
  EXPECT_EQ(request_.parent(), "runs/r");
  EXPECT_EQ(Run({"analyses"}).code, kSuccess);
  EXPECT_EQ(request_.parent(), "");
}

TEST_F(AnalysesTest, SaysThatThereAreMoreOrNone) {
  const Outcome some = Run({"analyses", "-n", "1"});
  EXPECT_EQ(request_.page_size(), 1u);
  EXPECT_EQ(some.err, "note: more analyses exist; --limit 0 lists all\n");
  empty_ = true;
  const Outcome none = Run({"analyses"});
  EXPECT_EQ(none.code, kSuccess);
  EXPECT_EQ(none.out, "");
  EXPECT_EQ(none.err, "no analyses yet: `ablate analyze KIND EXP/CELL` makes one\n");
  EXPECT_THAT(Run({"analyses", "--json"}).out, HasSubstr("\"analyses\": []"));
}

TEST_F(AnalysesTest, CancelsOneByTheBeginningOfItsName) {
  answers_.analysis = [](const v1::GetAnalysisRequest& request, v1::Analysis* analysis) {
    if (request.name() != "analyses/a") return absl::NotFoundError("there is no such analysis");
    analysis->set_name("analyses/a1");
    return absl::OkStatus();
  };
  answers_.cancel_analysis = [this](const v1::CancelAnalysisRequest& request,
                                    v1::Analysis* analysis) {
    asked_.push_back(request.name());
    analysis->set_name(request.name());
    analysis->set_state(v1::AnalysisState::CANCELLED);
    return absl::OkStatus();
  };
  const Outcome outcome = Run({"cancel", "analyses/a"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.err, "a1: CANCELLED\n");
  EXPECT_THAT(Run({"cancel", "analyses/a", "--json"}).out, HasSubstr("\"state\": \"CANCELLED\""));
  const Outcome none = Run({"cancel", "analyses/b"});
  EXPECT_EQ(none.code, kFailure);
  EXPECT_EQ(none.err, "error: there is no such analysis\n");
  EXPECT_THAT(asked_, ElementsAre("analyses/a1", "analyses/a1"));
}

TEST_F(AnalysesTest, RemovesOneByItsWholeName) {
  answers_.remove_analysis = [this](const v1::DeleteAnalysisRequest& request,
                                    google::protobuf::Empty*) -> absl::Status {
    asked_.push_back(request.name());
    return request.name() == "analyses/a1" ? absl::OkStatus()
                                           : absl::NotFoundError("there is no such analysis");
  };
  const Outcome outcome = Run({"rm", "analyses/a1", "--yes"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.err, "removed a1\n");
  const Outcome none = Run({"rm", "analyses/b", "--yes"});
  EXPECT_EQ(none.code, kFailure);
  EXPECT_EQ(none.err, "error: there is no such analysis\n");
  EXPECT_THAT(asked_, ElementsAre("analyses/a1", "analyses/b"));
  console_.in_is_terminal = true;
  answers_.analysis = [](const v1::GetAnalysisRequest& request, v1::Analysis* analysis) {
    analysis->set_name(request.name());
    analysis->mutable_analysis()->mutable_spectrum();
    analysis->mutable_device_time()->set_seconds(3);
    analysis->set_artifact_bytes(12'000);
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"rm", "analyses/a1"}, "\n").err,
            "analyses/a1: spectrum, 3 s, 12 kB\nremove? [y/N] nothing was removed\n");
  EXPECT_EQ(Run({"rm", "analyses/a1", "--dry-run"}).out, "analyses/a1: spectrum, 3 s, 12 kB\n");
}

}  // namespace
}  // namespace ablate::client
