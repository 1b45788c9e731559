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
        if (!old_) row->set_experiment("experiments/small-1a2b");
        row->set_cell(absl::StrCat("pre-s", i));
        row->set_run(absl::StrCat("runs/r", i));
        row->set_state(state_);
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
      if (!refusal_.empty()) return absl::InvalidArgumentError(refusal_);
      if (more_) response->set_next_page_token("more");
      return absl::OkStatus();
    };
    answers_.run = [this](const v1::GetRunRequest& request, v1::Run* run) {
      asked_.push_back(request.name());
      run->mutable_resolved_spec()->set_seed(7);
      v1::BaseSpec& spec = *run->mutable_resolved_spec()->mutable_spec();
      spec.mutable_model()->set_layers(3);
      if (continues_) {
        spec.set_model_from("models/big");
        spec.mutable_model()->mutable_init()->set_kind(v1::InitKind::pytorch);
      }
      return absl::OkStatus();
    };
    StartServer();
  }

  v1::RunState::Value state_ = v1::RunState::DONE;
  v1::ListRunsRequest request_;  // the last one
  int rows_ = 2;
  bool more_ = false;
  bool old_ = false;  // without filters
  std::string refusal_;
  bool continues_ = false;  // from a model
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
  EXPECT_THAT(Run({"runs", "--sort", "experiment"}).out, HasSubstr("small-1a2b  pre-s0"));
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
  const Outcome both = Run(With(table, {"--json", "--csv"}));
  EXPECT_EQ(both.code, kUsage);
  EXPECT_THAT(both.err, HasSubstr("--csv: can't be combined with --json"));
  EXPECT_THAT(Run({"runs", "--columns", "experiment, owner", "--csv"}).out,
              HasSubstr("cell,experiment,owner\n"));
  EXPECT_THAT(request_.columns(), ElementsAre("experiment", "owner"));
}

TEST_F(RunsTest, ShowsTheStateBesideTheBestValueOfADivergedRun) {
  state_ = v1::RunState::DIVERGED;
  EXPECT_EQ(Run({"runs", "small", "--columns", "min(eval/loss)"}).out,
            "cell    min(eval/loss)  state\n"
            "pre-s0           2.123  DIVERGED\n"
            "pre-s1                  DIVERGED\n");
  const Outcome asked = Run({"runs", "small", "--columns", "min(eval/loss),state", "--csv"});
  EXPECT_THAT(asked.out, testing::StartsWith("cell,min(eval/loss),state\n"));
  EXPECT_THAT(Run({"runs", "small", "--columns", "eval/loss", "--csv"}).out,
              testing::StartsWith("cell,eval/loss\n"));
}

// Runs of 2, 4 and 6 layers on two data sets; the server meets no other comparison.
class NearValuesTest : public ClientTest {
 protected:
  NearValuesTest() {
    answers_.runs = [this](const v1::ListRunsRequest& request, v1::ListRunsResponse* response) {
      asked_.push_back(request.filter());
      if (request.filter() == "seed < 8") response->add_rows()->set_experiment("experiments/a");
      if (request.columns().empty()) return absl::OkStatus();
      for (const int layers : {2, 4, 6, 4}) {
        v1::RunRow* row = response->add_rows();
        row->set_experiment("experiments/a");
        if (request.columns(0) == "model.layers") row->add_values()->set_number_value(layers);
        if (request.columns(0) == "task.documents.dataset") {
          row->add_values()->set_string_value(layers == 2 ? "datasets/a-1" : "datasets/names-2");
        }
      }
      return absl::OkStatus();
    };
    StartServer();
  }

  std::string Notes(const std::string& filter) { return Run({"runs", filter}).err; }
};

TEST_F(NearValuesTest, NamesTheNearestValuesOfAFilterThatNoRunMeets) {
  EXPECT_EQ(Notes("model.layers = 5 AND seed < 8"),
            "note: no run has model.layers = 5; the values are 4, 6 or 2\nno run matches\n");
  EXPECT_THAT(asked_, ElementsAre("model.layers = 5 AND seed < 8", "model.layers = 5",
                                  "model.layers:*", "seed < 8"));
  EXPECT_EQ(Notes("(task.documents.dataset = \"dataset/names-2\")"),
            "note: no run has task.documents.dataset = \"dataset/names-2\"; the values are "
            "datasets/names-2 or datasets/a-1\nno run matches\n");
  EXPECT_EQ(Notes("min(eval/loss) < 1e-9"), "note: no run has min(eval/loss)\nno run matches\n");
}

