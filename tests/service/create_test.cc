// Tests CreateExperiment: grids, reuse, request ids, limits, validate_only.
#include <atomic>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "server/lookup/limits.h"
#include "server/service/services.h"
#include "server/submit/analysis_planner.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CreateTest : public ServiceTest {
 protected:
  // Creates it on a store whose disk has only so much room.
  absl::StatusOr<v1::CreateExperimentResponse> CreateOnDisk(uint64_t free, bool validate_only) {
    free_bytes_ = free;
    Backend backend;
    backend.store = &small_disk();
    backend.scheduler = scheduler();
    submit::AnalysisPlanner planner(backend.store, nullptr);  // has nothing to plan
    backend.planner = &planner;
    v1::CreateExperimentRequest request;
    request.set_request_id("r");
    request.set_validate_only(validate_only);
    *request.mutable_spec() = SmallSpec();
    return CreateExperiment(backend, {backend.store, {"somebody"}}, &request);
  }

  storage::Store& small_disk() {
    if (small_disk_ == nullptr) {
      storage::StoreOptions options;
      options.folder = absl::StrCat(folder(), "/data");
      options.free_bytes = [this] { return free_bytes_.load(); };
      small_disk_ = *storage::Store::Open(std::move(options));
    }
    return *small_disk_;
  }

  static size_t ExperimentsIn(storage::Store& store) {
    return store.ListExperiments(storage::kServer, {}, "", 1'000)->size();
  }
  size_t Experiments() { return ExperimentsIn(store()); }

 private:
  std::atomic<uint64_t> free_bytes_ = 0;
  std::unique_ptr<storage::Store> small_disk_;
};

TEST_F(CreateTest, RefusesWhatTheDiskHasNoRoomFor) {
  const uint64_t needed = Preview(SmallSpec()).estimate().bytes();
  const auto refused = CreateOnDisk(needed - 1, false);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              testing::MatchesRegex("the experiment needs about [0-9]+ MB, and .*/data has [0-9]+ "
                                    "MB free. Free disk space, or submit a smaller experiment"));
  EXPECT_EQ(ExperimentsIn(small_disk()), 0u);
  const auto preview = CreateOnDisk(needed - 1, true);
  ASSERT_TRUE(preview.ok()) << preview.status();
  ASSERT_EQ(preview->problems_size(), 1);
  EXPECT_EQ(preview->problems(0).message(), refused.status().message());
}

TEST_F(CreateTest, CountsResumeStatesOnlyOfRunsThatTrainAtOnce) {
  const auto worker = MakeWorker("cpu-train", 2);
  const auto bytes = [this](uint32_t seeds) {
    return Preview(SmallSpec(seeds)).estimate().bytes();
  };
  // Two runs a seed; the fifth has no resume state while all of the first four have theirs.
  EXPECT_LT(bytes(4) - bytes(2), 2 * (bytes(2) - bytes(1)));
  EXPECT_EQ(bytes(8) - bytes(4), 2 * (bytes(4) - bytes(2)));
}

TEST_F(CreateTest, NotesWhatTakesMostOfTheDisk) {
  const uint64_t needed = Preview(SmallSpec()).estimate().bytes();
  const auto plenty = CreateOnDisk(needed * 5 / 4 + 8, true);
  ASSERT_TRUE(plenty.ok()) << plenty.status();
  EXPECT_THAT(plenty->notes(), testing::Not(testing::Contains(HasSubstr("/data has"))));
  const auto most = CreateOnDisk(needed * 5 / 4 - 8, false);
  ASSERT_TRUE(most.ok()) << most.status();
  EXPECT_THAT(most->notes(), testing::Contains(HasSubstr("/data has")));
  EXPECT_EQ(ExperimentsIn(small_disk()), 1u);
}

