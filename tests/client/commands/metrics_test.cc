// Tests `ablate metrics`: CSV in full precision, JSON lines, tables of summaries.
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/context.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

const Words kFormats[] = {{"--csv"}, {"--json"}, {}};  // points, points and a table

class MetricsTest : public ClientTest {
 protected:
  MetricsTest() {
    answers_.query = [this](const v1::QueryMetricsRequest& request,
                            const std::function<bool(const v1::Series&)>& write) {
      requests_.push_back(request);
      for (v1::Series series : series_) {
        const auto& keys = request.keys();
        const bool asked =
            keys.empty() || std::find(keys.begin(), keys.end(), series.key()) != keys.end();
        if (asked) write(series);
      }
      return absl::OkStatus();
    };
    answers_.metrics = [this](const v1::ListMetricsRequest& request,
                              v1::ListMetricsResponse* response) {
      parent_ = request.parent();
      cell_ = request.cell();
      if (!have_points_) return absl::OkStatus();
      for (const std::string& key : of_analyses_) {
        v1::MetricInfo* number = response->add_metrics();
        number->set_key(key);
        number->set_count(1);
        number->set_of_analysis(true);
      }
      v1::MetricInfo* metric = response->add_metrics();
      metric->set_key("train/loss");
      metric->set_count(12345);
      return absl::OkStatus();
    };
    answers_.runs = [this](const v1::ListRunsRequest&, v1::ListRunsResponse* response) {
      for (const char* cell : {"pre-s1", "pre-s2"}) {
        v1::RunRow* row = response->add_rows();
        row->set_cell(cell);
        row->set_run(std::string("runs/of-") + cell);
        row->set_state(state_);
        if (!have_points_) continue;
        for (const char* key : {"eval/loss", "train/loss"}) {
          v1::Summary* summary = row->add_summaries();
          summary->set_key(key);
          summary->set_count(1001);
          summary->set_first(4.60517);
          summary->set_last(2.5);
          summary->set_nonfinite(1);
        }
      }
      return absl::OkStatus();
    };
    StartServer();
  }

  void AddSeries(const std::string& cell, const std::string& key, std::vector<double> values) {
    v1::Series& series = series_.emplace_back();
    series.set_cell(cell);
    series.set_key(key);
    for (const double value : values) {
      series.add_steps(static_cast<uint32_t>(series.steps_size()));
      series.add_values(value);
    }
  }

  Outcome Metrics(const Words& options, const Words& format) {
    return Run(With(With({"metrics", "small"}, options), format));
  }

  std::vector<v1::Series> series_;
  bool have_points_ = true;
  v1::RunState::Value state_ = v1::RunState::DONE;
  std::vector<std::string> of_analyses_;
  std::string parent_, cell_;
  std::vector<v1::QueryMetricsRequest> requests_;
};

