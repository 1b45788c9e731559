// Tests metrics: keys and series, exactly as they were reported.
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::ElementsAre;

class MetricsTest : public ServiceTest {
 protected:
  // Makes a run of a new experiment that has reported `series` and goes on.
  FakeWorker::Leased Report(const std::vector<FakeWorker::Series>& series) {
    experiment_ = Create(SmallSpec(1, "small", 1'000'000)).experiment().name();
    worker_ = MakeWorker();
    const FakeWorker::Leased run = worker_->NextRun();
    worker_->Started(run);
    worker_->Points(run, series, 1);
    worker_->Settle();
    return run;
  }
  v1::QueryMetricsRequest ForRun(const FakeWorker::Leased& run) {
    v1::QueryMetricsRequest request;
    request.add_runs("runs/" + run.run.run());
    return request;
  }
  std::vector<std::pair<std::string, uint64_t>> Keys(const std::string& parent) {
    std::vector<std::pair<std::string, uint64_t>> keys;
    const v1::ListMetricsResponse response = ListMetrics(parent);
    for (const v1::MetricInfo& metric : response.metrics()) {
      keys.push_back({metric.key(), metric.count()});
    }
    return keys;
  }

  std::string experiment_;
  std::unique_ptr<FakeWorker> worker_;
};

std::vector<uint32_t> Steps(uint32_t count) {
  std::vector<uint32_t> steps(count);
  std::iota(steps.begin(), steps.end(), 0u);
  return steps;
}

std::vector<double> Waves(uint32_t count) {
  std::vector<double> values;
  for (uint32_t i = 0; i < count; ++i) values.push_back(std::sin(i * .7) / (1 + i));
  return values;
}

