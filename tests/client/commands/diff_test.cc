// Tests `diff`: request and output.
#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::HasSubstr;

class DiffTest : public ClientTest {
 protected:
  DiffTest() {
    answers_.diff = [this](const v1::DiffExperimentsRequest& request,
                           v1::DiffExperimentsResponse* response) {
      request_ = request;
      *response = response_;
      return absl::OkStatus();
    };
    response_.set_left("experiments/small-aaaa");
    response_.set_right("runs/bbbb");
    StartServer();
  }
  void Add(const std::string& path, const std::vector<std::string>& left,
           const std::vector<std::string>& right) {
    v1::FieldDifference* field = response_.add_fields();
    field->set_path(path);
    *field->mutable_left() = {left.begin(), left.end()};
    *field->mutable_right() = {right.begin(), right.end()};
  }

  v1::DiffExperimentsRequest request_;
  v1::DiffExperimentsResponse response_;
};

TEST_F(DiffTest, PrintsALineAField) {
  Add("model.norm.placement", {"pre", "post"}, {"pre"});
  Add("report.margin", {}, {"0.01"});
  Add("seeds", {"3", "4", "5", "6"}, {"1", "7"});
  Add("training.learning_rate", {"1", "2", "3", "4", "5", "6", "7", "8", "9"}, {"1"});
  const Outcome outcome = Run({"diff", "small", "runs/bb"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(request_.left(), "experiments/small");
  EXPECT_EQ(request_.right(), "runs/bb");
  EXPECT_EQ(outcome.out,
            "field                   small-aaaa                      runs/bbbb\n"
            "model.norm.placement    pre, post                       pre\n"
            "report.margin           –                               0.01\n"
            "seeds                   3 to 6                          1, 7\n"
            "training.learning_rate  1, 2, 3, 4, 5, 6, 7 and 2 more  1\n");
}

TEST_F(DiffTest, SaysWhereNothingDiffers) {
  const Outcome outcome = Run({"diff", "small/pre-s1", "other/pre-s1"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("no difference"));
  EXPECT_EQ(request_.right(), "experiments/other/pre-s1");
}

}  // namespace
}  // namespace ablate::client