TEST_F(CreateTest, QueuesTheGridInItsOrder) {
  const v1::CreateExperimentResponse response = Create(SmallSpec(2));
  EXPECT_THAT(response.experiment().name(), testing::MatchesRegex("experiments/small-[a-z2-7]{4}"));
  EXPECT_EQ(response.experiment().owner(), "ada");
  EXPECT_EQ(response.experiment().state(), v1::ExperimentState::ACTIVE);
  EXPECT_EQ(response.experiment().counts().queued(), 4u);
  EXPECT_TRUE(response.experiment().has_create_time());
  EXPECT_FALSE(response.experiment().has_end_time());
  std::vector<std::string> names;
  for (const v1::Cell& cell : response.cells()) names.push_back(cell.name());
  EXPECT_THAT(names, ElementsAre("pre-s0", "pre-s1", "post-s0", "post-s1"));
  EXPECT_EQ(response.cells(3).labels().at("placement"), "post");
  EXPECT_EQ(response.cells(3).seed(), 1u);
  EXPECT_THAT(response.cells(0).run(), testing::StartsWith("runs/"));
  EXPECT_EQ(response.cells(0).state(), v1::RunState::QUEUED);
  EXPECT_EQ(response.reused(), 0u);
  ASSERT_EQ(response.trainers_size(), 1);
  EXPECT_EQ(response.trainers(0).trainer(), "native");
  EXPECT_EQ(response.trainers(0).runs(), 4u);
  EXPECT_EQ(response.trainers(0).why_not_native(), "");
  ASSERT_EQ(response.parameters_size(), 2);
  EXPECT_GT(response.parameters(0).parameters(), 0u);
  EXPECT_GT(response.estimate().device_time().nanos() + response.estimate().device_time().seconds(),
            0);
  EXPECT_GT(response.estimate().bytes(), 0u);
  EXPECT_FALSE(response.estimate().measured());
}

// One trainer for all that ask for auto, and each run counted once.
TEST_F(CreateTest, SaysWhatTrainsTheRunsAndWhyNotNative) {
  v1::ExperimentSpec spec = SmallSpec();
  v1::Setting* batch = spec.mutable_axes(0)->add_settings();
  batch->set_label("batch");
  (*batch->mutable_set())["model.norm.kind"].set_string_value("batch");
  const v1::CreateExperimentResponse torch = Preview(spec);
  ASSERT_EQ(torch.trainers_size(), 1);
  EXPECT_EQ(torch.trainers(0).trainer(), "torch");
  EXPECT_EQ(torch.trainers(0).runs(), 3u);
  EXPECT_EQ(torch.trainers(0).why_not_native(),
            "the native trainer has no BatchNorm where the loss reads last positions alone "
            "(placement=batch)");

  v1::Axis* trainer = spec.add_axes();
  trainer->set_field("training.trainer");
  for (const char* name : {"torch", "auto", "native"}) {
    trainer->add_values()->set_string_value(name);
  }
  v1::Exclusion* no_native = spec.add_exclude();
  (*no_native->mutable_where())["placement"].set_string_value("batch");
  (*no_native->mutable_where())["trainer"].set_string_value("native");
  const v1::CreateExperimentResponse both = Preview(spec);
  ASSERT_EQ(both.trainers_size(), 2);
  EXPECT_EQ(both.trainers(0).trainer(), "native");
  EXPECT_EQ(both.trainers(0).runs(), 2u);
  EXPECT_EQ(both.trainers(1).trainer(), "torch");
  EXPECT_EQ(both.trainers(1).runs(), 3u) << "asked for and chosen, they are the same";
  EXPECT_NE(both.trainers(1).why_not_native(), "");
}

TEST_F(CreateTest, TrainsOnAGpuOnceItsWorkerIsKnown) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_base()->mutable_training()->set_trainer(v1::Trainer::torch);
  v1::ExperimentSpec asked = spec;
  asked.mutable_base()->mutable_training()->set_device(v1::Device::cuda);
  ASSERT_EQ(Preview(asked).problems_size(), 1);
  EXPECT_THAT(Preview(asked).problems(0).message(), HasSubstr("no GPU worker is known"));
  const auto worker = MakeWorker("cuda-0-train", 4);
  EXPECT_EQ(Preview(asked).problems_size(), 0);
  EXPECT_THAT(Preview(spec).notes(),
              testing::Contains("training.device auto is cuda: torch trains on a GPU"));
  EXPECT_EQ(Preview(spec).notes_size(), 1 + Preview(asked).notes_size());
  Create(spec);
  const v1::TrainingSpec training = worker->NextRun().run.spec().spec().training();
  EXPECT_EQ(training.device(), v1::Device::cuda);
  EXPECT_EQ(training.trainer(), v1::Trainer::torch);
  EXPECT_EQ(training.precision(), v1::Precision::float32);
}

