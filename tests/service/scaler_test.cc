// Tests the calls that KEDA makes: without a token of their own, but with one in their requests.
#include <string>

#include "keda/externalscaler.grpc.pb.h"
#include "tests/service/sharing_fixture.h"

namespace ablate::service {
namespace {

using storage::Role;
using testing::HasSubstr;

class ScalerTest : public SharingTest {
 protected:
  externalscaler::ScaledObjectRef Ref(const std::string& token) {
    externalscaler::ScaledObjectRef ref;
    ref.set_name("ablate-workers");
    (*ref.mutable_scalermetadata())["tokenFromEnv"] = token;
    (*ref.mutable_scalermetadata())["lanes"] = "2";
    return ref;
  }
  grpc::Status IsActive(const externalscaler::ScaledObjectRef& ref, bool* active) {
    externalscaler::ExternalScaler::Stub stub(public_channel_);
    Context context;
    externalscaler::IsActiveResponse response;
    grpc::Status status = stub.IsActive(&context, ref, &response);
    *active = response.result();
    return status;
  }
  int64_t Lanes(const externalscaler::ScaledObjectRef& ref) {
    externalscaler::ExternalScaler::Stub stub(public_channel_);
    Context context;
    externalscaler::GetMetricsRequest request;
    *request.mutable_scaledobjectref() = ref;
    externalscaler::GetMetricsResponse response;
    const grpc::Status status = stub.GetMetrics(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.metricvalues_size(), 1);
    return response.metricvalues_size() == 1 ? response.metricvalues(0).metricvalue() : -1;
  }
};

TEST_F(ScalerTest, CountsTheLanesThatItsWorkersWouldTrain) {
  const std::string token = SecretOf("cluster", Role::kWorker);
  bool active = true;
  EXPECT_TRUE(IsActive(Ref(token), &active).ok());
  EXPECT_FALSE(active);
  Create(SmallSpec(3));
  EXPECT_TRUE(IsActive(Ref(token), &active).ok());
  EXPECT_TRUE(active);
  EXPECT_EQ(Lanes(Ref(token)), 6);
  FakeWorker worker(ChannelAs(token), "pod-1", 2);
  worker.NextRun();
  worker.NextRun();
  worker.NextRun();
  worker.NextRun();
  EXPECT_EQ(Lanes(Ref(token)), 4) << "two wait, and one worker of two lanes is busy";
  externalscaler::ScaledObjectRef gpu = Ref(token);
  (*gpu.mutable_scalermetadata())["device"] = "cuda";
  EXPECT_EQ(Lanes(gpu), 0);
  externalscaler::ExternalScaler::Stub stub(public_channel_);
  Context context;
  externalscaler::GetMetricSpecResponse spec;
  ASSERT_TRUE(stub.GetMetricSpec(&context, Ref(token), &spec).ok());
  EXPECT_EQ(spec.metricspecs(0).targetsize(), 2);
}

TEST_F(ScalerTest, TellsNothingWithoutAWorkersToken) {
  Create(SmallSpec());
  bool active = false;
  for (const std::string& token : {std::string(), std::string("wrong")}) {
    EXPECT_EQ(IsActive(Ref(token), &active).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  }
  const grpc::Status reader = IsActive(Ref(SecretOf("bob", Role::kReader)), &active);
  EXPECT_EQ(reader.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(reader.error_message(), HasSubstr("bob has the role reader; expected worker"));
  EXPECT_FALSE(active);
}

TEST_F(ScalerTest, NamesAWrongFieldOfTheTrigger) {
  externalscaler::ScaledObjectRef ref = Ref(SecretOf("cluster", Role::kWorker));
  bool active = false;
  (*ref.mutable_scalermetadata())["lanes"] = "0";
  EXPECT_EQ(FieldOf(IsActive(ref, &active)), "lanes");
  (*ref.mutable_scalermetadata())["lanes"] = "2";
  (*ref.mutable_scalermetadata())["device"] = "tpu";
  EXPECT_EQ(FieldOf(IsActive(ref, &active)), "device");
}

}  // namespace
}  // namespace ablate::service
