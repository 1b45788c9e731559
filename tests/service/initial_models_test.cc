// Tests experiments that begin with the parameters of another run (model_from).
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "storage/blobs.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::HasSubstr;

class InitialModelsTest : public ServiceTest {
 protected:
  InitialModelsTest() {
    Upload("words", "anna\nbob\ncleo\ndora\n");
    const v1::CreateExperimentResponse created = Create(DocumentsSpec("words"));
    first_ = created.experiment().name();
    cell_ = created.cells(0).name();
  }

  // Trains the first experiment; returns the hash of its last checkpoint.
  std::string Train(FakeWorker* trainer) {
    const FakeWorker::Leased run = trainer->NextRun();
    trainer->Started(run);
    const std::string blob = trainer->Checkpoint(run, 10, "weights");
    trainer->Finished(run, 10);
    trainer->Settle();
    return blob;
  }

  std::string CellName() { return absl::StrCat(first_.substr(first_.find('/') + 1), "/", cell_); }

  // Returns an experiment that begins with the first one's run.
  v1::ExperimentSpec Next(const std::string& name = "next") {
    v1::ExperimentSpec spec = DocumentsSpec("words");
    spec.set_name(name);
    spec.mutable_base()->clear_model();
    spec.mutable_base()->set_model_from(CellName());
    return spec;
  }

  grpc::Status Try(const v1::ExperimentSpec& spec) {
    v1::CreateExperimentRequest request;
    request.set_request_id(spec.name());
    *request.mutable_spec() = spec;
    return TryCreate(request);
  }

  std::string first_, cell_;
};

TEST_F(InitialModelsTest, GrantsTheCheckpointOfTheRun) {
  const auto trainer = MakeWorker();
  const std::string blob = Train(trainer.get());
  const v1::CreateExperimentResponse created = Create(Next());
  const FakeWorker::Leased run = trainer->NextRun();
  EXPECT_EQ(run.run.initial_blob(), blob);
  EXPECT_EQ(run.run.spec().spec().model_from(), CellName());
  EXPECT_EQ(run.run.spec().spec().model().context(), 8u) << "a field of the first run";
  EXPECT_EQ(run.run.resume_blob(), "");
  trainer->Failed(run, "enough");
}

TEST_F(InitialModelsTest, TrainsNothingWithoutTraining) {
  const auto trainer = MakeWorker();
  Train(trainer.get());
  v1::ExperimentSpec spec = Next();
  spec.mutable_base()->clear_training();
  const v1::CreateExperimentResponse created = Create(spec);
  EXPECT_EQ(GetRun(created.cells(0).run()).steps(), 0u);
}

// The run's grant names the bytes, so they stay while the run does.
TEST_F(InitialModelsTest, KeepsTheCheckpointWhenItsExperimentGoes) {
  const auto trainer = MakeWorker();
  const std::string blob = Train(trainer.get());
  const std::string next = Create(Next()).experiment().name();
  ASSERT_TRUE(TryDelete(first_).ok());
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_TRUE(store().blobs()->Size(blob).ok());
  const FakeWorker::Leased run = trainer->NextRun();
  EXPECT_EQ(run.run.initial_blob(), blob);
  EXPECT_EQ(FieldOf(Try(Next("again"))), "base.model_from") << "nobody can begin with it any more";
  trainer->Started(run);
  trainer->Finished(run, 10);
  trainer->Settle();
  ASSERT_TRUE(TryDelete(next).ok());
  ASSERT_TRUE(store().Maintain().ok());
  const auto blobs = *store().blobs()->List();
  EXPECT_EQ(std::count(blobs.begin(), blobs.end(), blob), 0);
}

TEST_F(InitialModelsTest, RefusesRunsThatAreNotDone) {
  const grpc::Status status = Try(Next());
  EXPECT_EQ(FieldOf(status), "base.model_from");
  EXPECT_THAT(status.error_message(), HasSubstr(CellName() + " is not done"));
  v1::ExperimentSpec spec = Next();
  spec.mutable_base()->set_model_from("gone/s0");
  EXPECT_THAT(Try(spec).error_message(), HasSubstr("gone"));
  spec.mutable_base()->set_model_from("words");
  EXPECT_THAT(Try(spec).error_message(), HasSubstr("\"words\" doesn't name a model"));
  spec.mutable_base()->set_model_from(CellName() + "1");
  EXPECT_THAT(Try(spec).error_message(), HasSubstr("has no cell"));
}

TEST_F(InitialModelsTest, RefusesOtherFieldsThanTheModels) {
  const auto trainer = MakeWorker();
  Train(trainer.get());
  v1::ExperimentSpec spec = Next();
  spec.mutable_base()->mutable_model()->set_layers(7);
  const grpc::Status status = Try(spec);
  EXPECT_EQ(FieldOf(status), "base.model.layers");
}

// The same spec with the same checkpoint is the same run.
TEST_F(InitialModelsTest, SharesRuns) {
  const auto trainer = MakeWorker();
  Train(trainer.get());
  EXPECT_EQ(Create(Next("a")).cells(0).run(), Create(Next("b")).cells(0).run());
}

}  // namespace
}  // namespace ablate::service
