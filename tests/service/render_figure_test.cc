// Tests RenderFigure over a stored grid: results, and errors by field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <list>

#include "absl/strings/str_cat.h"
#include "server/service/services.h"
#include "tests/results/stored_grid.h"

namespace ablate::service {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class RenderFigureTest : public testing::Test {
 protected:
  RenderFigureTest() {
    backend_.store = stored_.store();
    request_.mutable_comparison()->set_experiment("experiments/" + stored_.experiment());
    request_.set_kind("loss");
    request_.set_format(v1::FigureFormat::svg);
  }

  void TrainAll() {
    for (const char* label : {"pre", "post"}) {
      for (const int seed : {1, 2}) {
        results::StoredGrid::Curves curves;
        const double shift = (label[1] == 'o' ? 0.5 : 0) + 0.1 * seed;
        for (uint32_t step = 0; step < 10; ++step)
          curves["train/loss"][step] = 3 - 0.1 * step + shift;
        curves["eval/loss"] = {{0, 3 + shift}, {10, 2 + shift}};
        stored_.Finish(absl::StrCat(label, "-s", seed), curves);
      }
    }
  }

  absl::Status Render() {
    return RenderFigure(&backend_, {backend_.store, storage::kServer}, nullptr, request_,
                        &response_);
  }

  results::StoredGrid stored_{
      absl::StrCat(results::SmallGrid(2), results::kPlacementAxis,
                   R"(report { summaries { key: "train/loss" last: 2 } })")};
  Backend backend_;
  v1::RenderFigureRequest request_;
  v1::RenderFigureResponse response_;
};

TEST_F(RenderFigureTest, DrawsTheCurvesThatAreStored) {
  TrainAll();
  ASSERT_EQ(Render(), absl::OkStatus());
  EXPECT_EQ(response_.media_type(), "image/svg+xml");
  EXPECT_THAT(response_.data(), HasSubstr("post"));
  EXPECT_THAT(response_.csv(),
              StartsWith("panel,setting,seed,step,value,low,high\ntrain/loss,pre,,1,3.1,"));
  request_.set_key("eval/loss");
  ASSERT_EQ(Render(), absl::OkStatus());
  EXPECT_THAT(response_.csv(), HasSubstr("eval/loss,post,,10,2.65"));
}

TEST_F(RenderFigureTest, SmoothsTrainingAndNoEvaluations) {
  results::StoredGrid::Curves curves;
  for (uint32_t step = 0; step < 10; ++step) curves["train/loss"][step] = step % 2;
  for (uint32_t step = 0; step <= 10; ++step) curves["eval/loss"][step] = step % 2;
  stored_.Finish("pre-s1", curves);
  ASSERT_EQ(Render(), absl::OkStatus());
  EXPECT_THAT(response_.csv(), Not(HasSubstr("train/loss,pre,,0,0")));
  request_.set_key("eval/loss");
  ASSERT_EQ(Render(), absl::OkStatus());
  EXPECT_THAT(response_.csv(), HasSubstr("eval/loss,pre,,0,0,"));
  EXPECT_THAT(response_.csv(), HasSubstr("eval/loss,pre,,9,1,"));
}

TEST_F(RenderFigureTest, DrawsDifferencesAndSummaries) {
  TrainAll();
  request_.set_kind("forest");
  request_.set_format(v1::FigureFormat::png);
  request_.set_width(6.75);
  ASSERT_EQ(Render(), absl::OkStatus());
  EXPECT_THAT(response_.data(), StartsWith("\x89PNG"));
  EXPECT_THAT(response_.csv(), HasSubstr("post,pre,1,0.5"));
  request_.set_kind("summary");
  ASSERT_EQ(Render(), absl::OkStatus());
  EXPECT_THAT(response_.csv(), HasSubstr("\"training loss, mean of the last 2\",pre,2.3"));
}

TEST_F(RenderFigureTest, CountsAmongReports) {
  TrainAll();
  std::list<rpc::LiveCall> others;
  for (size_t i = 0; i < lookup::kMaxReports.total; ++i) others.emplace_back(&backend_.reports);
  EXPECT_TRUE(absl::IsResourceExhausted(Render())) << Render();
  others.pop_back();
  EXPECT_TRUE(Render().ok());
  others.clear();
  backend_.reports.StopAll();
  EXPECT_TRUE(absl::IsUnavailable(Render()));
}

TEST_F(RenderFigureTest, NamesTheFieldThatMakesNoSense) {
  TrainAll();
  const auto message = [this] { return std::string(Render().message()); };
  request_.set_kind("pie");
  EXPECT_THAT(message(),
              testing::AllOf(HasSubstr("kind"), HasSubstr("pie"), HasSubstr("sensitivity")));
  request_.set_kind("loss");
  request_.set_format(v1::FigureFormat::unspecified);
  EXPECT_THAT(message(), testing::AllOf(HasSubstr("format"), HasSubstr("svg, pdf or png")));
  request_.set_format(v1::FigureFormat::svg);
  for (const double width : {0.0, -1.0, 100.0, std::numeric_limits<double>::quiet_NaN()}) {
    request_.set_width(width);
    EXPECT_THAT(message(), testing::AllOf(HasSubstr("width"), HasSubstr("2 to 12")));
  }
}

TEST_F(RenderFigureTest, DrawsMetricsByBlockOverDepth) {
  TrainAll();
  request_.set_kind("depth");
  EXPECT_EQ(Render().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Render().message()), HasSubstr("evaluation.record"));
}

