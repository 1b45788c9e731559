// Tests labels on a shared server: which experiments get an analysis's numbers as metrics, and who
// may cancel or remove the analysis.
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/service/sharing_fixture.h"

namespace ablate::service {
namespace {

using storage::Role;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AnalysisLabelsTest : public SharingTest {
 protected:
  // mia's experiment of two runs, whose file asks for their spectra.
  std::string CreateHers() {
    v1::CreateExperimentRequest request;
    *request.mutable_spec() = SmallSpec(1, "hers");
    request.mutable_spec()->MergeFrom(SpecOf("analyses { spectrum {} }"));
    request.set_request_id("00000000-0000-4000-8000-hers");
    v1::CreateExperimentResponse response;
    const grpc::Status made =
        CallAs(mia_, &v1::Experiments::Stub::CreateExperiment, request, &response);
    EXPECT_TRUE(made.ok()) << made.error_message();
    return response.experiment().name();
  }
  // Asks about the experiment's first cell.
  v1::CreateAnalysisRequest Request(const std::string& experiment, const std::string& text) {
    auto request = FromText<v1::CreateAnalysisRequest>(text);
    request.add_subjects()->set_experiment(experiment);
    request.mutable_subjects(0)->set_cell(Rows(experiment)[0].cell());
    return request;
  }
  grpc::Status CreateAs(const std::string& secret, const v1::CreateAnalysisRequest& request,
                        v1::CreateAnalysisResponse* response) {
    response->Clear();
    return CallAs(secret, &v1::Analyses::Stub::CreateAnalysis, request, response);
  }
  grpc::Status RemoveAs(const std::string& secret, const std::string& name) {
    return CallAs(secret, &v1::Analyses::Stub::DeleteAnalysis,
                  Named<v1::DeleteAnalysisRequest>(name));
  }
  grpc::Status CancelAs(const std::string& secret, const std::string& name) {
    return CallAs(secret, &v1::Analyses::Stub::CancelAnalysis,
                  Named<v1::CancelAnalysisRequest>(name));
  }

  const std::string mia_ = SecretOf("mia", Role::kMember);
  const std::string bob_ = SecretOf("bob", Role::kMember);
};

TEST_F(AnalysisLabelsTest, AreTheOwnersToGive) {
  const std::string hers = CreateHers();
  const auto worker = MakeWorker();
  TrainAll(worker.get(), 2);
  v1::CreateAnalysisRequest weights = Request(hers, "analysis { weights {} }");
  v1::CreateAnalysisResponse response;
  ASSERT_TRUE(CreateAs(bob_, weights, &response).ok());
  EXPECT_THAT(response.unlabelled(), ElementsAre(hers));
  const std::string his = response.analysis().name();

  weights.set_label("mine");
  const grpc::Status refused = CreateAs(bob_, weights, &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(ReasonOf(refused), "NOT_YOURS");
  EXPECT_THAT(refused.error_message(), HasSubstr("only mia or an admin may label metrics"));
  weights.set_validate_only(true);
  ASSERT_TRUE(CreateAs(bob_, weights, &response).ok());
  ASSERT_EQ(response.problems_size(), 1);
  EXPECT_EQ(response.problems(0).field(), "label");

  // bob's experiment has left the label to her.
  v1::CreateAnalysisRequest longer = Request(hers, "analysis { weights {} } seed: 1");
  ASSERT_TRUE(CreateAs(mia_, longer, &response).ok());
  EXPECT_THAT(response.unlabelled(), IsEmpty());
  const std::string of_mia = response.analysis().name();
  longer.set_label("of-admin");
  longer.set_seed(2);
  EXPECT_TRUE(CreateAs(root_.token(), longer, &response).ok());

  EXPECT_EQ(RemoveAs(bob_, of_mia).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(RemoveAs(bob_, his).ok());
  EXPECT_TRUE(RemoveAs(root_.token(), of_mia).ok());
  EXPECT_EQ(RemoveAs(mia_, of_mia).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(AnalysisLabelsTest, StayWithAnExperimentWhoseAnalysesAnotherAskedForFirst) {
  const std::string hers = CreateHers();
  const auto worker = MakeWorker();
  // Trains the next run, whose primary metric is there.
  const auto train = [&worker] {
    const FakeWorker::Leased run = worker->NextRun();
    worker->Started(run);
    worker->Points(run, {{"eval/loss", {10}, {1}}}, 10);
    worker->Checkpoint(run, 10, "weights of " + run.run.run());
    worker->Finished(run, 10);
    worker->Settle();
    return run.run.run();
  };
  auto request = FromText<v1::CreateAnalysisRequest>("analysis { spectrum {} }");
  request.add_subjects()->set_run("runs/" + train());
  v1::CreateAnalysisResponse response;
  ASSERT_TRUE(CreateAs(bob_, request, &response).ok());
  const std::string his = response.analysis().name();
  train();
  Context context;
  const auto reader =
      experiments_->WatchExperiment(&context, Named<v1::WatchExperimentRequest>(hers));
  v1::ExperimentEvent event;
  while (!Get(hers).analyses().planned() && reader->Read(&event)) {
  }
  context.TryCancel();
  reader->Finish();
  const grpc::Status refused = CancelAs(bob_, his);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), HasSubstr(absl::StrCat(hers, ", which asks for ", his)));
  EXPECT_EQ(RemoveAs(bob_, his).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(CancelAs(root_.token(), his).ok());
}

}  // namespace
}  // namespace ablate::service