TEST_F(CreateTest, TrainsInAPrecisionOfGpusOnAGpu) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_base()->mutable_training()->set_precision(v1::Precision::tf32);
  ASSERT_EQ(Preview(spec).problems_size(), 1);
  EXPECT_THAT(Preview(spec).problems(0).message(),
              HasSubstr("base.training.precision: precision tf32 needs a GPU"));
  const auto worker = MakeWorker("cuda-0-train", 4);
  const v1::CreateExperimentResponse response = Preview(spec);
  EXPECT_EQ(response.problems_size(), 0);
  ASSERT_EQ(response.trainers_size(), 1);
  EXPECT_EQ(response.trainers(0).why_not_native(), "the native trainer computes in float32");
  Create(spec);
  const v1::TrainingSpec training = worker->NextRun().run.spec().spec().training();
  EXPECT_EQ(training.device(), v1::Device::cuda);
  EXPECT_EQ(training.trainer(), v1::Trainer::torch);
  EXPECT_EQ(training.precision(), v1::Precision::tf32);
}

TEST_F(CreateTest, GivesTheSameAnswerToTheSameRequest) {
  v1::CreateExperimentRequest request;
  request.set_request_id("2024-05-01 größe");
  *request.mutable_spec() = SmallSpec();
  (*request.mutable_overrides())["training.steps"].set_number_value(11);
  (*request.mutable_overrides())["training.batch"].set_number_value(3);
  v1::CreateExperimentResponse first, second;
  ASSERT_TRUE(TryCreate(request, &first).ok());
  ASSERT_TRUE(TryCreate(request, &second).ok());
  EXPECT_EQ(first.experiment().name(), second.experiment().name());
  EXPECT_EQ(first.reused(), second.reused());
  EXPECT_EQ(first.cells_size(), second.cells_size());
  EXPECT_EQ(first.experiment().spec().base().training().steps(), 11u);
  EXPECT_EQ(Experiments(), 1u);
}

// A client that lost the answer sends the request again, and the disk has become full.
TEST_F(CreateTest, GivesItsAnswerAgainAlsoWhenItWouldRefuseTheRequestNow) {
  const auto first = CreateOnDisk(UINT64_MAX, false);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto again = CreateOnDisk(0, false);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->experiment().name(), first->experiment().name());
  EXPECT_EQ(again->experiment().spec().DebugString(), first->experiment().spec().DebugString());
  EXPECT_EQ(again->reused(), 0u);
  ASSERT_EQ(again->cells_size(), first->cells_size());
  ASSERT_EQ(again->parameters_size(), first->parameters_size());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(again->cells(i).ShortDebugString(), first->cells(i).ShortDebugString());
    EXPECT_EQ(again->parameters(i).ShortDebugString(), first->parameters(i).ShortDebugString());
  }
  EXPECT_FALSE(again->has_estimate());
  EXPECT_EQ(ExperimentsIn(small_disk()), 1u);
}