TEST_F(RenderFigureTest, DrawsAMetricByBlockOverSteps) {
  for (const char* cell : {"pre-s1", "pre-s2", "post-s1", "post-s2"}) {
    stored_.Finish(cell,
                   {{"eval/loss", {{0, 3}, {10, 2}}}, {"gradient/block.3", {{0, .5}, {10, .25}}}});
  }
  request_.set_key("gradient/block.3");
  ASSERT_EQ(Render(), absl::OkStatus());
  EXPECT_THAT(response_.data(), HasSubstr("Gradient norm at block.3"));
  EXPECT_THAT(response_.csv(), HasSubstr("gradient/block.3,post,,10,0.25"));
}

TEST_F(RenderFigureTest, ChecksTheStepOfTheFigureOverDepth) {
  TrainAll();
  request_.set_step(-1);
  EXPECT_THAT(std::string(Render().message()),
              testing::AllOf(HasSubstr("step"), HasSubstr("loss doesn't take a step")));
  request_.set_kind("depth");
  request_.set_step(-2);
  EXPECT_THAT(std::string(Render().message()),
              testing::AllOf(HasSubstr("step"), HasSubstr("-2 is out of range")));
}

TEST_F(RenderFigureTest, SaysWhatThereIsNothingOf) {
  const auto status_of = [this](const char* kind) {
    request_.set_kind(kind);
    return Render();
  };
  EXPECT_EQ(status_of("loss").code(), absl::StatusCode::kFailedPrecondition);
  TrainAll();
  EXPECT_EQ(status_of("sensitivity").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status_of("axis").code(), absl::StatusCode::kFailedPrecondition);
  request_.set_key("no/such");
  EXPECT_THAT(std::string(status_of("loss").message()), HasSubstr("no/such"));
}

TEST(RenderFigureOverAnAxisTest, DrawsTheNumbersThatTheSpecGives) {
  results::StoredGrid stored(absl::StrCat(results::SmallGrid(2), results::kPlacementAxis, R"(
    axes { name: "width" field: "model.width"
           values { number_value: 32 } values { number_value: 8 } values { number_value: 16 } })"));
  for (const char* placement : {"pre", "post"}) {
    for (const int width : {8, 16, 32}) {
      for (const int seed : {1, 2}) {
        stored.Finish(absl::StrCat(placement, "-width", width, "-s", seed),
                      {{"eval/loss", {{0, 3.}, {10, 2. + 1. / width + seed}}}});
      }
    }
  }
  Backend backend;
  backend.store = stored.store();
  v1::RenderFigureRequest request;
  request.mutable_comparison()->set_experiment("experiments/" + stored.experiment());
  request.set_kind("axis");
  request.set_format(v1::FigureFormat::svg);
  v1::RenderFigureResponse response;
  ASSERT_EQ(RenderFigure(&backend, {backend.store, storage::kServer}, nullptr, request, &response),
            absl::OkStatus());
  EXPECT_THAT(response.csv(), StartsWith("axis,setting,value,seed,metric,low,high,n,diverged\n"
                                         "width,pre,8,,3.625,"));
  EXPECT_THAT(response.csv(), HasSubstr("\nwidth,post,32,2,4.03125,,,,\n"));
}

}  // namespace
}  // namespace ablate::service
