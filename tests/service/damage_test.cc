// Tests stored numbers that a disk changed: reported by run and key, while all others are
// delivered.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/sqlite/connection.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class DamageTest : public ServiceTest {
 protected:
  // Two cells of ten points each; the first one's run is damaged.
  void Train() {
    const v1::CreateExperimentResponse created = Create(SmallSpec(1));
    experiment_ = created.experiment().name();
    damaged_ = created.cells(0).run();
    well_ = created.cells(1).run();
    worker_ = MakeWorker();
    TrainAll(worker_.get(), 2);
    ASSERT_TRUE(store().Maintain().ok());
  }
  // Flips a bit of a run's column `data`.
  void Damage(const char* select, const char* update) {
    auto db = storage::Connection::OpenFile(folder() + "/ablate.db",
                                            storage::Connection::Access::kReadWrite);
    ASSERT_TRUE(db.ok()) << db.status();
    std::string bytes;
    {
      storage::Statement stored(**db, select, damaged_.substr(5));
      ASSERT_TRUE(stored.Row());
      bytes = stored.Text(0);
    }
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    storage::Statement(**db, update, damaged_.substr(5), storage::Bytes{bytes}).Run();
    ASSERT_TRUE((*db)->error().ok()) << (*db)->error();
  }
  void DamageChunk() {
    Damage("SELECT data FROM chunks JOIN runs ON runs.id = run WHERE name = ?1",
           "UPDATE chunks SET data = ?2 WHERE run = (SELECT id FROM runs WHERE name = ?1)");
  }
  void DamageSummaries() {
    Damage("SELECT data FROM summaries JOIN runs ON runs.id = run WHERE name = ?1",
           "UPDATE summaries SET data = ?2 WHERE run = (SELECT id FROM runs WHERE name = ?1)");
  }
  // Stores its summaries as another run's.
  void MisplaceSummaries() {
    auto db = *storage::Connection::OpenFile(folder() + "/ablate.db",
                                             storage::Connection::Access::kReadWrite);
    storage::Statement(
        *db,
        "UPDATE summaries SET run = run + 64 WHERE run = (SELECT id FROM runs WHERE name = ?1)",
        damaged_.substr(5))
        .Run();
    ASSERT_TRUE(db->error().ok()) << db->error();
  }
  // Expects DATA_LOSS that names the damaged run.
  void ExpectNamed(const grpc::Status& status, const std::string& what) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
    EXPECT_THAT(status.error_message(), AllOf(HasSubstr(damaged_.substr(5)), HasSubstr(what)));
  }
  void ExpectTheOtherSeries(const std::string& what) {
    for (const uint32_t most : {0u, 5u}) {
      v1::QueryMetricsRequest request;
      request.set_experiment(experiment_);
      request.set_max_points(most);
      std::vector<v1::Series> series;
      ExpectNamed(TryQuery(request, &series), what);
      ASSERT_EQ(series.size(), 1u);
      EXPECT_EQ(series[0].run(), well_);
    }
    Context context;
    v1::ExportRequest request;
    request.set_experiment(experiment_);
    request.set_format(v1::ExportFormat::csv);
    std::vector<v1::FileChunk> chunks;
    ExpectNamed(ReadAll(reports_->Export(&context, request).get(), &chunks), what);
    std::string file;
    for (const v1::FileChunk& chunk : chunks) file += chunk.data();
    EXPECT_EQ(std::count(file.begin(), file.end(), '\n'), 11);  // a head and ten points
    EXPECT_FALSE(absl::StrContains(file, damaged_));
  }
  v1::Comparison CompareAt(int32_t at) {
    v1::CompareRequest request;
    request.set_experiment(experiment_);
    request.set_key("train/loss");
    request.set_at(at);
    return Compare(request);
  }
  // Expects the damaged run to be missing, with a warning.
  void ExpectMissing(const v1::Comparison& comparison) {
    ASSERT_EQ(comparison.rows_size(), 2);
    EXPECT_EQ(comparison.rows(0).n(), 0u);
    EXPECT_EQ(comparison.rows(1).n(), 1u);
    bool told = false;
    for (const v1::ComparisonWarning& warning : comparison.warnings()) {
      told = told || (absl::StrContains(warning.text(), "data are damaged") &&
                      absl::StrContains(warning.text(), damaged_.substr(5)));
    }
    EXPECT_TRUE(told) << comparison.ShortDebugString();
  }

  void ExpectTheOtherRuns(const std::string& what) {
    ExpectTheOtherSeries(what);
    ExpectMissing(CompareAt(-1));
    const std::vector<v1::RunRow> rows = Rows(experiment_);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].summaries_size(), 0);
    EXPECT_THAT(rows[0].failure(), HasSubstr(what));
    EXPECT_GT(rows[1].summaries_size(), 0);
    EXPECT_EQ(rows[1].failure(), "");
  }

  std::string experiment_, damaged_, well_;
  std::unique_ptr<FakeWorker> worker_;
};

TEST_F(DamageTest, OfAChunkLeavesTheOtherSeries) {
  Train();
  DamageChunk();
  ExpectTheOtherSeries("points of train/loss are damaged");
  ExpectMissing(CompareAt(3));
  EXPECT_EQ(CompareAt(-1).rows(0).n(), 1u);  // by its summary, which isn't damaged
}

TEST_F(DamageTest, OfSummariesLeavesTheOtherRuns) {
  Train();
  DamageSummaries();
  ExpectTheOtherRuns("summaries are damaged");
}

TEST_F(DamageTest, OfTheNumberOfSummariesLeavesTheOtherRuns) {
  Train();
  MisplaceSummaries();
  ExpectTheOtherRuns("summaries are missing");
}

TEST_F(DamageTest, IsFoundByACheckOfTheWholeStore) {
  Train();
  const auto check = [this] {
    return AnswerOf(*admin_, &v1::Admin::Stub::CheckStore, v1::CheckStoreRequest());
  };
  v1::CheckStoreResponse found = check();
  EXPECT_THAT(found.problems(), testing::IsEmpty());
  const uint64_t files = found.files();
  const std::string text = "anna\nbob\ncarl\n";
  const v1::Dataset names = Upload("names.txt", text);
  found = check();
  EXPECT_EQ(found.files(), files + 1);
  EXPECT_THAT(found.problems(), testing::IsEmpty());
  DamageChunk();
  found = check();
  ASSERT_EQ(found.problems_size(), 1);
  EXPECT_THAT(found.problems(0),
              AllOf(HasSubstr("database: points of run "), HasSubstr(damaged_.substr(5))));
  const std::string blob = absl::StrCat(folder(), "/blobs/", names.sha256());
  {
    std::ofstream changed(blob, std::ios::in | std::ios::out);
    changed << "hanna";
  }
  found = check();
  ASSERT_EQ(found.problems_size(), 2);
  EXPECT_THAT(found.problems(1),
              AllOf(HasSubstr("data set names.txt: file "), HasSubstr("is damaged")));
  std::filesystem::remove(blob);
  found = check();
  ASSERT_EQ(found.problems_size(), 2);
  EXPECT_THAT(found.problems(1), HasSubstr("is missing"));
}

}  // namespace
}  // namespace ablate::service