TEST_F(NearValuesTest, ReadsComparisonsAsTheServerDoes) {
  asked_.clear();
  Notes("created>2026-11-26T10:00:00Z OR NOT ( \"a b\" != 'x = y' )");
  EXPECT_THAT(asked_, ElementsAre("created>2026-11-26T10:00:00Z OR NOT ( \"a b\" != 'x = y' )",
                                  "created>2026-11-26T10:00:00Z", "created:*", "\"a b\" != 'x = y'",
                                  "\"a b\":*"));
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
  EXPECT_EQ(request_.filter(), "state = done AND eval/loss:*");
  EXPECT_EQ(request_.order_by(), "eval/loss best");
  EXPECT_EQ(request_.page_size(), 5u);
  Run({"best", "small", "--by", "max(eval/accuracy)", "-n", "1"});
  EXPECT_EQ(request_.order_by(), "max(eval/accuracy) best");
  rows_ = 0;
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"best", "small"}, {"best", "small", "--json"}}) {
    const Outcome none = Run(arguments);
    EXPECT_EQ(none.code, kFailure);
    EXPECT_THAT(none.err, HasSubstr("no run of small-1a2b is done and has eval/loss"));
  }
}

TEST_F(RunsTest, ListsTheBestByADirection) {
  for (const char* by : {"x/y desc", "-x/y"}) {
    Run({"best", "small", absl::StrCat("--by=", by)});
    EXPECT_EQ(request_.filter(), "state = done AND x/y:*");
    EXPECT_EQ(request_.order_by(), by);
    EXPECT_THAT(request_.columns(), ElementsAre("x/y"));
  }
  refusal_ = "order_by: column 1: neither direction of x/y is better; expected asc or desc";
  EXPECT_THAT(Run({"best", "small", "--by", "x/y"}).err,
              HasSubstr("neither direction of x/y is better; say which is first: --by 'x/y desc'"));
  refusal_ = "order_by: column 1: no run has the metric \"x/y\"";
  EXPECT_THAT(Run({"best", "small", "--by", "x/y"}).err, HasSubstr(refusal_));
  EXPECT_THAT(Run({"best", "small"}).err,
              HasSubstr("runs can't be sorted by report.primary, eval/loss. Name a metric"));
}

TEST_F(RunsTest, RefusesAServerWithoutFilters) {
  old_ = true;
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"runs", "small", "seed=1"},
        {"runs", "small", "--sort", "eval/loss"},
        {"runs", "small", "--columns", "seed"},
        {"best", "small"}}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, kFailure) << arguments.back();
    EXPECT_THAT(outcome.err, HasSubstr("the server is older than this ablate and has no filters. "
                                       "Run ablate down, then ablate up"));
  }
  EXPECT_EQ(Run({"runs", "small"}).code, kSuccess);
}

TEST_F(RunsTest, PrintsTheFileOfAnExperimentOrACell) {
  EXPECT_EQ(Run({"spec", "small"}).out,
            "name: small\nbase: {model: {layers: 2}}\naxes: [{name: norm}]\n");
  EXPECT_EQ(Run({"spec", "small/pre-s1"}).out,
            "name: small\nbase: {model: {layers: 3}}\nseeds: {list: [7]}\n");
  EXPECT_THAT(asked_, ElementsAre("runs/r1"));
  continues_ = true;
  EXPECT_THAT(Run({"spec", "small/pre-s1"}).out,
              ::testing::AllOf(HasSubstr("model_from: models/big"), HasSubstr("layers: 3"),
                               ::testing::Not(HasSubstr("init"))))
      << "submit refuses what has no effect";
  const Outcome unknown = Run({"spec", "small/pre-s9"});
  EXPECT_EQ(unknown.code, kFailure);
  EXPECT_THAT(unknown.err, HasSubstr("no cell \"pre-s9\" in small-1a2b"));
}

}  // namespace
}  // namespace ablate::client
