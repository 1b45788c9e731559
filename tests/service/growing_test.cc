// Tests runs that continue from shorter ones, as clients see them.
#include "absl/strings/str_cat.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

class GrowingTest : public ServiceTest {
 protected:
  // Trains one granted run from its present step; `state`: it sends its final one.
  static void Train(FakeWorker* worker, const FakeWorker::Leased& run, uint32_t steps,
                    bool state = true) {
    worker->Started(run);
    FakeWorker::Series losses{"train/loss", {}, {}};
    for (uint32_t step = run.run.resume_step(); step < steps; ++step) {
      losses.steps.push_back(step);
      losses.values.push_back(1.0 / (step + 1));
    }
    worker->Points(run, {losses}, steps);
    if (state) worker->State(run, steps, absl::StrCat("last state of ", run.run.run()));
    worker->Finished(run, steps);
    worker->Settle();
  }

  std::unique_ptr<FakeWorker> MakeWorkerIn(const std::string& environment) {
    return std::make_unique<FakeWorker>(worker_channel_, "in " + environment, 2, worker::v1::TRAIN,
                                        environment);
  }

  // Trains two runs of 10 steps to their end.
  std::unique_ptr<FakeWorker> TrainShort(const std::string& environment = "") {
    auto worker = MakeWorkerIn(environment);
    first_ = Create(SmallSpec());
    for (int i = 0; i < 2; ++i) {
      const FakeWorker::Leased run = worker->NextRun();
      EXPECT_TRUE(run.run.keep_state());
      Train(worker.get(), run, 10);
    }
    return worker;
  }

  v1::CreateExperimentResponse first_;
};

