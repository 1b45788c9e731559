// Tests exports: whole experiments as files, in pieces, as the points were reported.
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

class ExportTest : public ServiceTest {
 protected:
  struct Exported {
    grpc::Status status;
    std::map<std::string, std::string> files;  // by path
    std::vector<std::string> order;            // of paths
    size_t largest = 0;                        // chunk, in bytes
  };

  Exported Export(const std::string& experiment, v1::ExportFormat::Value format,
                  const std::vector<std::string>& keys = {}) {
    Context context;
    v1::ExportRequest request;
    request.set_experiment(experiment);
    request.set_format(format);
    for (const std::string& key : keys) request.add_keys(key);
    auto reader = reports_->Export(&context, request);
    Exported exported;
    v1::FileChunk chunk;
    while (reader->Read(&chunk)) {
      if (exported.order.empty() || exported.order.back() != chunk.path()) {
        exported.order.push_back(chunk.path());
      }
      exported.files[chunk.path()] += chunk.data();
      exported.largest = std::max(exported.largest, chunk.data().size());
    }
    exported.status = reader->Finish();
    return exported;
  }

  // Returns a trained experiment of two cells with ten points each.
  std::string Trained() {
    const std::string name = Create(SmallSpec(1)).experiment().name();
    worker_ = MakeWorker();
    TrainAll(worker_.get(), 2);
    return name;
  }

  std::unique_ptr<FakeWorker> worker_;
};

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST_F(ExportTest, WritesEveryPointOfEveryCellAsCsv) {
  const std::string name = Trained();
  const Exported exported = Export(name, v1::ExportFormat::csv);
  ASSERT_TRUE(exported.status.ok()) << exported.status.error_message();
  ASSERT_THAT(exported.order, ElementsAre(""));
  const std::vector<std::string> lines = Lines(exported.files.at(""));
  ASSERT_EQ(lines.size(), 21u);
  const std::string run = Rows(name)[0].run();
  EXPECT_EQ(lines[0], "cell,placement,seed,run,key,step,value");
  EXPECT_EQ(lines[1], absl::StrCat("pre-s0,pre,0,", run, ",train/loss,0,9"));
  EXPECT_EQ(lines[10], absl::StrCat("pre-s0,pre,0,", run, ",train/loss,9,0.1"));
  EXPECT_THAT(lines[11], StartsWith("post-s0,post,0,"));
}

TEST_F(ExportTest, WritesAnObjectAPointAsJsonLines) {
  const Exported exported = Export(Trained(), v1::ExportFormat::jsonl);
  ASSERT_TRUE(exported.status.ok()) << exported.status.error_message();
  const std::vector<std::string> lines = Lines(exported.files.at(""));
  ASSERT_EQ(lines.size(), 20u);
  EXPECT_THAT(lines[0], StartsWith("{\"cell\":\"pre-s0\",\"placement\":\"pre\",\"seed\":0,"));
}

TEST_F(ExportTest, WritesAnEventFileACell) {
  const std::string name = Trained();
  const Exported exported = Export(name, v1::ExportFormat::tensorboard);
  ASSERT_TRUE(exported.status.ok()) << exported.status.error_message();
  EXPECT_THAT(exported.order, ElementsAre(StartsWith("pre-s0/events.out.tfevents."),
                                          StartsWith("post-s0/events.out.tfevents.")));
  EXPECT_EQ(Export(name, v1::ExportFormat::tensorboard).files, exported.files);
}

TEST_F(ExportTest, SendsLongSeriesInPiecesWithoutLossOrRepetition) {
  const std::string name = Create(SmallSpec(1, "small", 1'000'000)).experiment().name();
  worker_ = MakeWorker();
  const FakeWorker::Leased run = worker_->NextRun();
  worker_->Started(run);
  constexpr uint32_t kPoints = 200'000;
  for (uint32_t from = 0; from < kPoints; from += 20'000) {
    std::vector<uint32_t> steps(20'000);
    std::iota(steps.begin(), steps.end(), from);
    std::vector<double> values;
    for (const uint32_t step : steps) values.push_back(std::sin(step));
    worker_->Points(run, {{"train/loss", steps, values}}, from + 20'000);
  }
  worker_->Settle();
  const Exported exported = Export(name, v1::ExportFormat::csv);
  ASSERT_TRUE(exported.status.ok()) << exported.status.error_message();
  EXPECT_LE(exported.largest, 1u << 20);
  const std::vector<std::string> lines = Lines(exported.files.at(""));
  ASSERT_EQ(lines.size(), kPoints + 1);
  for (uint32_t step = 0; step < kPoints; ++step) {
    const std::string& line = lines[step + 1];
    const size_t value = line.rfind(',') + 1;
    const size_t number = line.rfind(',', value - 2) + 1;
    ASSERT_EQ(line.substr(number, value - 1 - number), absl::StrCat(step));
    ASSERT_EQ(std::strtod(line.c_str() + value, nullptr), std::sin(step));
  }
}

TEST_F(ExportTest, GivesWantedKeysOnlyAndNamesOneThatIsNotThere) {
  const std::string name = Create(SmallSpec(1, "small", 100)).experiment().name();
  worker_ = MakeWorker();
  const FakeWorker::Leased run = worker_->NextRun();
  worker_->Started(run);
  worker_->Points(run, {{"eval/loss", {0}, {1}}, {"train/loss", {0}, {NAN}}}, 1);
  worker_->Settle();
  const Exported exported = Export(name, v1::ExportFormat::csv, {"train/loss"});
  ASSERT_TRUE(exported.status.ok()) << exported.status.error_message();
  EXPECT_EQ(Lines(exported.files.at("")).size(), 2u);
  const grpc::Status missing = Export(name, v1::ExportFormat::csv, {"eval/lost"}).status;
  EXPECT_EQ(missing.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(missing), "keys[0]");
  EXPECT_THAT(missing.error_message(), testing::HasSubstr("(did you mean eval/loss?)"));
}

TEST_F(ExportTest, OfAnExperimentWithoutPointsIsAHeadOrNothing) {
  const std::string name = Create(SmallSpec(1)).experiment().name();
  const Exported csv = Export(name, v1::ExportFormat::csv);
  ASSERT_TRUE(csv.status.ok()) << csv.status.error_message();
  EXPECT_EQ(csv.files.at(""), "cell,placement,seed,run,key,step,value\n");
  const Exported events = Export(name, v1::ExportFormat::tensorboard);
  EXPECT_TRUE(events.status.ok()) << events.status.error_message();
  EXPECT_TRUE(events.files.empty());
}

}  // namespace
}  // namespace ablate::service
