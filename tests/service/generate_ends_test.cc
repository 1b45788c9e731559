// The ends of a Generate that are not its last sample: a client, a worker or the server that goes.
#include "tests/service/generate_fixture.h"

namespace ablate::service {
namespace {

using testing::HasSubstr;
using worker::v1::Analyze;

TEST_F(GenerateTest, WithdrawsTheAnalysisWhenTheClientLeaves) {
  Train();
  const auto analyst = MakeAnalyst();
  Call call(models_.get(), Request());
  const Analyze analysis = analyst->NextAnalysis();
  call.Cancel();
  EXPECT_EQ(call.Wait().error_code(), grpc::StatusCode::CANCELLED);
  analyst->WaitForWithdrawal(analysis);
  analyst->AnalysisFailed(analysis, absl::CancelledError("withdrawn"));
  Call next(models_.get(), Request());
  analyst->AnalysisResult(analyst->NextAnalysis(), 0, 0);
  EXPECT_TRUE(next.Wait().ok());
}

TEST_F(GenerateTest, IsUnavailableWhenTheWorkerDies) {
  Train();
  const auto analyst = MakeAnalyst();
  Call call(models_.get(), Request());
  analyst->NextAnalysis();
  analyst->Crash();
  scheduler()->Run([](schedule::Scheduler& inside) {
    inside.Exited({"cpu-analysis", true, "killed by SIGSEGV", true});
  });
  const grpc::Status status = call.Wait();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("the worker for analyses"));
  Call next(models_.get(), Request());
  const auto successor = MakeAnalyst();
  successor->AnalysisResult(successor->NextAnalysis(), 0, 0);
  EXPECT_TRUE(next.Wait().ok());
}

TEST_F(GenerateTest, IsUnavailableWhenTheServerEnds) {
  Train();
  const auto analyst = MakeAnalyst();
  Call call(models_.get(), Request());
  analyst->NextAnalysis();
  StopClients();
  EXPECT_EQ(call.Wait().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace ablate::service
