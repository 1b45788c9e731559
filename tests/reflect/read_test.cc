// Tests fields of messages as plain values.
#include "proto/reflect/read.h"

#include <google/protobuf/wrappers.pb.h>

#include "ablate/v1/spec.pb.h"
#include "gmock/gmock.h"

namespace ablate::reflect {
namespace {

using ::testing::ElementsAre;

// The only field of a wrapper.
template <typename Wrapper, typename Value>
FieldValue ReadWrapped(const Value& value) {
  Wrapper message;
  message.set_value(value);
  return Read(message, Wrapper::descriptor()->field(0));
}

TEST(ReadTest, WidensEveryKindOfNumber) {
  EXPECT_EQ(std::get<bool>(ReadWrapped<google::protobuf::BoolValue>(true)), true);
  EXPECT_EQ(std::get<int64_t>(ReadWrapped<google::protobuf::Int32Value>(-7)), -7);
  EXPECT_EQ(std::get<int64_t>(ReadWrapped<google::protobuf::Int64Value>(INT64_MIN)), INT64_MIN);
  EXPECT_EQ(std::get<uint64_t>(ReadWrapped<google::protobuf::UInt32Value>(7u)), 7u);
  EXPECT_EQ(std::get<uint64_t>(ReadWrapped<google::protobuf::UInt64Value>(UINT64_MAX)), UINT64_MAX);
  EXPECT_EQ(std::get<double>(ReadWrapped<google::protobuf::FloatValue>(.5f)), .5);
  EXPECT_EQ(std::get<double>(ReadWrapped<google::protobuf::DoubleValue>(.1)), .1);
}

TEST(ReadTest, LeavesTextAsItIs) {
  const std::string bytes("a\0\xff", 3);
  EXPECT_EQ(std::get<std::string>(ReadWrapped<google::protobuf::BytesValue>(bytes)), bytes);
  EXPECT_EQ(std::get<std::string>(ReadWrapped<google::protobuf::StringValue>("é")), "é");
}

TEST(ReadTest, ReadsElementsOfListsAndMaps) {
  v1::ExperimentSpec spec;
  v1::TrainingSpec* training = spec.mutable_base()->mutable_training();
  training->add_checkpoints(100);
  training->add_checkpoints(-1);
  const auto* checkpoints = training->GetDescriptor()->FindFieldByName("checkpoints");
  EXPECT_EQ(std::get<int64_t>(Read(*training, checkpoints, 1)), -1);
  (*spec.add_exclude()->mutable_where())["lr"].set_number_value(2);
  const auto* exclude = spec.GetDescriptor()->FindFieldByName("exclude");
  const auto* message = std::get<const google::protobuf::Message*>(Read(spec, exclude, 0));
  EXPECT_EQ(message, &spec.exclude(0));
  const auto* where = message->GetDescriptor()->FindFieldByName("where");
  const auto* entry = std::get<const google::protobuf::Message*>(Read(*message, where, 0));
  EXPECT_EQ(std::get<std::string>(Read(*entry, where->message_type()->map_key())), "lr");
}

TEST(ReadTest, GivesWhatIsSetInTheOrderOfNumbers) {
  v1::TrainingSpec training;
  training.set_device(v1::Device::cpu);
  training.add_betas(.5);
  training.set_steps(0);
  std::vector<std::string> names;
  for (const auto* field : SetFields(training)) names.push_back(field->name());
  EXPECT_THAT(names, ElementsAre("steps", "betas", "device"));
}

TEST(TextOfTest, IsWhatPeopleWrite) {
  const auto* norms = v1::NormKind::Value_descriptor();
  EXPECT_EQ(TextOf(true), "true");
  EXPECT_EQ(TextOf(false), "false");
  EXPECT_EQ(TextOf(int64_t{-1}), "-1");
  EXPECT_EQ(TextOf(UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(TextOf(1e-5), "1e-05");
  EXPECT_EQ(TextOf(std::string("a b")), "a b");
  EXPECT_EQ(TextOf(EnumNumber{v1::NormKind::rms, norms}), "rms");
  EXPECT_EQ(TextOf(EnumNumber{77, norms}), "77") << "one that came later";
}

TEST(FieldPathTest, TellsWhatIsSet) {
  const auto is_set = [](const v1::BaseSpec& base, const char* path) {
    return FieldPath(v1::BaseSpec::descriptor(), path).IsSet(base);
  };
  v1::BaseSpec base;
  EXPECT_FALSE(is_set(base, "model"));
  EXPECT_FALSE(is_set(base, "model.norm.eps"));
  EXPECT_FALSE(is_set(base, "training.betas"));
  base.mutable_model()->mutable_norm()->set_eps(0);
  base.mutable_training()->add_betas(.5);
  EXPECT_TRUE(is_set(base, "model"));
  EXPECT_TRUE(is_set(base, "model.norm.eps"));
  EXPECT_FALSE(is_set(base, "model.norm.gain"));
  EXPECT_TRUE(is_set(base, "training.betas"));
}

TEST(FieldPathTest, ReadsAndMakesWhatIsAbsent) {
  const FieldPath eps(v1::BaseSpec::descriptor(), "model.norm.eps");
  v1::BaseSpec base;
  EXPECT_EQ(std::get<double>(eps.Read(base)), 0);
  EXPECT_FALSE(base.has_model()) << "reading makes nothing";
  EXPECT_EQ(eps.MutableHolder(&base), base.mutable_model()->mutable_norm());
  EXPECT_FALSE(eps.IsSet(base));
  base.mutable_model()->mutable_norm()->set_eps(.5);
  EXPECT_EQ(std::get<double>(eps.Read(base)), .5);
}

}  // namespace
}  // namespace ablate::reflect