TEST_F(MetricsTest, PrintsCsvOfOneKey) {
  AddSeries("pre-s1", "train/loss", {0.1, static_cast<double>(2.4f), 3});
  AddSeries("pre-s2", "train/loss",
            {std::nan(""), -std::numeric_limits<double>::infinity(), 5e-324});
  const Outcome outcome = Run({"metrics", "small", "--key", "train/loss", "--csv"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out,
            "cell,step,value\n"
            "pre-s1,0,0.1\n"
            "pre-s1,1,2.4000000953674316\n"
            "pre-s1,2,3\n"
            "pre-s2,0,nan\n"
            "pre-s2,1,-inf\n"
            "pre-s2,2,5e-324\n");
  EXPECT_EQ(requests_[0].experiment(), "experiments/small");
  EXPECT_THAT(requests_[0].keys(), ElementsAre("train/loss"));
  EXPECT_FALSE(requests_[0].has_first_step());
  EXPECT_EQ(requests_[0].max_points(), 0u);
}

TEST_F(MetricsTest, PrintsCsvThatReadsBackBitForBit) {
  std::vector<double> values;
  uint64_t state = 0x9E3779B97F4A7C15u;
  for (int i = 0; i < 5000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double value = 0;
    std::memcpy(&value, &state, sizeof(value));
    if (std::isfinite(value)) values.push_back(value);
  }
  AddSeries("pre-s1", "train/loss", values);
  const Outcome outcome = Run({"metrics", "small", "-k", "train/loss", "--csv"});
  const std::vector<std::string> lines = absl::StrSplit(outcome.out, '\n');
  ASSERT_EQ(lines.size(), values.size() + 2);
  for (size_t i = 0; i < values.size(); ++i) {
    const std::vector<std::string> fields = absl::StrSplit(lines[i + 1], ',');
    double value = 0;
    ASSERT_TRUE(absl::SimpleAtod(fields[2], &value));
    EXPECT_EQ(std::memcmp(&value, &values[i], sizeof(value)), 0) << fields[2];
  }
}

TEST_F(MetricsTest, AddsAKeyColumnUnlessOneKeyIsAskedFor) {
  AddSeries("pre-s1", "eval/loss", {1});
  AddSeries("odd,\"cell\"", "train/loss", {2});
  const std::string expected =
      "cell,key,step,value\n"
      "pre-s1,eval/loss,0,1\n"
      "\"odd,\"\"cell\"\"\",train/loss,0,2\n";
  EXPECT_EQ(Run({"metrics", "small", "--csv"}).out, expected);
  EXPECT_EQ(Run({"metrics", "small", "--csv", "-k", "eval/loss", "-k", "train/loss"}).out,
            expected);
}

TEST_F(MetricsTest, PassesLimitsOn) {
  Run({"metrics", "small", "--csv", "--first-step", "5", "--last-step", "9", "--max-points", "50"});
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(requests_[0].first_step(), 5u);
  EXPECT_EQ(requests_[0].last_step(), 9u);
  EXPECT_EQ(requests_[0].max_points(), 50u);
}

TEST_F(MetricsTest, QueriesOneCell) {
  AddSeries("pre-s1", "train/loss", {2});  // as servers that do not know cells send it, too
  AddSeries("pre-s2", "train/loss", {1});
  const Outcome outcome = Run({"metrics", "small/pre-s2", "-k", "train/loss", "--csv"});
  EXPECT_EQ(outcome.out, "cell,step,value\npre-s2,0,1\n");
  EXPECT_EQ(requests_[0].experiment(), "experiments/small");
  EXPECT_EQ(requests_[0].cell(), "pre-s2");
}

TEST_F(MetricsTest, PrintsSeriesAsJsonLines) {
  AddSeries("pre-s1", "train/loss", {std::nan(""), 0.5});
  AddSeries("pre-s2", "train/loss", {1});
  const Outcome outcome = Run({"metrics", "small", "--json"});
  const std::vector<std::string> lines = absl::StrSplit(outcome.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u);
  v1::Series series;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(lines[0], &series).ok());
  EXPECT_EQ(series.cell(), "pre-s1");
  EXPECT_TRUE(std::isnan(series.values(0)));
  EXPECT_EQ(series.values(1), 0.5);
}

TEST_F(MetricsTest, PrintsATableOfSummaries) {
  const Outcome outcome = Run({"metrics", "small", "--key", "train/loss"});
  EXPECT_EQ(outcome.out,
            "cell    key         points  first  last  min  max  mean  non-finite\n"
            "pre-s1  train/loss   1,001  4.605   2.5    —    —     —           1\n"
            "pre-s2  train/loss   1,001  4.605   2.5    —    —     —           1\n");
  EXPECT_EQ(outcome.err, "");
}

TEST_F(MetricsTest, SummarisesNumbersOfAnalyses) {
  of_analyses_ = {"spectrum/effective_rank", "spectrum/stable_rank"};
  AddSeries("pre-s1", "train/loss", {1, 2});
  AddSeries("pre-s1", "spectrum/stable_rank", {3, 2, 5.5});
  AddSeries("pre-s2", "spectrum/stable_rank", {1.5});
  const Outcome one = Run({"metrics", "small", "--key", "spectrum/stable_rank"});
  EXPECT_EQ(one.err, "");
  EXPECT_EQ(one.out,
            "cell    key                   points  first  last  min  max  mean  non-finite\n"
            "pre-s1  spectrum/stable_rank       3      3   5.5    2  5.5   3.5           0\n"
            "pre-s2  spectrum/stable_rank       1    1.5   1.5  1.5  1.5   1.5           0\n");
  EXPECT_THAT(requests_[0].keys(), ElementsAre("spectrum/stable_rank"));
  const Outcome cell = Run({"metrics", "small/pre-s1"});
  EXPECT_EQ(cell.out,
            "cell    key                   points  first  last  min  max  mean  non-finite\n"
            "pre-s1  eval/loss              1,001  4.605   2.5    —    —     —           1\n"
            "pre-s1  train/loss             1,001  4.605   2.5    —    —     —           1\n"
            "pre-s1  spectrum/stable_rank       3      3   5.5    2  5.5   3.5           0\n");
  EXPECT_THAT(requests_[1].keys(), ElementsAre("spectrum/effective_rank", "spectrum/stable_rank"));
}

