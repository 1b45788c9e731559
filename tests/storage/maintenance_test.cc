// Tests deletion in slices, and that blobs are swept exactly when nothing names or pins them.
#include <atomic>
#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "storage/sqlite/connection.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class MaintenanceTest : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(, MaintenanceTest, ::testing::Values(Where::kFile, Where::kMemory),
                         WhereName);

TEST_P(MaintenanceTest, DeletesAnExperimentAndItsOwnRuns) {
  const NewExperiment wanted = MakeExperiment({"mine", "shared"});
  const std::string first = Create(wanted).id;
  const std::string second = Submit({"shared"}).id;
  EXPECT_EQ(CodeOf(store().DeleteExperiment(first)), absl::StatusCode::kFailedPrecondition);
  Train({"mine", "shared"});
  ASSERT_TRUE(store().DeleteExperiment(first).ok());
  // Hidden at once.
  EXPECT_EQ(CodeOf(store().GetExperiment(first)), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf(store().ListCells(first, 0, 9)), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf(store().ChangedCells(first, 0, 9)), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf(store().CancelExperiment(first)), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf(store().DeleteExperiment(first)), absl::StatusCode::kNotFound);
  EXPECT_THAT(Value(store().ListExperiments(kServer, {}, "", 9)), SizeIs(1));
  EXPECT_THAT(Value(store().FindExperiments(kServer, first, 9)), IsEmpty());

  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_EQ(CodeOf(store().GetRun("mine")), absl::StatusCode::kNotFound);
  EXPECT_THAT(Series("shared", "train/loss"), SizeIs(3));
  ExpectConsistent(second);
  // The request may be repeated and makes a new experiment now.
  const CreatedExperiment again = Create(wanted);
  EXPECT_FALSE(again.repeated);
  EXPECT_FALSE(again.cells[0].reused);
  EXPECT_TRUE(again.cells[1].reused);
  EXPECT_THAT(Series("mine", "train/loss"), IsEmpty());
}

TEST_P(MaintenanceTest, ReusesARunWhoseExperimentIsBeingDeleted) {
  const std::string first = Submit({"a"}).id;
  Train({"a"});
  ASSERT_TRUE(store().DeleteExperiment(first).ok());
  const CreatedExperiment second = Submit({"a"});
  ASSERT_TRUE(store().Maintain().ok());
  if (second.cells[0].reused) {
    EXPECT_THAT(Series("a", "train/loss"), SizeIs(3));
  } else {
    EXPECT_EQ(StateOf("a"), RunState::kQueued);  // on file the background may have been first
  }
}

TEST_P(MaintenanceTest, DeletesManyCellsInSlices) {
  std::vector<std::string> fingerprints;
  for (int i = 0; i < 1500; ++i) fingerprints.push_back(absl::StrCat("r", i % 1200));
  const std::string id = Submit(fingerprints).id;
  ASSERT_TRUE(store().CancelExperiment(id).ok());
  ASSERT_TRUE(store().DeleteExperiment(id).ok());
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_THAT(Value(store().FindRuns(kServer, "", 9)), IsEmpty());
  const CreatedExperiment again = Submit({"r0", "r1199"});
  EXPECT_EQ(again.reused, 0u);
}

TEST_P(MaintenanceTest, DeletesALongRunsRows) {
  const std::string id = Submit({"a"}, 500).id;
  Lease lease(&store(), "l", {"a"});
  std::vector<LeaseEvent> events;
  for (uint32_t g = 0; g < 500; ++g) {
    events.push_back(lease.Next("a", MakePoints(1, {MakeColumn("x", {g}, {1})})));
  }
  ASSERT_TRUE(ApplyAndWait(store(), "i1", events).ok());
  ASSERT_TRUE(store().CancelExperiment(id).ok());
  ASSERT_TRUE(store().DeleteExperiment(id).ok());
  ASSERT_TRUE(store().Maintain().ok());
  Submit({"a"});
  EXPECT_THAT(Series("a", "x"), IsEmpty());
  EXPECT_THAT(History("a"), SizeIs(1));
}

