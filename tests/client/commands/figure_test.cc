// Tests `figure`: requests, files, and mistakes on the command line.
#include <filesystem>

#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::HasSubstr;

class FigureTest : public ClientTest {
 protected:
  FigureTest() {
    answers_.figure = [this](const v1::RenderFigureRequest& request,
                             v1::RenderFigureResponse* response) {
      request_ = request;
      response->set_data(data_);
      response->set_media_type("image/png");
      response->set_csv(csv_);
      return absl::OkStatus();
    };
    StartServer();
  }

  // How our pictures begin.
  const std::string svg_ =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"3.25in\" height=\"2in\" viewBox=\"0 0 234 "
      "144\" role=\"img\" aria-labelledby=\"loss-title loss-desc\">";

  v1::RenderFigureRequest request_;
  std::string data_ = std::string("\x89PNG\0\xFF", 6);
  std::string csv_ = "step,value\n0,1\n";
};

TEST_F(FigureTest, WritesThePictureByteForByte) {
  const std::string path = folder_ + "/forest.png";
  const Outcome outcome = Run({"figure", "small", "forest", "-o", path, "--key", "eval/accuracy",
                               "--by", "placement", "--baseline", "placement=none", "--at", "100"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, path + ": 6 B\n");
  EXPECT_EQ(Read(path), data_);
  EXPECT_EQ(request_.kind(), "forest");
  EXPECT_EQ(request_.format(), v1::FigureFormat::png);
  EXPECT_EQ(request_.width(), 3.25);
  EXPECT_EQ(request_.key(), "eval/accuracy");
  EXPECT_EQ(request_.comparison().key(), "");
  EXPECT_EQ(request_.comparison().by(), "placement");
  EXPECT_EQ(request_.comparison().at(), 100);
}

TEST_F(FigureTest, WritesTheNumbersBesideIt) {
  const std::string path = folder_ + "/loss.v2.SVG";
  const Outcome outcome =
      Run({"figure", "small", "loss", "-o", path, "--csv", "--width", "double"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(Read(folder_ + "/loss.v2.csv"), csv_);
  EXPECT_EQ(request_.format(), v1::FigureFormat::svg);
  EXPECT_EQ(request_.width(), 6.75);
}

TEST_F(FigureTest, WritesNothingWhereItsNumbersAreTooMany) {
  csv_.clear();
  const std::string path = folder_ + "/loss.svg";
  const Outcome outcome = Run({"figure", "small", "loss", "-o", path, "--csv", "--json"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_THAT(outcome.err, HasSubstr("too many"));
  EXPECT_EQ(outcome.out, "");
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/loss.csv"));
  EXPECT_EQ(Run({"figure", "small", "loss", "-o", path}).code, kSuccess);
}

TEST_F(FigureTest, PrintsTheMessageWithoutThePicture) {
  const Outcome outcome =
      Run({"figure", "small", "loss", "-o", folder_ + "/a.pdf", "--width", "4.5", "--json"});
  EXPECT_EQ(request_.width(), 4.5);
  EXPECT_THAT(outcome.out, HasSubstr("\"media_type\": \"image/png\""));
  EXPECT_THAT(outcome.out, HasSubstr("\"data\": \"\""));
}

TEST_F(FigureTest, WritesAPictureToStandardOutputAsSvg) {
  const Outcome outcome = Run({"figure", "small", "loss", "-o", "-"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(outcome.out, data_);
  EXPECT_EQ(request_.format(), v1::FigureFormat::svg);
  EXPECT_EQ(Run({"figure", "small", "loss", "-o", "-", "--csv"}).err,
            "error: ablate figure: --csv: can't be combined with -o -, which takes one file; "
            "expected the name of a file\n");
}

TEST_F(FigureTest, WritesNothingWhereItsNumbersWouldReplaceAFile) {
  const std::string points = Write("loss.csv", "cell,step,value\n");
  const std::string path = folder_ + "/loss.svg";
  const Outcome refused = Run({"figure", "small", "loss", "-o", path, "--csv"});
  EXPECT_EQ(refused.code, kFailure);
  EXPECT_EQ(refused.err, "error: " + points + " exists already: --force replaces it\n");
  EXPECT_EQ(Read(points), "cell,step,value\n");
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(request_.kind(), "");
  EXPECT_EQ(Run({"figure", "small", "loss", "-o", path, "--csv", "--force"}).code, kSuccess);
  EXPECT_EQ(Read(points), csv_);
}

TEST_F(FigureTest, AsksForAStep) {
  data_ = svg_;
  EXPECT_EQ(Run({"figure", "small", "depth", "-o", folder_ + "/a.svg"}).code, kSuccess);
  EXPECT_FALSE(request_.has_step());
  EXPECT_EQ(
      Run({"figure", "small", "depth", "-o", folder_ + "/a.svg", "--force", "--step", "0"}).code,
      kSuccess);
  EXPECT_TRUE(request_.has_step());
  EXPECT_EQ(request_.step(), 0);
  EXPECT_EQ(
      Run({"figure", "small", "depth", "-o", folder_ + "/a.svg", "--force", "--step", "-1"}).code,
      kSuccess);
  EXPECT_EQ(request_.step(), -1);
  for (const char* step : {"-2", "last", "1.5"}) {
    const Outcome outcome =
        Run({"figure", "small", "depth", "-o", folder_ + "/a.svg", "--force", "--step", step});
    EXPECT_EQ(outcome.code, kUsage);
    EXPECT_THAT(outcome.err, HasSubstr("is not a step; expected a whole number from 0 on, or -1"));
  }
}

TEST_F(FigureTest, SaysWhatMakesNoSense) {
  EXPECT_EQ(Run({"figure", "small", "loss"}).code, kUsage);
  for (const char* output : {"loss", "loss.gif", "a.svg/loss", "loss.unspecified"}) {
    const Outcome outcome = Run({"figure", "small", "loss", "-o", output});
    EXPECT_EQ(outcome.code, kUsage);
    EXPECT_THAT(outcome.err, HasSubstr("has an unknown suffix; expected .svg, .pdf or .png"));
  }
  const Outcome width = Run({"figure", "small", "loss", "-o", "x.svg", "--width", "wide"});
  EXPECT_EQ(width.code, kUsage);
  EXPECT_THAT(width.err, HasSubstr("\"wide\" is not a width; expected column, double"));
}

TEST_F(FigureTest, RefusesAKindOrAWidthAsItDoesAnEnding) {
  data_ = svg_;
  const std::string path = folder_ + "/a.svg";
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"forst"},
       "KIND: \"forst\" is unknown; expected loss, windows, curves, forest, difference, axis, "
       "sensitivity, summary, depth, levels, landscape, eigenvalues, reliability, matrix or "
       "trajectory; did you mean forest?"},
      {{"loss or depth"},
       "KIND: \"loss or depth\" is unknown; expected loss, windows, curves, forest, difference, "
       "axis, sensitivity, summary, depth, levels, landscape, eigenvalues, reliability, matrix or "
       "trajectory"},
      {{"loss", "--width", "1.99"},
       "--width: \"1.99\" is not a width; expected column, double or inches from 2 to 12"},
      {{"loss", "--width", "12.1"},
       "--width: \"12.1\" is not a width; expected column, double or inches from 2 to 12"},
      {{"loss", "--width", "nan"},
       "--width: \"nan\" is not a width; expected column, double or inches from 2 to 12"}};
  for (const auto& [options, message] : cases) {
    const Outcome outcome = Run(With(With({"figure", "small"}, options), {"-o", path}));
    EXPECT_EQ(outcome.code, kUsage) << message;
    EXPECT_EQ(outcome.err, "error: ablate figure: " + message + "\n");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  for (const char* width : {"2", "12"}) {
    EXPECT_EQ(Run({"figure", "small", "loss", "-o", path, "--force", "--width", width}).code,
              kSuccess);
  }
}

}  // namespace
}  // namespace ablate::client