TEST_F(MetricsTest, FailsWhereNoRunHasTheKey) {
  for (const Words& format : kFormats) {
    const Outcome outcome = Metrics({"--key", "trian/loss"}, format);
    EXPECT_EQ(outcome.code, kFailure);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(
        outcome.err,
        "error: no run of small has trian/loss (did you mean train/loss?); expected train/loss\n");
  }
  const Outcome cell = Run({"metrics", "small/pre-s2", "-k", "foo", "-k", "bar"});
  EXPECT_EQ(cell.code, kFailure);
  EXPECT_EQ(cell.err, "error: small/pre-s2 has no foo or bar; expected train/loss\n");
  EXPECT_EQ(parent_, "experiments/small");
  EXPECT_EQ(cell_, "pre-s2");
}

TEST_F(MetricsTest, NamesAFewKeysWhenThereAreMany) {
  for (int i = 0; i < 20; ++i) of_analyses_.push_back(absl::StrCat("norms/n", i));
  EXPECT_EQ(Run({"metrics", "small", "-k", "norms/x"}).err,
            "error: no run of small has norms/x (did you mean norms/n0?); expected norms/n0, "
            "norms/n1, norms/n2, norms/n3, norms/n4, norms/n5, norms/n6, norms/n7 or one of 12 "
            "more, which `ablate metrics small --list` prints\n");
}

TEST_F(MetricsTest, NotesAKeyThatIsMissingBesideOthers) {
  AddSeries("pre-s1", "train/loss", {1});
  for (const Words& format : kFormats) {
    const Outcome outcome = Metrics({"-k", "train/loss", "-k", "foo"}, format);
    EXPECT_EQ(outcome.code, kSuccess);
    EXPECT_EQ(outcome.err, "note: no points of foo\n");
  }
}

TEST_F(MetricsTest, NotesThatTheStepsAskedForHaveNoPoints) {
  const Outcome outcome =
      Run({"metrics", "small", "-k", "train/loss", "--csv", "--first-step", "99"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.out, "cell,step,value\n");
  EXPECT_EQ(outcome.err, "note: no points of train/loss\n");
}

TEST_F(MetricsTest, WaitsForTheFirstPointBeforeItFails) {
  have_points_ = false;
  for (const Words& format : kFormats) {
    for (const auto state : {v1::RunState::QUEUED, v1::RunState::RUNNING}) {
      state_ = state;
      const Outcome early = Metrics({"-k", "foo"}, format);
      EXPECT_EQ(early.code, kSuccess);
      EXPECT_EQ(early.err, "note: no points of foo yet\n");
    }
    state_ = v1::RunState::FAILED;
    const Outcome ended = Metrics({"-k", "foo"}, format);
    EXPECT_EQ(ended.code, kFailure);
    EXPECT_EQ(ended.err, "error: no run of small has foo: all ended without a point\n");
  }
}

TEST_F(MetricsTest, ListsKeys) {
  EXPECT_EQ(Run({"metrics", "small", "--list"}).out, "key         points\ntrain/loss  12,345\n");
  EXPECT_THAT(Run({"metrics", "small", "--list", "--json"}).out, HasSubstr("\"count\": \"12345\""));
  EXPECT_EQ(parent_, "experiments/small");
  EXPECT_EQ(cell_, "");
  EXPECT_EQ(Run({"metrics", "small/pre-s2", "--list"}).code, kSuccess);
  EXPECT_EQ(parent_, "experiments/small");
  EXPECT_EQ(cell_, "pre-s2");
  EXPECT_EQ(Run({"metrics", "small/none", "--list"}).code, kFailure);
}

TEST_F(MetricsTest, IgnoresNoOption) {
  const char* points =
      "error: ablate metrics: --first-step, --last-step, --max-points: need points; add --csv or "
      "--json, and remove --list\n";
  const char* all =
      "error: ablate metrics: --list: can't be combined with --key; remove one of them\n";
  const std::tuple<Words, std::string> cases[] = {
      {{"--first-step", "1"}, points},
      {{"--last-step", "1"}, points},
      {{"--max-points", "4"}, points},
      {{"--list", "--json", "--max-points", "4"}, points},
      {{"--list", "--key", "train/loss"}, all}};
  for (const auto& [options, message] : cases) {
    const Outcome outcome = Metrics(options, {});
    EXPECT_EQ(outcome.code, kUsage) << options[0];
    EXPECT_EQ(outcome.err, message);
  }
}

}  // namespace
}  // namespace ablate::client