// --- Blobs, on file only.

class BlobSweepTest : public StoreTest {
 protected:
  DatasetRecord Data(const std::string& bytes) {
    DatasetRecord dataset;
    dataset.id = absl::StrCat("d-", bytes);
    dataset.display_name = bytes;
    dataset.sha256 = Sha256Hex(bytes);
    return dataset;
  }
  bool Exists(const std::string& bytes) { return BlobExists(Sha256Hex(bytes)); }
  // Publishes the bytes as a data set of its own.
  void Add(const std::string& bytes) {
    Publish(bytes);
    Value(store().AddDataset(Data(bytes)));
  }
  // Copies the database as it is now, for PutBackOlder.
  void KeepOlder() {
    ASSERT_TRUE(store().Maintain().ok());
    std::filesystem::copy_file(database(), folder() + "/older.db");
  }
  void PutBackOlder() {
    Unpin();
    ASSERT_TRUE(store().Maintain().ok());
    Close();
    std::filesystem::rename(database(), folder() + "/newer.db");
    std::filesystem::rename(folder() + "/older.db", database());
    Reopen();
    ASSERT_TRUE(store().Maintain().ok());
  }
  void PutBackNewer() {
    Close();
    std::filesystem::rename(folder() + "/newer.db", database());
    Reopen();
  }

 private:
  std::string database() { return folder() + "/ablate.db"; }
};
INSTANTIATE_TEST_SUITE_P(, BlobSweepTest, ::testing::Values(Where::kFile), WhereName);

TEST_P(BlobSweepTest, SweepsWhatLostItsLastName) {
  Add("data");
  UnpinAndSweep();
  EXPECT_TRUE(Exists("data"));
  ASSERT_TRUE(store().DeleteDataset("d-data").ok());
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_FALSE(Exists("data"));
}

TEST_P(BlobSweepTest, KeepsWhatItSweepsInATrashForDays) {
  const auto trashed = [&](const std::string& bytes) { return IsInTrash(Sha256Hex(bytes)); };
  for (const char* bytes : {"one", "two"}) Add(bytes);
  Unpin();
  ASSERT_TRUE(store().DeleteDataset("d-one").ok());
  ASSERT_TRUE(store().DeleteDataset("d-two").ok());
  while (Exists("one") || Exists("two")) ASSERT_TRUE(store().Maintain().ok());
  EXPECT_TRUE(trashed("one") && trashed("two"));
  Advance(Micros{6} * 24 * 3600 * 1000000);
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_TRUE(trashed("one"));
  // It can be taken back.
  EXPECT_TRUE(store().blobs()->Find(Sha256Hex("two")).ok());
  Value(store().AddDataset(Data("two")));
  Advance(Micros{2} * 24 * 3600 * 1000000);
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_FALSE(trashed("one"));
  EXPECT_TRUE(Exists("two"));
  size_t swept = 0;
  for (const std::string& line : Logged()) {
    size_t count = 0;
    if (absl::StrContains(line, "went to the trash") &&
        absl::SimpleAtoi(line.substr(0, line.find(' ')), &count)) {
      swept += count;
    }
  }
  EXPECT_EQ(swept, 2u);
  EXPECT_THAT(Logged(), Contains(HasSubstr("1 blobs were in the trash for 7 days")));
}

// Once, of 68 blobs none was left two minutes after an older database had been restored.
TEST_P(BlobSweepTest, SweepsNothingWhenTheDatabaseKnowsFewOfTheBlobs) {
  Add("known");
  KeepOlder();
  for (int i = 0; i < 10; ++i) Add(absl::StrCat("later ", i));
  PutBackOlder();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Exists(absl::StrCat("later ", i)));
  EXPECT_THAT(Logged(), Contains(HasSubstr("of the 11 blobs beside the database it does not name "
                                           "10")));
  PutBackNewer();
  ASSERT_TRUE(store().Maintain().ok());
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(store().FindDataset(kServer, absl::StrCat("d-later ", i)).ok());
    EXPECT_TRUE(Exists(absl::StrCat("later ", i)));
  }
}