TEST_F(CreateTest, RefusesARequestIdThatMeantSomethingElse) {
  v1::CreateExperimentRequest request;
  request.set_request_id("one");
  *request.mutable_spec() = SmallSpec();
  ASSERT_TRUE(TryCreate(request).ok());
  request.set_fresh(true);
  const grpc::Status status = TryCreate(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(ReasonOf(status), "REQUEST_ID_USED");
  EXPECT_EQ(Experiments(), 1u);
}

TEST_F(CreateTest, PreviewsWithoutChangingAnything) {
  const uint64_t before = store().change_number();
  const v1::CreateExperimentResponse preview = Preview(SmallSpec(3));
  EXPECT_TRUE(preview.problems().empty());
  EXPECT_EQ(preview.experiment().name(), "");
  EXPECT_EQ(preview.experiment().counts().queued(), 6u);
  ASSERT_EQ(preview.cells_size(), 6);
  EXPECT_EQ(preview.cells(0).run(), "");
  EXPECT_EQ(preview.cells(0).name(), "pre-s0");
  EXPECT_EQ(preview.parameters_size(), 2);
  EXPECT_GT(preview.estimate().bytes(), 0u);
  EXPECT_EQ(Experiments(), 0u);
  EXPECT_EQ(store().change_number(), before);
}

// Problems of the request, of fields, the grid's size, a cell, the report, an analysis's step, its
// model and the data that it reads.
TEST_F(CreateTest, ListsProblemsOfEveryStageAtOnce) {
  Upload("names.txt", "anna\nbert\ncleo\n");
  v1::CreateExperimentRequest request;
  *request.mutable_spec() = SpecOf(R"(
    base {
      task { documents { dataset: "names.txt" held_out: 1 } }
      model { layers: 1 width: 8 heads: 2 context: 8 }
      training { steps: 10 learning_rate: -1 }
    }
    axes { field: "model.heads" values { number_value: 2 } values { number_value: 3 } }
    limits { runs: 1 }
    report { primary: "eval/los" }
    analyses { spectrum {} at: [77] }
    analyses { name: "site" spectrum { site: "block.7.output" } }
    analyses { name: "prompt" spectrum {} inputs { prompt: "xyz" } })");
  request.mutable_spec()->set_name("stages");
  const std::vector<std::string> fields = {
      "base.training.learning_rate", "limits.runs",
      "axes[0].values[1]",           "report.primary",
      "analyses[0].at[0]",           "analyses[1].spectrum.site",
      "analyses[2].inputs.prompt"};
  std::vector<std::string> found;
  const v1::CreateExperimentResponse preview = Preview(request.spec());
  for (const v1::Problem& problem : preview.problems()) found.push_back(problem.field());
  EXPECT_THAT(found, testing::UnorderedElementsAreArray(fields));
  const grpc::Status status = TryCreate(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), testing::StartsWith("8 problems: request_id: "));
  EXPECT_EQ(FieldOf(status), "request_id");
  EXPECT_EQ(Experiments(), 0u);
}

TEST_F(CreateTest, HoldsRunsAgainstLimitsBesideProblemsOfAnalyses) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.MergeFrom(SpecOf("limits { bytes: 1 } analyses { spectrum {} at: [77] }"));
  const v1::CreateExperimentResponse preview = Preview(spec);
  ASSERT_EQ(preview.problems_size(), 2);
  EXPECT_EQ(preview.problems(0).field(), "analyses[0].at[0]");
  EXPECT_EQ(preview.problems(1).field(), "limits.bytes");
}

TEST_F(CreateTest, SharesRunsWithOtherExperiments) {
  const auto worker = MakeWorker();
  const v1::CreateExperimentResponse first = Create(SmallSpec(1, "first"));
  TrainAll(worker.get(), 2);
  const v1::CreateExperimentResponse preview = Preview(SmallSpec(2, "second"));
  EXPECT_EQ(preview.reused(), 2u);
  EXPECT_EQ(preview.experiment().counts().done(), 2u);
  EXPECT_EQ(preview.cells(0).run(), first.cells(0).run());
  EXPECT_TRUE(preview.cells(0).reused());
  EXPECT_FALSE(preview.cells(1).reused());
  EXPECT_TRUE(preview.estimate().measured());
  const v1::CreateExperimentResponse second = Create(SmallSpec(2, "second"));
  EXPECT_EQ(second.reused(), 2u);
  EXPECT_EQ(second.cells(0).run(), first.cells(0).run());
  EXPECT_EQ(second.cells(0).state(), v1::RunState::DONE);
  EXPECT_EQ(second.experiment().counts().done(), 2u);
  EXPECT_EQ(second.experiment().counts().queued() + second.experiment().counts().running(), 2u);
}

