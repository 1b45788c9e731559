// Tests the text of analyses.
#include "client/output/analysis_text.h"

#include "gmock/gmock.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;

LabelledAnalysis Analysis(const std::string& label, const std::map<std::string, double>& numbers) {
  LabelledAnalysis one;
  one.label = label;
  for (const auto& [name, value] : numbers) {
    (*one.analysis.mutable_numbers())[name].set_value(value);
  }
  return one;
}

TEST(NumberTextTest, SaysWhyANumberDoesNotExist) {
  v1::AnalysisNumber number;
  number.set_value(1.23456);
  EXPECT_EQ(NumberText(number), "1.235");
  number.set_undefined(v1::UndefinedNumber::TOO_FEW_TOKENS);
  EXPECT_EQ(NumberText(number), "— (too few tokens)");
  number.set_undefined(static_cast<v1::UndefinedNumber::Value>(99));
  EXPECT_EQ(NumberText(number), "—");
}

TEST(ProgressTextTest, SaysAHundredOnlyAtTheEnd) {
  v1::Analysis analysis;
  analysis.set_progress(.999);
  EXPECT_EQ(ProgressText(analysis), "99 %");
  analysis.set_progress(1);
  EXPECT_EQ(ProgressText(analysis), "100 %");
}

TEST(NumbersTextTest, OrdersNumbersInsideNamesByValue) {
  EXPECT_EQ(NumbersText({Analysis("a", {{"block.10", 3}, {"block.2", 2}, {"all", 1}})}, 0),
            "number    value\n"
            "all           1\n"
            "block.2       2\n"
            "block.10      3\n");
}

TEST(NumbersTextTest, HasAColumnForEachAnalysis) {
  EXPECT_EQ(NumbersText({Analysis("pre", {{"x", 1}}), Analysis("post", {{"x", 2}, {"y", 3}})}, 0),
            "number  pre  post\n"
            "x         1     2\n"
            "y               3\n");
}

TEST(NumbersTextTest, HasATableForEachAnalysisWhereColumnsDoNotFit) {
  EXPECT_EQ(NumbersText({Analysis("pre", {{"x", 1}}), Analysis("post", {{"x", 2}})}, 16),
            "pre\nnumber  value\nx           1\n\npost\nnumber  value\nx           2\n");
}

TEST(CostTextTest, SaysWhatIsStored) {
  LabelledResponse made, missing;
  made.response.set_reused(true);
  made.response.mutable_analysis()->set_name("analyses/a1");
  made.response.mutable_analysis()->set_state(v1::AnalysisState::DONE);
  missing.label = "pre-s1";
  missing.response.mutable_cost()->set_forwards(300);
  missing.response.mutable_cost()->set_state_bytes(2'000'000);
  missing.response.mutable_cost()->mutable_device_time()->set_seconds(90);
  made.response.mutable_cost()->mutable_device_time()->set_nanos(110'000'000);
  made.response.mutable_cost()->set_measured(true);
  EXPECT_EQ(CostText({missing, made}, 0),
            "model                             time  forwards  memory  arrays  stored\n"
            "pre-s1            1 min 30 s (a guess)       300  2.0 MB     0 B  no\n"
            "—                               0.11 s         0     0 B     0 B  analyses/a1 DONE\n"
            "total to make: 1  1 min 30 s (a guess)       300             0 B\n");
}

TEST(RemarksTest, SayEachThingOnce) {
  Remarks remarks;
  EXPECT_TRUE(remarks.empty());
  for (const char* label : {"a", "b", "c", "d", "e"}) remarks.Add(label, "no checkpoint");
  remarks.Add("b", "too large");
  remarks.Add("", "of no model");
  EXPECT_THAT(remarks.Lines(),
              ElementsAre("a, b, c and 2 more: no checkpoint", "b: too large", "of no model"));
}

}  // namespace
}  // namespace ablate::client