TEST_P(BlobSweepTest, TakesBackFromTheTrashWhatADatabaseThatIsPutBackNames) {
  for (const char* bytes : {"a", "b", "c"}) Add(bytes);
  KeepOlder();
  Add("later");
  PutBackOlder();
  EXPECT_FALSE(Exists("later"));
  PutBackNewer();
  EXPECT_TRUE(Exists("later")) << "nobody has asked for it, and the trash will be emptied";
  EXPECT_THAT(Logged(), Contains(HasSubstr("1 blobs that the database names were in the trash")));
}

TEST_P(BlobSweepTest, SparesWhatIsPinned) {
  Add("data");
  ASSERT_TRUE(store().DeleteDataset("d-data").ok());
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_TRUE(Exists("data"));
  Value(store().AddDataset(Data("data")));  // "already have it"
  UnpinAndSweep();
  EXPECT_TRUE(Exists("data"));
}

TEST_P(BlobSweepTest, SweepsUploadsThatNobodyNamed) {
  Publish("given up");
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_TRUE(Exists("given up"));
  UnpinAndSweep();
  EXPECT_FALSE(Exists("given up"));
}

TEST_P(BlobSweepTest, SweepsWhatACrashLeft) {
  Add("named");
  UnpinAndSweep();
  // As if the process had ended between publishing and naming, and in the middle of an upload.
  const std::string path = absl::StrCat(folder(), "/blobs/");
  std::filesystem::copy_file(path + Sha256Hex("named"), path + Sha256Hex("lost"));
  std::filesystem::copy_file(path + Sha256Hex("named"), path + "upload-x1y2z3");
  Reopen();
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_TRUE(Exists("named"));
  EXPECT_FALSE(Exists("lost"));
  EXPECT_FALSE(std::filesystem::exists(path + "upload-x1y2z3"));
}

// A worker that published it before a restart is about to send the event that names it.
TEST_P(BlobSweepTest, LeavesWhatAnEarlierProcessLeftToExplicitUpkeepAfterAStart) {
  Publish("lost");
  Reopen();
  // Once the background has swept the third of these, its first pass is over.
  for (const std::string bytes : {"first", "second", "third"}) {
    Add(bytes);
    Unpin();
    ASSERT_TRUE(store().DeleteDataset("d-" + bytes).ok());
    while (Exists(bytes)) std::this_thread::yield();
  }
  EXPECT_TRUE(Exists("lost"));
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_FALSE(Exists("lost"));
}

TEST_P(BlobSweepTest, FollowsARunsStatesAndCheckpoints) {
  const std::string id = Submit({"a"}).id;
  Lease lease(&store(), "l", {"a"});
  const auto resume = [&](uint32_t step, const std::string& bytes) {
    EXPECT_EQ(lease.Send("a", ResumeStateEvent{step, Publish(bytes), bytes.size()}),
              Applied::kApplied);
  };
  resume(10, "state 10");
  lease.Send("a", CheckpointEvent{10, Publish("weights"), 7});
  resume(20, "state 20");
  UnpinAndSweep();
  EXPECT_FALSE(Exists("state 10"));
  // There is one every half minute: they would soon fill the trash.
  EXPECT_FALSE(IsInTrash(Sha256Hex("state 10")));
  EXPECT_TRUE(Exists("state 20"));
  EXPECT_TRUE(Exists("weights"));
  lease.Send("a", FinishedEvent{false, 100});
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_FALSE(Exists("state 20"));
  EXPECT_TRUE(Exists("weights"));
  ASSERT_TRUE(store().DeleteExperiment(id).ok());
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_FALSE(Exists("weights"));
}

