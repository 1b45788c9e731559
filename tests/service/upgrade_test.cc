// Tests runs that a server stored before the spec had some fields: they keep their identity.
#include "storage/sqlite/connection.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::SizeIs;

// As every run was at that time.
v1::ExperimentSpec ByTorch(v1::ExperimentSpec spec) {
  spec.mutable_base()->mutable_training()->set_trainer(v1::Trainer::torch);
  return spec;
}

class UpgradeTest : public ServiceTest {
 protected:
  // Creates an experiment, then removes fields from its first stored run, as if they were added
  // later.
  void CreateBefore(const v1::ExperimentSpec& spec) {
    const v1::CreateExperimentResponse created = Create(spec);
    experiment_ = created.experiment().name();
    run_ = created.cells(0).run();
    resolved_ = GetRun(run_).resolved_spec();
    before_ = StoredSpec();
    v1::RunSpec older;
    ASSERT_TRUE(older.ParseFromString(before_));
    v1::ModelSpec* model = older.mutable_spec()->mutable_model();
    model->clear_positions();
    model->clear_init();
    model->mutable_norm()->clear_gain();
    older.mutable_spec()->mutable_training()->clear_clip();
    older.mutable_spec()->mutable_training()->clear_trainer();
    before_ = older.SerializeAsString();
    ASSERT_LT(before_.size(), StoredSpec().size());
    auto db = OpenStore();
    storage::Statement(
        *db, "UPDATE run_specs SET spec = ?2 WHERE run = (SELECT id FROM runs WHERE name = ?1)",
        run_.substr(5), storage::Bytes{before_})
        .Run();
    ASSERT_TRUE(db->error().ok()) << db->error();
  }

  std::unique_ptr<storage::Connection> OpenStore() {
    auto db = storage::Connection::OpenFile(folder() + "/ablate.db",
                                            storage::Connection::Access::kReadWrite);
    EXPECT_TRUE(db.ok()) << db.status();
    return *std::move(db);
  }
  std::string StoredSpec() {
    auto db = OpenStore();
    storage::Statement stored(
        *db, "SELECT spec FROM run_specs JOIN runs ON runs.id = run WHERE name = ?1",
        run_.substr(5));
    return stored.Row() ? stored.Text(0) : "";
  }

  std::string experiment_, run_;
  v1::RunSpec resolved_;  // as it was submitted
  std::string before_;    // as it is stored
};

TEST_F(UpgradeTest, GrantsAndShowsARunWithTheDefaultsOfFieldsThatCameLater) {
  v1::ExperimentSpec spec = ByTorch(SmallSpec(1));
  spec.clear_axes();
  CreateBefore(spec);
  EXPECT_EQ(GetRun(run_).resolved_spec().DebugString(), resolved_.DebugString());
  const auto worker = MakeWorker();
  EXPECT_EQ(worker->NextRun().run.spec().DebugString(), resolved_.DebugString());
  EXPECT_EQ(StoredSpec(), before_) << "what is stored stays";
  // It is the same run as one that is created today.
  EXPECT_EQ(Create(spec).cells(0).run(), run_);
  spec.mutable_base()->mutable_training()->clear_trainer();
  EXPECT_NE(Create(spec).cells(0).run(), run_) << "auto takes another trainer";
}

TEST_F(UpgradeTest, ComparesARunAsOneWithTheDefaults) {
  CreateBefore(ByTorch(SmallSpec(1)));
  const auto worker = MakeWorker();
  for (int i = 0; i < 2; ++i) {
    const FakeWorker::Leased run = worker->NextRun();
    worker->Started(run);
    worker->Points(run, {{"eval/loss", {0, 10}, {3., 2.}}}, 10);
    worker->Finished(run, 10);
    worker->Settle();
  }
  const v1::ComparisonRow post = Compare(experiment_).rows(1);
  ASSERT_THAT(post.changed(), SizeIs(1)) << "that a run lacks a field is no change";
  EXPECT_EQ(post.changed(0).path(), "model.norm.placement");
}

TEST_F(UpgradeTest, AsksARunForTextWithTheDefaults) {
  Upload("words", "anna\nbob\ncleo\ndora\n");
  CreateBefore(ByTorch(DocumentsSpec("words")));
  const auto trainer = MakeWorker();
  const FakeWorker::Leased run = trainer->NextRun();
  trainer->Started(run);
  trainer->Checkpoint(run, 10, "weights");
  trainer->Finished(run, 10);
  trainer->Settle();
  const auto analyst = MakeAnalyst();
  Context context;
  v1::GenerateRequest request;
  request.set_run(run_);
  const auto reader = models_->Generate(&context, request);
  const worker::v1::Analyze analysis = analyst->NextAnalysis();
  EXPECT_EQ(analysis.spec().DebugString(), resolved_.DebugString());
  analyst->AnalysisResult(analysis, 0, 0);
  std::vector<v1::GenerateResponse> ignored;
  EXPECT_TRUE(ReadAll(reader.get(), &ignored).ok());
}

}  // namespace
}  // namespace ablate::service
