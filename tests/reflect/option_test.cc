// Tests declared bounds of fields, as numbers and in words.
#include "proto/reflect/option.h"

#include <cmath>

#include "ablate/v1/spec.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace ablate::reflect {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::OptionInfo Info(const std::string& text) {
  v1::OptionInfo info;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &info)) << text;
  return info;
}

TEST(RangeTextTest, NamesBothEndsAndWhetherTheyAreIncluded) {
  EXPECT_EQ(RangeText(Info("")), "");
  EXPECT_EQ(RangeText(Info("min: -1e6 max: 1e6")), "-1,000,000 to 1,000,000");
  EXPECT_EQ(RangeText(Info("min: 0 below: 1")), "0 to below 1");
  EXPECT_EQ(RangeText(Info("above: 0 max: 0.5")), "above 0, at most 0.5");
  EXPECT_EQ(RangeText(Info("above: 0 below: 1")), "above 0 and below 1");
  EXPECT_EQ(RangeText(Info("min: 1")), "at least 1");
  EXPECT_EQ(RangeText(Info("above: 0")), "above 0");
  EXPECT_EQ(RangeText(Info("min: 2 max: 4096 range: '{min} to keys, at most {max}'")),
            "2 to keys, at most 4,096");
}

TEST(InRangeTest, IsFalseAtExcludedEndsAndForWhatIsNotFinite) {
  const v1::OptionInfo included = Info("min: 0 max: 1"), excluded = Info("above: 0 below: 1");
  for (const double end : {0.0, 1.0}) {
    EXPECT_TRUE(InRange(included, end));
    EXPECT_FALSE(InRange(excluded, end));
  }
  EXPECT_FALSE(InRange(included, -0.1));
  EXPECT_FALSE(InRange(included, 1.1));
  EXPECT_FALSE(InRange(Info(""), std::nan("")));
}

TEST(FindNotAllowedTest, NamesElementsAndListsThatAreTooLong) {
  v1::BaseSpec base;
  base.mutable_model()->set_layers(4);
  EXPECT_THAT(FindNotAllowed(base, ""), IsEmpty());
  base.mutable_training()->add_betas(0.9);
  base.mutable_training()->add_betas(1);
  for (int i = 0; i < 201; ++i) base.mutable_training()->add_checkpoints(-2);
  std::vector<std::string> found;
  for (const NotAllowed& one : FindNotAllowed(base, "base")) {
    found.push_back(one.path + ": " + one.complaint + "; " + one.allowed);
  }
  EXPECT_THAT(found, ElementsAre("base.training.betas[1]: 1 is out of range; 0 to below 1",
                                 "base.training.checkpoints: 201 entries; at most 200"));
}

}  // namespace
}  // namespace ablate::reflect
