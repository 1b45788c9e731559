// A table of requests that can't be, each with its exact answer; none of them may change anything.
#include "tests/service/bad_requests.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>

#include "tests/service/raw_call.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;

class BadRequestTest : public ServiceTest, public testing::WithParamInterface<BadRequest> {};

// The bytes of a request of the method.
std::string Encode(const std::string& method, const std::string& text) {
  const size_t slash = method.find('/');
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  const auto* service = pool->FindServiceByName("ablate.v1." + method.substr(0, slash));
  const auto* input = service->FindMethodByName(method.substr(slash + 1))->input_type();
  std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(input)->New());
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, message.get())) << text;
  return message->SerializeAsString();
}

TEST_P(BadRequestTest, IsRefusedAndChangesNothing) {
  const BadRequest& bad = GetParam();
  const uint64_t before = store().change_number();
  const std::string bytes = Encode(bad.method, bad.request) + Encode(bad.method, bad.more);
  const RawAnswer answer = RawCall(channel_, "/ablate.v1." + bad.method, {bytes});
  EXPECT_EQ(answer.status.error_code(), bad.code);
  EXPECT_EQ(answer.status.error_message(), bad.message);
  EXPECT_TRUE(answer.messages.empty());
  EXPECT_FALSE(answer.status.error_details().empty());
  EXPECT_EQ(store().change_number(), before);
  EXPECT_TRUE(store().ListExperiments("", 10)->empty());
  EXPECT_TRUE(store().ListDatasets("", 10)->empty());
}

INSTANTIATE_TEST_SUITE_P(Table, BadRequestTest, testing::ValuesIn(BadRequests()),
                         [](const auto& bad) { return bad.param.name; });

// Bytes that are no message of the kind, or hold what text can't.
class BadBytesTest : public ServiceTest {
 protected:
  void ExpectRefused(const std::string& method, const std::string& bytes, grpc::StatusCode code) {
    const RawAnswer answer = RawCall(channel_, "/ablate.v1." + method, {bytes});
    EXPECT_EQ(answer.status.error_code(), code) << answer.status.error_message();
    EXPECT_TRUE(store().ListExperiments("", 10)->empty());
  }
};

TEST_F(BadBytesTest, AreRefusedWhenTheyAreNoMessage) {
  for (const char* method : {"Experiments/CreateExperiment", "Experiments/GetExperiment",
                             "Metrics/QueryMetrics", "Datasets/UploadDataset"}) {
    ExpectRefused(method, "\xff\xff\xff\xff", kInvalid);
  }
}

TEST_F(BadBytesTest, AreRefusedWhenANameIsNoUtf8) {
  ExpectRefused("Experiments/GetExperiment", "\x0a\x02\xff\xfe", kInvalid);
}

TEST_F(BadBytesTest, AreRefusedWhenTheyAreTooMany) {
  ExpectRefused("Experiments/GetExperiment", std::string(5 << 20, 'x'),
                grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(BadBytesTest, AreRefusedWhenAnEnumHasNoSuchNumber) {
  v1::CreateExperimentRequest request;
  request.set_request_id("one");
  *request.mutable_spec() = SmallSpec();
  request.mutable_spec()->mutable_base()->mutable_training()->set_optimizer(
      static_cast<v1::Optimizer::Value>(77));
  const grpc::Status status = TryCreate(request);
  EXPECT_EQ(status.error_code(), kInvalid);
  EXPECT_EQ(FieldOf(status), "base.training.optimizer");
  request.mutable_spec()->mutable_base()->mutable_training()->clear_optimizer();
  request.mutable_spec()->mutable_limits()->set_priority(static_cast<v1::Priority::Value>(-5));
  EXPECT_EQ(FieldOf(TryCreate(request)), "limits.priority");
  EXPECT_TRUE(store().ListExperiments("", 10)->empty());
}

// A field of `bytes` with its tag and length.
std::string Delimited(char tag, const std::string& bytes) {
  std::string field(1, tag);
  size_t size = bytes.size();
  for (; size >= 0x80; size >>= 7) field.push_back(static_cast<char>(0x80 | (size & 0x7f)));
  field.push_back(static_cast<char>(size));
  return field + bytes;
}

TEST_F(BadBytesTest, AreRefusedWhenTheyAreNestedTooDeeply) {
  v1::CreateExperimentRequest request;
  request.set_request_id("one");
  *request.mutable_spec() = SmallSpec();
  // google.protobuf.Value: field 4 is a boolean, 6 a list, and a list's field 1 its values.
  std::string value = "\x20\x01";
  for (int depth = 0; depth < 120; ++depth) value = Delimited(0x32, Delimited(0x0a, value));
  // An entry of the map of overrides, field 3.
  const std::string entry = Delimited(0x0a, "training.steps") + Delimited(0x12, value);
  ExpectRefused("Experiments/CreateExperiment",
                request.SerializeAsString() + Delimited(0x1a, entry), kInvalid);
}

}  // namespace
}  // namespace ablate::service