// Its upload is still pinned when the next one comes, as under load.
TEST_P(BlobSweepTest, RemovesASupersededStateThatWasHeldWhenItWasFirstSwept) {
  const std::string id = Submit({"a"}).id;
  Lease lease(&store(), "l", {"a"});
  lease.Send("a", Resume(10));
  lease.Send("a", Resume(20));
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_TRUE(Exists("state at 10"));
  UnpinAndSweep();
  EXPECT_FALSE(Exists("state at 10"));
  EXPECT_FALSE(IsInTrash(Sha256Hex("state at 10")));
  EXPECT_THAT(Logged(), Not(Contains(HasSubstr("went to the trash"))));
}

TEST_P(BlobSweepTest, KeepsNoRowOfABlobThatIsGone) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  lease.Send("a", Resume(10));
  lease.Send("a", Resume(20));
  UnpinAndSweep();
  auto db = Value(Connection::OpenFile(folder() + "/ablate.db", Connection::Access::kReadOnly));
  EXPECT_FALSE(Statement(*db, "SELECT 1 FROM loose_blobs").Row());
}

TEST_P(BlobSweepTest, KeepsABlobThatTwoRowsName) {
  Submit({"a", "b"});
  Lease lease(&store(), "l", {"a", "b"});
  lease.Send("a", CheckpointEvent{1, Publish("same"), 4});
  lease.Send("b", ResumeStateEvent{1, Publish("same"), 4});
  lease.Send("b", FinishedEvent{false, 100});
  UnpinAndSweep();
  EXPECT_TRUE(Exists("same"));
}

TEST_P(BlobSweepTest, DropsCheckpointsAfterTheResumeState) {
  Submit({"a"});
  Lease first(&store(), "l1", {"a"});
  first.Send("a", CheckpointEvent{5, Publish("kept"), 4});
  first.Send("a", ResumeStateEvent{10, Publish("state"), 5});
  first.Send("a", CheckpointEvent{15, Publish("undone"), 6});
  first.Send("a", ReleasedEvent{});
  Unpin();
  Lease second(&store(), "l2", {"a"});
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_TRUE(Exists("kept"));
  EXPECT_TRUE(Exists("state"));
  EXPECT_FALSE(Exists("undone"));
}

TEST_P(BlobSweepTest, RefusesEventsWhoseBlobsAreNotPublished) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  const std::string missing = Sha256Hex("never published");
  EXPECT_EQ(CodeOf(ApplyAndWait(store(), "i1", {{"l", 1, CheckpointEvent{5, missing, 1}}})),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CodeOf(ApplyAndWait(store(), "i1", {{"l", 1, ResumeStateEvent{5, "../lock", 1}}})),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Value(store().ListArtifacts("a")), IsEmpty());
}

// One thread adds and deletes a data set, looking for its blob first and uploading it only if it is
// not there; another sweeps all the time. No named blob may ever be missing.
TEST_P(BlobSweepTest, NeverLosesABlobThatIsNamedMeanwhile) {
  std::atomic<bool> stop = false;
  std::thread sweeper([&] {
    while (!stop) EXPECT_TRUE(store().Maintain().ok());
  });
  int uploads = 0;
  for (int i = 0; i < 60; ++i) {
    auto pin = store().blobs()->Find(Sha256Hex("data"));
    if (!pin.ok()) {
      pin = PublishIn(store().blobs(), "data");
      ++uploads;
    }
    ASSERT_TRUE(pin.ok()) << pin.status();
    ASSERT_TRUE(store().AddDataset(Data("data")).ok());
    pin->reset();
    if (i % 3 == 0) std::this_thread::yield();
    EXPECT_EQ(Value(store().blobs()->Read(Sha256Hex("data"), 0, 100)), "data");
    ASSERT_TRUE(store().DeleteDataset("d-data").ok());
  }
  stop = true;
  sweeper.join();
  EXPECT_GE(uploads, 1);
}

}  // namespace
}  // namespace ablate::storage