TEST_F(MetricsTest, ListsKeysPageByPage) {
  const FakeWorker::Leased run = Report({{"b", {0}, {1}}, {"a", {0}, {1}}, {"c", {0}, {1}}});
  v1::ListMetricsRequest request;
  request.set_parent("runs/" + run.run.run());
  request.set_page_size(2);
  std::vector<std::string> keys;
  int pages = 0;
  do {
    const auto page = AnswerOf(*metrics_, &v1::Metrics::Stub::ListMetrics, request);
    for (const v1::MetricInfo& metric : page.metrics()) keys.push_back(metric.key());
    request.set_page_token(page.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(pages, 2);
  EXPECT_THAT(keys, ElementsAre("a", "b", "c"));
}

TEST_F(MetricsTest, GivesValuesBitForBit) {
  double odd_nan = 0;
  const uint64_t bits = 0x7ff800000000beefULL;
  std::memcpy(&odd_nan, &bits, sizeof odd_nan);
  const std::vector<double> values = {.1,
                                      1.0 / 3,
                                      -0.0,
                                      INFINITY,
                                      -INFINITY,
                                      odd_nan,
                                      std::numeric_limits<double>::denorm_min(),
                                      std::numeric_limits<double>::max()};
  const FakeWorker::Leased run = Report({{"train/loss", Steps(8), values}});
  const std::vector<v1::Series> series = Query(ForRun(run));
  ASSERT_EQ(series.size(), 1u);
  EXPECT_EQ(series[0].cell(), "");
  EXPECT_EQ(series[0].run(), "runs/" + run.run.run());
  EXPECT_EQ(series[0].key(), "train/loss");
  EXPECT_THAT(series[0].steps(), testing::ElementsAreArray(Steps(8)));
  ASSERT_EQ(series[0].values_size(), 8);
  EXPECT_EQ(std::memcmp(series[0].values().data(), values.data(), 8 * sizeof(double)), 0);
}

TEST_F(MetricsTest, OrdersByCellThenKey) {
  experiment_ = Create(SmallSpec(2)).experiment().name();
  worker_ = MakeWorker();
  for (int i = 0; i < 4; ++i) {
    const FakeWorker::Leased run = worker_->NextRun();
    worker_->Started(run);
    worker_->Points(run, {{"b", {0}, {1}}, {"a", {0}, {2}}}, 1);
  }
  worker_->Settle();
  v1::QueryMetricsRequest request;
  request.set_experiment(experiment_);
  std::vector<std::string> order;
  for (const v1::Series& series : Query(request)) {
    order.push_back(absl::StrCat(series.cell(), " ", series.key()));
  }
  EXPECT_THAT(order, ElementsAre("pre-s0 a", "pre-s0 b", "pre-s1 a", "pre-s1 b", "post-s0 a",
                                 "post-s0 b", "post-s1 a", "post-s1 b"));
}

TEST_F(MetricsTest, GivesWantedKeysOnceInTheOrderAskedFor) {
  const FakeWorker::Leased run = Report({{"a", {0}, {1}}, {"b", {0}, {2}}, {"c", {0}, {3}}});
  v1::QueryMetricsRequest request = ForRun(run);
  for (const char* key : {"c", "nothing", "a", "c"}) request.add_keys(key);
  std::vector<std::string> keys;
  for (const v1::Series& series : Query(request)) keys.push_back(series.key());
  EXPECT_THAT(keys, ElementsAre("c", "a"));
}

TEST_F(MetricsTest, TakesARunOnceHoweverOftenItIsNamed) {
  const FakeWorker::Leased run = Report({{"a", {0, 1}, {1, 2}}});
  v1::QueryMetricsRequest request = ForRun(run);
  request.add_runs(run.run.run());
  request.add_runs(run.run.run().substr(0, 9));
  EXPECT_EQ(Query(request).size(), 1u);
}

TEST_F(MetricsTest, GivesStepsBetweenBounds) {
  const FakeWorker::Leased run = Report({{"a", Steps(100), Waves(100)}});
  v1::QueryMetricsRequest request = ForRun(run);
  request.set_first_step(90);
  request.set_last_step(92);
  std::vector<v1::Series> series = Query(request);
  ASSERT_EQ(series.size(), 1u);
  EXPECT_THAT(series[0].steps(), ElementsAre(90, 91, 92));
  request.set_last_step(4'000'000'000);
  series = Query(request);
  ASSERT_EQ(series.size(), 1u);
  EXPECT_EQ(series[0].steps_size(), 10);
  request.set_first_step(100);
  EXPECT_TRUE(Query(request).empty());
  request.set_first_step(0);
  request.set_last_step(0);
  series = Query(request);
  ASSERT_EQ(series.size(), 1u);
  EXPECT_THAT(series[0].steps(), ElementsAre(0));
}

TEST_F(MetricsTest, SplitsALongSeriesIntoMessages) {
  constexpr uint32_t kPoints = 250'000;
  experiment_ = Create(SmallSpec(1, "small", kPoints)).experiment().name();
  worker_ = MakeWorker();
  const FakeWorker::Leased run = worker_->NextRun();
  const std::vector<double> values = Waves(kPoints);
  worker_->Started(run);
  for (uint32_t from = 0; from < kPoints; from += 10'000) {
    std::vector<uint32_t> steps(10'000);
    std::iota(steps.begin(), steps.end(), from);
    const auto begin = values.begin() + from;
    worker_->Points(run, {{"a", steps, {begin, begin + 10'000}}, {"b", {from}, {0}}},
                    from + 10'000);
    worker_->Settle();
  }
  std::vector<double> got;
  v1::QueryMetricsRequest request = ForRun(run);
  request.add_keys("a");
  const std::vector<v1::Series> messages = Query(request);
  EXPECT_GE(messages.size(), 7u);
  for (const v1::Series& message : messages) {
    EXPECT_LE(message.ByteSizeLong(), size_t{600'000});
    ASSERT_EQ(message.steps_size(), message.values_size());
    EXPECT_EQ(message.steps(0), got.size());
    got.insert(got.end(), message.values().begin(), message.values().end());
  }
  EXPECT_EQ(got, values);
}

TEST_F(MetricsTest, ThinsALongSeriesAndKeepsExtremes) {
  const std::vector<double> values = Waves(10'000);
  const FakeWorker::Leased run = Report({{"a", Steps(10'000), values}, {"b", {0}, {1}}});
  v1::QueryMetricsRequest request = ForRun(run);
  request.set_max_points(500);
  const std::vector<v1::Series> series = Query(request);
  ASSERT_EQ(series.size(), 2u);
  EXPECT_LE(series[0].steps_size(), 500);
  EXPECT_GE(series[0].steps_size(), 250);
  EXPECT_EQ(series[0].steps(0), 0u);
  EXPECT_EQ(series[0].steps(series[0].steps_size() - 1), 9'999u);
  double least = INFINITY, most = -INFINITY;
  for (int i = 0; i < series[0].steps_size(); ++i) {
    EXPECT_EQ(series[0].values(i), values[series[0].steps(i)]);
    least = std::min(least, series[0].values(i));
    most = std::max(most, series[0].values(i));
  }
  EXPECT_EQ(least, *std::min_element(values.begin(), values.end()));
  EXPECT_EQ(most, *std::max_element(values.begin(), values.end()));
  EXPECT_EQ(series[1].steps_size(), 1);
}

TEST_F(MetricsTest, CountsPointsOfARunAndOfAnExperiment) {
  const auto worker = MakeWorker();
  const v1::CreateExperimentResponse created = Create(SmallSpec(2));
  TrainAll(worker.get(), 4);
  using Key = std::pair<std::string, uint64_t>;
  EXPECT_THAT(Keys(created.cells(0).run()), ElementsAre(Key{"train/loss", 10}));
  EXPECT_THAT(Keys(created.experiment().name()), ElementsAre(Key{"train/loss", 40}));
}

TEST_F(MetricsTest, GivesNothingForAnExperimentWithoutPoints) {
  v1::QueryMetricsRequest request;
  request.set_experiment(Create(SmallSpec()).experiment().name());
  EXPECT_TRUE(Query(request).empty());
  EXPECT_TRUE(Keys(request.experiment()).empty());
}

TEST_F(MetricsTest, StopsReadingWhenTheClientLeaves) {
  const FakeWorker::Leased run = Report({{"a", Steps(300'000), Waves(300'000)}});
  v1::QueryMetricsRequest request = ForRun(run);
  // More than are allowed at once: each must release its place.
  for (int i = 0; i < 200; ++i) {
    Context context;
    const auto reader = metrics_->QueryMetrics(&context, request);
    v1::Series series;
    const bool read = reader->Read(&series);
    context.TryCancel();
    const grpc::Status status = reader->Finish();
    if (!read) {
      ASSERT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
          << status.error_message();
    }
  }
  // The last ones leave soon.
  grpc::Status status;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  do {
    status = TryQuery(request);
  } while (!status.ok() && std::chrono::steady_clock::now() < end);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

}  // namespace
}  // namespace ablate::service