TEST_F(CreateTest, CostsNothingWhenEverythingIsReused) {
  const auto worker = MakeWorker();
  Create(SmallSpec());
  TrainAll(worker.get(), 2);
  v1::ExperimentSpec spec = SmallSpec(1, "again");
  spec.mutable_limits()->mutable_device_time()->set_nanos(1);
  spec.mutable_limits()->set_bytes(1);
  const v1::CreateExperimentResponse again = Create(spec);
  EXPECT_EQ(again.estimate().device_time().seconds(), 0);
  EXPECT_EQ(again.estimate().bytes(), 0u);
  EXPECT_EQ(again.experiment().state(), v1::ExperimentState::ENDED);
}

TEST_F(CreateTest, TrainsAnewWhenAskedTo) {
  const auto worker = MakeWorker();
  const v1::CreateExperimentResponse first = Create(SmallSpec(1, "first"));
  TrainAll(worker.get(), 2);
  const v1::CreateExperimentResponse fresh = Create(SmallSpec(1, "second"), true);
  EXPECT_EQ(fresh.reused(), 0u);
  EXPECT_EQ(fresh.cells(0).run(), first.cells(0).run() + ".2");
}

TEST_F(CreateTest, SaysWhichCellsDifferOnlyInEvaluation) {
  Create(SmallSpec(1, "first"));
  v1::ExperimentSpec spec = SmallSpec(1, "second");
  spec.mutable_base()->mutable_evaluation()->set_every(5);
  const v1::CreateExperimentResponse preview = Preview(spec);
  EXPECT_THAT(preview.differs_only_in_evaluation(), ElementsAre("pre-s0", "post-s0"));
  EXPECT_EQ(preview.reused(), 0u);
}

TEST_F(CreateTest, RefusesByMeasuredTimesAndWarnsByGuesses) {
  v1::CreateExperimentRequest request;
  request.set_request_id("one");
  *request.mutable_spec() = SmallSpec(50, "many");
  const auto set_limit = [&request](int32_t nanos) {
    request.mutable_spec()->mutable_limits()->mutable_device_time()->set_nanos(nanos);
  };
  set_limit(1'000'000);
  const v1::CreateExperimentResponse guessed = Preview(request.spec());
  EXPECT_EQ(guessed.problems_size(), 0);
  EXPECT_THAT(guessed.notes(),
              testing::Contains(testing::MatchesRegex(
                  "limits.device_time: training 100 runs may take about [0-9]+s, more than 0.001s; "
                  "this is a guess.*")));

  const auto worker = MakeWorker();
  Create(SmallSpec());
  TrainAll(worker.get(), 2);  // in 0.1 milliseconds a step
  set_limit(50'000'000);
  const grpc::Status status = TryCreate(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "limits.device_time");
  EXPECT_EQ(status.error_message(),
            "limits.device_time: training 98 runs needs about 1s, more than 0.050s; expected at "
            "least 1s. Raise the limit, or submit a smaller experiment");
  EXPECT_EQ(Experiments(), 1u);
  set_limit(100'000'000);
  const v1::CreateExperimentResponse measured = Preview(request.spec());
  EXPECT_EQ(measured.problems_size(), 0);
  EXPECT_THAT(measured.notes(), testing::Not(testing::Contains(HasSubstr("device_time"))));
}

TEST_F(CreateTest, HoldsALimitOfSpace) {
  v1::CreateExperimentRequest request;
  request.set_request_id("one");
  *request.mutable_spec() = SmallSpec(50);
  request.mutable_spec()->mutable_limits()->set_bytes(10);
  const grpc::Status status = TryCreate(request);
  EXPECT_EQ(FieldOf(status), "limits.bytes");
  EXPECT_THAT(status.error_message(),
              testing::ContainsRegex("needs about [0-9,]+ bytes, more than [0-9,]+ bytes"));
  EXPECT_EQ(Experiments(), 0u);
  request.mutable_spec()->mutable_limits()->clear_bytes();
  EXPECT_TRUE(TryCreate(request).ok());
}