TEST_F(GrowingTest, SaysBeforehandWhichRunsContinueAndCountsTheirRestAlone) {
  const auto worker = TrainShort();
  const v1::CreateExperimentResponse preview = Preview(SmallSpec(2, "longer", 1'010));
  EXPECT_THAT(preview.notes(), Contains("2 runs continue from step 10 of shorter runs"));
  EXPECT_EQ(preview.reused(), 0u);
  EXPECT_EQ(preview.cells(0).continued_from(), first_.cells(0).run());
  EXPECT_EQ(preview.cells(0).continued_step(), 10u);
  EXPECT_EQ(preview.cells(1).continued_from(), "");
  EXPECT_EQ(preview.cells(1).continued_step(), 0u);
  const v1::CreateExperimentResponse fresh = Preview(SmallSpec(2, "longer", 1'010), true);
  EXPECT_THAT(fresh.notes(), Not(Contains("2 runs continue from step 10 of shorter runs")));
  EXPECT_EQ(fresh.cells(0).continued_from(), "");
  const auto seconds = [](const v1::CreateExperimentResponse& response) {
    const auto& time = response.estimate().device_time();
    return static_cast<double>(time.seconds()) + time.nanos() / 1e9;
  };
  EXPECT_NEAR(seconds(preview) / seconds(fresh), (2 * 1'000 + 2 * 1'010) / (4. * 1'010), 1e-6);
}

TEST_F(GrowingTest, SaysThatAShorterRunHasNoStateToContinueFrom) {
  const auto worker = MakeWorkerIn("");
  Create(SmallSpec());
  for (int i = 0; i < 2; ++i) Train(worker.get(), worker->NextRun(), 10, /*state=*/false);
  constexpr char kNote[] =
      "2 runs start at step 0 instead of step 10 of shorter runs: the saved training state there "
      "doesn't exist (any more)";
  EXPECT_THAT(Preview(SmallSpec(1, "longer", 30)).notes(), Contains(kNote));
  EXPECT_THAT(Preview(SmallSpec(1, "longer", 30), /*fresh=*/true).notes(), Not(Contains(kNote)));
  EXPECT_THAT(Preview(SmallSpec(1, "shorter", 5)).notes(), Not(Contains(kNote)));
}

TEST_F(GrowingTest, ContinuesAndSaysSo) {
  const auto worker = TrainShort();
  const v1::CreateExperimentResponse longer = Create(SmallSpec(1, "longer", 30));
  EXPECT_THAT(longer.notes(), Contains("2 runs continue from step 10 of shorter runs"));
  EXPECT_EQ(longer.cells(1).continued_from(), first_.cells(1).run());
  for (int i = 0; i < 2; ++i) {
    const FakeWorker::Leased run = worker->NextRun();
    EXPECT_EQ(run.run.resume_step(), 10u);
    std::string state;
    EXPECT_TRUE(worker->ReadBlob(run.lease, run.run.resume_blob(), &state).ok());
    EXPECT_THAT(state, testing::StartsWith("last state of "));
    Train(worker.get(), run, 30);
  }
  for (const v1::RunRow& row : Rows(longer.experiment().name())) {
    EXPECT_EQ(row.state(), v1::RunState::DONE);
    EXPECT_EQ(row.continued_step(), 10u);
    EXPECT_EQ(row.summaries(0).count(), 30u);
  }
  const v1::Run run = GetRun(longer.cells(0).run());
  EXPECT_EQ(run.provenance().continued_from(), first_.cells(0).run());
  EXPECT_EQ(run.provenance().continued_step(), 10u);
}

TEST_F(GrowingTest, ContinuesFromTheLongestShorterRun) {
  const auto worker = TrainShort();
  Create(SmallSpec(1, "middle", 20));
  Train(worker.get(), worker->NextRun(), 20);
  Train(worker.get(), worker->NextRun(), 20, /*state=*/false);
  const v1::CreateExperimentResponse preview = Preview(SmallSpec(1, "longer", 30));
  EXPECT_THAT(preview.notes(),
              ElementsAre("1 run continues from step 10 of a shorter run",
                          "1 run continues from step 20 of a shorter run",
                          "1 run starts at step 10 instead of step 20 of a shorter run: the saved "
                          "training state there doesn't exist (any more)",
                          testing::HasSubstr("1 seed can't establish a difference")));
}

TEST_F(GrowingTest, HoldsTheLimitOfDeviceTimeAgainstTheRestAlone) {
  const auto worker = TrainShort();
  v1::ExperimentSpec spec = SmallSpec(1, "longer", 20);
  const auto needed = Preview(spec).estimate().device_time();
  *spec.mutable_limits()->mutable_device_time() = needed;
  EXPECT_EQ(Preview(spec).problems_size(), 0);
  EXPECT_EQ(Preview(spec, /*fresh=*/true).problems_size(), 1);
}

TEST_F(GrowingTest, CountsOnNoStateOfAnEnvironmentThatNoWorkerHas) {
  TrainShort("e1")->Crash();
  const v1::ExperimentSpec longer = SmallSpec(1, "longer", 30);
  const auto other = MakeWorkerIn("e2");
  EXPECT_EQ(Preview(longer).cells(0).continued_step(), 0u);
  const auto same = MakeWorkerIn("e1");
  EXPECT_EQ(Preview(longer).cells(0).continued_step(), 10u);
}

// Adds a setting that the native trainer doesn't support, so that torch trains all.
v1::ExperimentSpec WithBatchNorm(v1::ExperimentSpec spec) {
  v1::Setting* batch = spec.mutable_axes(0)->add_settings();
  batch->set_label("batch");
  (*batch->mutable_set())["model.norm.kind"].set_string_value("batch");
  return spec;
}

TEST_F(GrowingTest, SaysWhichRunsAreStoredFromTheTrainerThatAutoNoLongerTakes) {
  const auto worker = TrainShort();
  constexpr char kFromNative[] =
      "2 runs are stored from the native trainer and will be trained again by torch, so that one "
      "trainer trains them all";
  EXPECT_THAT(Preview(WithBatchNorm(SmallSpec())).notes(), Contains(kFromNative));
  EXPECT_THAT(Preview(WithBatchNorm(SmallSpec(1, "longer", 30))).notes(), Contains(kFromNative))
      << "nor are they continued";
  EXPECT_THAT(Preview(WithBatchNorm(SmallSpec()), /*fresh=*/true).notes(),
              Not(Contains(kFromNative)))
      << "who wants all anew is told nothing";
  v1::ExperimentSpec asked = WithBatchNorm(SmallSpec());
  asked.mutable_base()->mutable_training()->set_trainer(v1::Trainer::torch);
  EXPECT_THAT(Preview(asked).notes(), Not(Contains(kFromNative)));
}

TEST_F(GrowingTest, SaysHowToGoOnWithTheTrainerThatThereWas) {
  const auto worker = MakeWorkerIn("");
  v1::ExperimentSpec first = SmallSpec();
  first.mutable_base()->mutable_training()->set_trainer(v1::Trainer::torch);
  Create(first);
  for (int i = 0; i < 2; ++i) Train(worker.get(), worker->NextRun(), 10);
  constexpr char kFromTorch[] =
      "2 runs are stored from the torch trainer and will be trained again by native; "
      "training.trainer=torch goes on with them";
  EXPECT_THAT(Preview(SmallSpec(2)).notes(), Contains(kFromTorch));
  EXPECT_THAT(Preview(SmallSpec(1, "longer", 30)).notes(), Contains(kFromTorch));
  // If both are requested, nothing is lost.
  v1::ExperimentSpec both = SmallSpec();
  v1::Axis* trainer = both.add_axes();
  trainer->set_field("training.trainer");
  for (const char* name : {"torch", "auto"}) trainer->add_values()->set_string_value(name);
  EXPECT_THAT(Preview(both).notes(), Not(Contains(kFromTorch)));
}

TEST_F(GrowingTest, SaysHowToGoOnWithTheDeviceThatThereWas) {
  const auto worker = MakeWorkerIn("");
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_base()->mutable_training()->set_trainer(v1::Trainer::torch);
  Create(spec);
  for (int i = 0; i < 2; ++i) Train(worker.get(), worker->NextRun(), 10);
  EXPECT_EQ(Preview(spec).reused(), 2u);
  const auto gpu = MakeWorker("cuda-0-train");
  const v1::CreateExperimentResponse there = Preview(spec);
  EXPECT_EQ(there.reused(), 0u);
  constexpr char kFromCores[] =
      "2 runs are stored from device cpu and will be trained again on cuda; training.device=cpu "
      "goes on with them";
  EXPECT_THAT(there.notes(), Contains(kFromCores));
  spec.mutable_base()->mutable_training()->set_device(v1::Device::cpu);
  EXPECT_EQ(Preview(spec).reused(), 2u);
  EXPECT_THAT(Preview(spec).notes(), Not(Contains(kFromCores)));
}

TEST_F(GrowingTest, SaysNothingOfTrainersWhereTheRunsAreReused) {
  const auto worker = TrainShort();
  Create(WithBatchNorm(SmallSpec()));  // queued: by torch
  const auto stored = testing::HasSubstr("are stored from the");
  EXPECT_THAT(Preview(WithBatchNorm(SmallSpec())).notes(), Not(Contains(stored)));
  EXPECT_THAT(Preview(SmallSpec()).notes(), Not(Contains(stored)));
}

}  // namespace
}  // namespace ablate::service
