// Tests `runs` with filters, `best` and `spec` against a server of the test's own.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RunsTest : public ClientTest {
 protected:
  RunsTest() {
    answers_.get = [](const v1::GetExperimentRequest&, v1::Experiment* experiment) {
      experiment->set_name("experiments/small-1a2b");
      v1::ExperimentSpec& spec = *experiment->mutable_spec();
      spec.set_name("small");
      spec.mutable_base()->mutable_model()->set_layers(2);
      spec.add_axes()->set_name("norm");
      return absl::OkStatus();
    };
    answers_.runs = [this](const v1::ListRunsRequest& request, v1::ListRunsResponse* response) {
      request_ = request;
      for (int i = 0; i < rows_; ++i) {
        v1::RunRow* row = response->add_rows();
        row->set_experiment("experiments/small-1a2b");
        row->set_cell(absl::StrCat("pre-s", i));
        row->set_run(absl::StrCat("runs/r", i));
        row->set_state(v1::RunState::DONE);
        row->set_step(10);
        row->set_steps(10);
        for (int j = 0; j < request.columns_size(); ++j) {
          if (j == 1) {
            row->add_values()->set_string_value("a, \"b\"");
          } else if (i == 1) {
            row->add_values()->set_null_value(google::protobuf::NULL_VALUE);
          } else {
            row->add_values()->set_number_value(2.123456789);
          }
        }
      }
      if (more_) response->set_next_page_token("more");
      return absl::OkStatus();
    };
    answers_.run = [this](const v1::GetRunRequest& request, v1::Run* run) {
      asked_.push_back(request.name());
      run->mutable_resolved_spec()->set_seed(7);
      run->mutable_resolved_spec()->mutable_spec()->mutable_model()->set_layers(3);
      return absl::OkStatus();
    };
    StartServer();
  }

  v1::ListRunsRequest request_;  // the last one
  int rows_ = 2;
  bool more_ = false;
};

TEST_F(RunsTest, AsksAllExperimentsWithoutOne) {
  const Outcome outcome = Run({"runs", "eval/loss < 3", "--sort", "eval/loss"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(request_.experiment(), "experiments/-");
  EXPECT_EQ(request_.filter(), "eval/loss < 3");
  EXPECT_EQ(request_.order_by(), "eval/loss");
  EXPECT_THAT(request_.columns(), ElementsAre("eval/loss"));
  EXPECT_EQ(outcome.out,
            "experiment  cell    run  state   step  eval/loss\n"
            "small-1a2b  pre-s0  r0   DONE   10/10      2.123\n"
            "small-1a2b  pre-s1  r1   DONE   10/10\n");
  Run({"runs"});
  EXPECT_EQ(request_.experiment(), "experiments/-");
  EXPECT_EQ(request_.filter(), "");
  EXPECT_EQ(request_.page_size(), 100u);
}

TEST_F(RunsTest, TellsAFilterFromAnExperiment) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"runs", "small", "seed=1"}, {"runs", "seed=1", "small"}}) {
    EXPECT_EQ(Run(arguments).code, kSuccess);
    EXPECT_EQ(request_.experiment(), "experiments/small-1a2b");
    EXPECT_EQ(request_.filter(), "seed=1");
  }
  const Outcome unquoted = Run({"runs", "seed", "=", "1"});
  EXPECT_EQ(unquoted.code, kUsage);
  EXPECT_THAT(unquoted.err, HasSubstr("\"1\" is too much; expected at most one experiment and one "
                                      "filter. Put the filter in quotes"));
}

TEST_F(RunsTest, PrintsColumns) {
  const std::vector<std::string> table = {"runs", "seed > 0", "--columns", "eval/loss,owner"};
  EXPECT_EQ(Run(table).out,
            "experiment  cell    eval/loss   owner\n"
            "small-1a2b  pre-s0      2.123  a, \"b\"\n"
            "small-1a2b  pre-s1             a, \"b\"\n");
  EXPECT_THAT(request_.columns(), ElementsAre("eval/loss", "owner"));
  EXPECT_EQ(Run(With(table, {"--csv"})).out,
            "experiment,cell,eval/loss,owner\n"
            "small-1a2b,pre-s0,2.123456789,\"a, \"\"b\"\"\"\n"
            "small-1a2b,pre-s1,,\"a, \"\"b\"\"\"\n");
  EXPECT_THAT(Run(With(table, {"--json"})).out, HasSubstr("\"values\": ["));
}

TEST_F(RunsTest, SaysThatThereAreMoreOrNone) {
  more_ = true;
  EXPECT_THAT(Run({"runs", "seed > 0", "-n", "2"}).err, HasSubstr("more runs match; -n 0 lists"));
  more_ = false;
  rows_ = 0;
  const Outcome none = Run({"runs", "seed > 0"});
  EXPECT_EQ(none.code, kSuccess);
  EXPECT_THAT(none.out, IsEmpty());
  EXPECT_THAT(none.err, HasSubstr("no run matches"));
}

TEST_F(RunsTest, ListsTheBest) {
  rows_ = 1;
  EXPECT_EQ(Run({"best", "small"}).out,
            "cell    run  eval/loss\n"
            "pre-s0  r0       2.123\n");
  EXPECT_EQ(request_.filter(), "state = done");
  EXPECT_EQ(request_.order_by(), "eval/loss best");
  EXPECT_EQ(request_.page_size(), 5u);
  Run({"best", "small", "--by", "max(eval/accuracy)", "-n", "1"});
  EXPECT_EQ(request_.order_by(), "max(eval/accuracy) best");
  rows_ = 0;
  const Outcome none = Run({"best", "small"});
  EXPECT_EQ(none.code, kFailure);
  EXPECT_THAT(none.err, HasSubstr("no run of small-1a2b is done"));
}

TEST_F(RunsTest, PrintsTheFileOfAnExperimentOrACell) {
  EXPECT_EQ(Run({"spec", "small"}).out,
            "name: small\nbase: {model: {layers: 2}}\naxes: [{name: norm}]\n");
  EXPECT_EQ(Run({"spec", "small/pre-s1"}).out,
            "name: small\nbase: {model: {layers: 3}}\nseeds: {list: [7]}\n");
  EXPECT_THAT(asked_, ElementsAre("runs/r1"));
  const Outcome unknown = Run({"spec", "small/pre-s9"});
  EXPECT_EQ(unknown.code, kFailure);
  EXPECT_THAT(unknown.err, HasSubstr("no cell \"pre-s9\" in small-1a2b; did you mean pre-s0?"));
}

}  // namespace
}  // namespace ablate::client