TEST_F(CreateTest, FindsItsDatasetByName) {
  const v1::Dataset dataset = Upload("names.txt", "ada\ngrace\nedsger\nbarbara\n");
  const v1::CreateExperimentResponse response = Create(DocumentsSpec("names.txt"));
  EXPECT_EQ(response.experiment().spec().base().task().documents().dataset(), dataset.name());
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  EXPECT_EQ(run.run.dataset_blob(), dataset.sha256());
  std::string bytes;
  EXPECT_TRUE(worker->ReadBlob(run.lease, dataset.sha256(), &bytes).ok());
  EXPECT_EQ(bytes, "ada\ngrace\nedsger\nbarbara\n");
}

TEST_F(CreateTest, SaysWhichDatasetWasMeant) {
  Upload("names.txt", "ada\ngrace\n");
  v1::CreateExperimentRequest request;
  request.set_request_id("one");
  *request.mutable_spec() = SpecOf(R"(
    name: "names" base { task { documents { dataset: "nams.txt" } } })");
  const grpc::Status status = TryCreate(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "base.task.documents.dataset");
  EXPECT_THAT(status.error_message(), HasSubstr("names.txt"));
}

TEST_F(CreateTest, RefusesASpecOfMoreThanAMebibyteBeforeItIsRead) {
  v1::CreateExperimentRequest request;
  request.set_request_id("one");
  *request.mutable_spec() = SmallSpec();
  v1::Axis* axis = request.mutable_spec()->add_axes();
  axis->set_field("training.learning_rate");
  while (request.ByteSizeLong() <= lookup::kMaxSpecBytes) {
    for (int i = 0; i < 10'000; ++i) axis->add_values();
  }
  for (const bool validate_only : {false, true}) {
    request.set_validate_only(validate_only);
    const grpc::Status status = TryCreate(request);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(FieldOf(status), "spec");
    EXPECT_EQ(status.error_message(),
              absl::StrCat("spec: the request has ", text::Grouped(request.ByteSizeLong()),
                           " bytes; expected at most 1,048,576"));
  }
  EXPECT_EQ(Experiments(), 0u);
}

TEST_F(CreateTest, CountsValuesBeforeItLooksAtThem) {
  v1::ExperimentSpec spec = SmallSpec();
  v1::Axis* axis = spec.add_axes();
  axis->set_field("training.learning_rate");
  for (int i = 0; i < 400'000; ++i) axis->add_values();
  const v1::CreateExperimentResponse preview = Preview(spec);
  ASSERT_EQ(preview.problems_size(), 1);
  EXPECT_EQ(preview.problems(0).message(), "axes[1].values: 400,000 entries; expected 1 to 1,000");
}

TEST_F(CreateTest, KeepsItsAnswerBelowTheLimitOfAMessageWhenTheSpecIsLarge) {
  v1::ExperimentSpec spec = SmallSpec();
  v1::Axis* axis = spec.add_axes();
  axis->set_name("recipe");
  const std::pair<const char*, double> writes[] = {
      {"training.learning_rate", .01}, {"training.weight_decay", .1}, {"training.clip", 1},
      {"training.eps", 1e-8},          {"training.steps", 10},        {"training.batch", 2},
      {"evaluation.every", 5},         {"model.norm.eps", 1e-5},      {"model.layers", 1}};
  for (int i = 0; i < 1'000 && spec.ByteSizeLong() < 1'000'000; ++i) {
    v1::Setting* setting = axis->add_settings();
    setting->set_label(absl::StrCat("r", i, std::string(25, 'x')));
    for (const auto& [path, value] : writes) {
      (*setting->mutable_set())[path].set_number_value(value);
    }
    (*setting->mutable_set())["training.learning_rate"].set_number_value(.001 * (i + 1));
  }
  spec.mutable_seeds()->set_count(5);
  spec.mutable_limits()->set_runs(10'000);
  // Clients in other languages accept 4 MiB, as this one does.
  EXPECT_GT(spec.ByteSizeLong(), 300'000u);
  EXPECT_LT(Preview(spec).ByteSizeLong(), size_t{4} << 20);
  EXPECT_EQ(Create(spec).experiment().counts().queued(), 10'000u);
}

TEST_F(CreateTest, KeepsItsAnswerBelowTheLimitOfAMessage) {
  v1::ExperimentSpec spec = SmallSpec(10'000);
  spec.mutable_axes(0)->set_name(std::string(40, 'p'));
  v1::Setting* none = spec.mutable_axes(0)->add_settings();
  none->set_label(std::string(30, 'n'));
  (*none->mutable_set())["model.norm.placement"].set_string_value("none");
  spec.mutable_limits()->set_runs(30'000);
  const v1::CreateExperimentResponse response = Create(spec);
  EXPECT_LT(response.ByteSizeLong(), size_t{4} << 20);
  EXPECT_GT(response.cells_size(), 1'000);
  EXPECT_LT(response.cells_size(), 30'000);
  EXPECT_EQ(response.notes(response.notes_size() - 1),
            absl::StrCat("the answer has the first ", response.cells_size(),
                         " of 30000 cells; ListRuns has all"));
  EXPECT_EQ(response.experiment().counts().queued(), 30'000u);
}

TEST_F(CreateTest, RefusesAModelThatTheLargestWorkerHasNoMemoryFor) {
  const auto worker = MakeWorker();
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_base()->mutable_model()->set_layers(100);
  spec.mutable_base()->mutable_model()->set_width(8192);
  const v1::CreateExperimentResponse response = Preview(spec);
  ASSERT_EQ(response.problems_size(), 1);
  EXPECT_EQ(response.problems(0).field(), "base.model.width");
  EXPECT_THAT(response.problems(0).message(),
              testing::MatchesRegex(".*100 layers of width 8,192 make 80,5[0-9,]* parameters.* "
                                    "2[.]6 TB of memory, and the largest device has 4[.]0 GB.*"));
  EXPECT_EQ(response.cells_size(), 0);
}

TEST_F(CreateTest, TakesTheFirstWorkerToBeOnThisMachine) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_base()->mutable_model()->set_layers(200);
  spec.mutable_base()->mutable_model()->set_width(8192);
  spec.mutable_base()->mutable_model()->mutable_feed_forward()->set_hidden(65'536);
  ASSERT_EQ(Preview(spec).problems_size(), 1);
  EXPECT_THAT(Preview(spec).problems(0).message(), HasSubstr("takes at least 8.6 TB of memory"));
}

TEST_F(CreateTest, NamesADatasetThatCannotBeReadInsteadOfBlamingATunedAxis) {
  const v1::Dataset dataset = Upload("names.txt", "ada\ngrace\nedsger\nbarbara\n");
  const std::string id = dataset.name().substr(std::string("datasets/").size());
  v1::ExperimentSpec spec = DocumentsSpec("names.txt");
  spec.MergeFrom(SpecOf(R"(axes { name: "context" field: "model.context" tune: true
                                  values { number_value: 16 } values { number_value: 32 } })"));
  EXPECT_EQ(Preview(spec).problems_size(), 0) << "neither cuts a document";
  ASSERT_TRUE(store().KeepCounts(id, {}).ok());  // as an older version left it
  ASSERT_TRUE(std::filesystem::remove(absl::StrCat(folder(), "/blobs/", dataset.sha256())));
  const v1::CreateExperimentResponse preview = Preview(spec);
  ASSERT_EQ(preview.problems_size(), 1);
  EXPECT_EQ(preview.problems(0).field(), "base.task.documents.dataset");
  EXPECT_THAT(preview.problems(0).message(),
              HasSubstr(absl::StrCat("the text of data set ", id, " can't be read")));
}

TEST_F(CreateTest, NotesWhatTheContextCutsAlsoOfDataThatNobodyHasMeasured) {
  const v1::Dataset dataset = Upload("names.txt", "ada\r\ngrace\n\nedsger\nbarbara\n");
  const std::string id = dataset.name().substr(std::string("datasets/").size());
  EXPECT_EQ(store().Counts(id)->document_lengths, "7 3:1 5:1 6:1 7:1");
  const v1::ExperimentSpec spec = DocumentsSpec("names.txt", 6);
  constexpr char kNote[] = "50 % of documents are longer than context 6 and are cut; longest 8";
  EXPECT_THAT(Preview(spec).notes(), ElementsAre(kNote));
  ASSERT_TRUE(store().KeepCounts(id, {}).ok());  // as an older version left it
  EXPECT_THAT(Preview(spec).notes(), ElementsAre(kNote));
  EXPECT_EQ(store().Counts(id)->document_lengths, "7 3:1 5:1 6:1 7:1") << "counted once";
}

// 11 characters with the line ends: the last 4 are for validation.
constexpr char kThreeLines[] = "abc\r\n\ndef\ngh";

v1::ExperimentSpec TextSpec() {
  return SpecOf(R"(
    name: "text"
    base {
      task { text { dataset: "text.txt" validation: 0.3 } } model { layers: 1 width: 8 heads: 2 context: 3 }
    })");
}

TEST_F(CreateTest, TrainsADataSetAsOneText) {
  const v1::Dataset dataset = Upload("text.txt", kThreeLines);
  EXPECT_EQ(dataset.characters(), 8u) << "without the line end";
  v1::ExperimentSpec spec = TextSpec();
  spec.mutable_base()->mutable_model()->set_context(2);
  const v1::CreateExperimentResponse created = Create(spec);
  EXPECT_THAT(created.notes(),
              ElementsAre("evaluation scores 2 tokens in 1 window of context 2; the last 1 of 4 "
                          "validation tokens is left out"));
  const v1::Run run = GetRun(created.cells(0).run());
  EXPECT_EQ(run.resolved_spec().spec().task().text().dataset(), dataset.name());
  const auto worker = MakeWorker();
  EXPECT_EQ(worker->NextRun().run.dataset_blob(), dataset.sha256());
}

TEST_F(CreateTest, CountsWhatATextHasInAHomeMadeBefore) {
  const v1::Dataset dataset = Upload("text.txt", kThreeLines);
  const std::string id = dataset.name().substr(std::string("datasets/").size());
  const storage::DatasetCounts counts = *store().Counts(id);
  EXPECT_EQ(counts.code_points, 8u);
  EXPECT_EQ(counts.line_ends, 3u);
  const v1::CreateExperimentResponse before = Preview(TextSpec());
  EXPECT_EQ(before.problems_size(), 0);
  // A version that had no texts has counted documents only.
  ASSERT_TRUE(store().KeepCounts(id, {counts.document_lengths, 0, 0}).ok());
  EXPECT_EQ(Preview(TextSpec()).DebugString(), before.DebugString());
  EXPECT_EQ(store().Counts(id)->code_points, 8u) << "counted once";
}

TEST_F(CreateTest, ReadsNoDataSetAgainWhoseDocumentsAreCounted) {
  const v1::Dataset dataset = Upload("names.txt", "ada\ngrace\nedsger\nbarbara\n");
  const std::string id = dataset.name().substr(std::string("datasets/").size());
  const storage::DatasetCounts counts = *store().Counts(id);
  // A version that had no texts has counted documents only.
  ASSERT_TRUE(store().KeepCounts(id, {counts.document_lengths, 0, 0}).ok());
  EXPECT_EQ(Preview(DocumentsSpec("names.txt", 6)).problems_size(), 0);
  EXPECT_EQ(store().Counts(id)->code_points, 0u);
}

TEST_F(CreateTest, RefusesATextThatIsTooShort) {
  Upload("text.txt", kThreeLines);
  v1::ExperimentSpec spec = TextSpec();
  spec.mutable_base()->mutable_model()->set_context(4);
  const v1::CreateExperimentResponse preview = Preview(spec);
  ASSERT_EQ(preview.problems_size(), 1);
  EXPECT_EQ(preview.problems(0).field(), "base.model.context");
  EXPECT_EQ(preview.problems(0).message(),
            "base.model.context: with context 4 and validation 0.3, text.txt has 7 training and 4 "
            "validation tokens, and needs 5 of each; expected a context of at most 3, a validation "
            "that leaves enough of both, or a longer text");
}

}  // namespace
}  // namespace ablate::service
