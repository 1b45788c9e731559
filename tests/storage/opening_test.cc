// Files and folders that are made, migrated, or left alone.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/folder.h"
#include "storage/sqlite/migrations.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class OpeningTest : public FileTest {
 protected:
  std::string Bytes() {
    std::ifstream file(Database(), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  std::unique_ptr<Connection> OpenDatabase() {
    return Value(Connection::OpenFile(Database(), Connection::Access::kReadWrite));
  }
};

// Statements that add run "a", with more columns than every version has.
std::string InsertRun(const std::string& columns, const std::string& values) {
  return absl::StrCat(
      "INSERT INTO runs (name, fingerprint, generation, trajectory, seed, steps, parameters, "
      "device_kind, shape, priority, place, create_time, change, ",
      columns, ") VALUES ('a', 'a', 1, 't', 0, 9, 5, 'cpu', 's', 1, 1, 1, 1, ", values,
      "); INSERT INTO run_specs SELECT id, x'' FROM runs");
}

TEST_F(OpeningTest, MakesAPrivateFolder) {
  auto store = Value(Store::Open(Options()));
  const auto permissions = std::filesystem::status(Options().folder).permissions();
  EXPECT_EQ(permissions, std::filesystem::perms::owner_all);
  EXPECT_EQ(CodeOf(store->Image()), absl::StatusCode::kFailedPrecondition);
}

TEST_F(OpeningTest, RefusesADatabaseThatIsALink) {
  Value(Store::Open(Options()));
  const std::string elsewhere = Options().folder + "/elsewhere.db";
  std::filesystem::rename(Database(), elsewhere);
  std::filesystem::create_symlink("elsewhere.db", Database());
  const absl::Status refused = Store::Open(Options()).status();
  EXPECT_EQ(CodeOf(refused), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("/ablate.db: it is a symbolic link (elsewhere.db); expected the database"));
  std::filesystem::remove(Database());
  std::filesystem::rename(elsewhere, Database());
  EXPECT_TRUE(Store::Open(Options()).ok());
}

TEST_F(OpeningTest, RefusesASecondServer) {
  auto store = Value(Store::Open(Options()));
  const auto second = Store::Open(Options());
  EXPECT_EQ(CodeOf(second), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(second.status().message(), HasSubstr("in use by another server"));
  const pid_t child = fork();
  if (child == 0) _exit(Store::Open(Options()).ok() ? 1 : 0);
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  store.reset();
  EXPECT_TRUE(Store::Open(Options()).ok());
}

// A file in the folder can be removed, and another one locked.
TEST_F(OpeningTest, RefusesASecondServerWhateverIsRemovedFromTheFolder) {
  auto store = Value(Store::Open(Options()));
  std::filesystem::remove(Options().folder + "/lock");
  const auto second = Store::Open(Options());
  EXPECT_EQ(CodeOf(second), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(std::filesystem::exists(Options().folder + "/lock"));
}

TEST_F(OpeningTest, RefusesAFolderThatAnOlderServerHolds) {
  Value(Store::Open(Options())).reset();
  const std::string lock = Options().folder + "/lock";  // what such a server holds
  const int older = open(lock.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(flock(older, LOCK_EX), 0);
  const auto newer = Store::Open(Options());
  EXPECT_EQ(CodeOf(newer), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(newer.status().message(), HasSubstr("in use by another server"));
  close(older);
  EXPECT_TRUE(Store::Open(Options()).ok());
}

// It would name none of them, and all would be swept.
TEST_F(OpeningTest, MakesNoDatabaseBesideBlobs) {
  const std::string blobs = Options().folder + "/blobs";
  {
    auto store = Value(Store::Open(Options()));
    auto writer = Value(store->blobs()->Create());
    ASSERT_TRUE(writer->Append("data").ok());
    // A blob that nothing names may be swept before the store is closed.
    const auto pin = Value(writer->Publish(""));
    DatasetRecord dataset;
    dataset.id = "names-1";
    dataset.display_name = "names";
    dataset.owner = "ada";
    dataset.sha256 = Sha256Hex("data");
    Value(store->AddDataset(dataset));
  }
  const auto refuse = [&] {
    const auto refused = Store::Open(Options());
    EXPECT_EQ(CodeOf(refused), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(refused.status().message(), HasSubstr("1 blobs in " + blobs));
    EXPECT_THAT(refused.status().message(), HasSubstr("put the database back"));
  };
  const std::string kept = folder_.path() + "/kept.db";
  std::filesystem::rename(Database(), kept);
  std::ofstream(Database() + "-wal") << "log";
  refuse();
  EXPECT_FALSE(std::filesystem::exists(Database()));
  EXPECT_TRUE(std::filesystem::exists(Database() + "-wal"));
  std::filesystem::remove(Database() + "-wal");
  std::ofstream(Database()).close();  // as a start that was killed leaves it
  refuse();
  {
    const auto db = OpenDatabase();
    db->Execute("VACUUM; PRAGMA journal_mode = DELETE");  // a file without tables
  }
  refuse();
  std::filesystem::rename(kept, Database());
  EXPECT_TRUE(Store::Open(Options()).ok());
  std::filesystem::remove(Database());
  std::filesystem::rename(blobs, folder_.path() + "/away");
  EXPECT_TRUE(Store::Open(Options()).ok());
}

TEST_F(OpeningTest, RefusesANewerFileAndLeavesItAlone) {
  Value(Store::Open(Options())).reset();
  {
    const auto db = OpenDatabase();
    db->Execute("PRAGMA user_version = 99; DROP TABLE step_times; PRAGMA journal_mode = DELETE");
    ASSERT_TRUE(db->error().ok());
  }
  const std::string before = Bytes();
  const auto refused = Store::Open(Options());
  EXPECT_EQ(CodeOf(refused), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(), HasSubstr("schema version 99"));
  EXPECT_TRUE(Bytes() == before);
  const auto db = OpenDatabase();
  Statement version(*db, "PRAGMA user_version");
  ASSERT_TRUE(version.Row());
  EXPECT_EQ(version.Int(0), 99);
}

TEST_F(OpeningTest, TakesOverAFileOfTheFirstVersion) {
  MakeDatabase(1, InsertRun("state, device_time", "2, 2000"));
  const auto store = Value(Store::Open(Options()));
  const RunRecord run = Value(store->GetRun("a"));
  EXPECT_EQ(run.spent.device_time, 2000);
  EXPECT_EQ(run.spent.contended_time, 0);
  EXPECT_EQ(run.spent.tokens, 0u);
}

TEST_F(OpeningTest, KeepsTheQueueOfAnOlderFileForItsNumericsVersion) {
  MakeDatabase(2, InsertRun("state", "0"));
  const auto store = Value(Store::Open(Options()));
  EXPECT_EQ(Value(store->GetRun("a")).environment, "");
  Lease(store.get(), "l", {"a"}, {"w", "i", "d", "b", "torch", "e", 3});
  EXPECT_EQ(Value(store->GetRun("a")).state, RunState::kFailed);
}

TEST_F(OpeningTest, SettlesTheLeasesOfAFileOfTheSecondVersion) {
  const Micros day = Micros{24} * 3600 * 1000000;
  const std::string insert_leases =
      "INSERT INTO leases (id, name, worker, incarnation, device, build, trainer, acked, touched) "
      "VALUES (1, 'live', 'w', 'i', 'd', 'b', 't', 3, 5), (2, 'old', 'w', 'i', '', '', '', 7, 5), "
      "(3, 'new', 'w', 'i', '', '', '', 8, 86400000000); ";
  MakeDatabase(2, insert_leases + InsertRun("state, lease", "1, 1"));
  StoreOptions options = Options();
  options.now = [] { return day + 10; };
  const auto store = Value(Store::Open(options));
  const auto leases = Value(store->ListLeases());
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(leases[0].lease, "live");
  EXPECT_EQ(leases[0].acked, 3u);
  EXPECT_EQ(Value(store->CheckLease("new", "i", 1)).acked, 8u);
  ASSERT_TRUE(store->Maintain().ok());
  EXPECT_FALSE(Value(store->FindLeaseRights("old")).has_value());
  EXPECT_TRUE(Value(store->FindLeaseRights("new")).has_value());
  EXPECT_TRUE(Value(store->FindLeaseRights("live")).has_value());
}

// They have no growth, so that nothing is kept of them when they end.
TEST_F(OpeningTest, TrainsTheQueueOfAFileOfTheFourthVersion) {
  MakeDatabase(4, InsertRun("state, numerics", "0, 0"));
  const auto store = Value(Store::Open(Options()));
  Lease lease(store.get(), "l", {"a"});
  ASSERT_EQ(lease.granted().size(), 1u);
  EXPECT_FALSE(lease.granted()[0].keep_state);
  EXPECT_EQ(lease.Send("a", MakeLosses(0, 9)), Applied::kApplied);
  EXPECT_EQ(lease.Send("a", FinishedEvent{false, 9}), Applied::kApplied);
  EXPECT_EQ(Value(store->GetRun("a")).origin, "");
}

TEST_F(OpeningTest, TrainsTheQueueOfAFileOfTheSixthVersionByTorch) {
  MakeDatabase(6, InsertRun("state, numerics", "0, 0"));
  const auto store = Value(Store::Open(Options()));
  EXPECT_EQ(Value(store->GetRun("a")).trainer, "torch");
  const auto queue = Value(store->Queue("cpu", {"torch"}, 10));
  ASSERT_EQ(queue.size(), 1u);
  EXPECT_EQ(queue[0].run, "a");
}

TEST_F(OpeningTest, AnalysesCheckpointsOfTheSeventhVersion) {
  MakeDatabase(7, InsertRun("state, numerics, trainer", "2, 0, 'torch'") +
                      "; INSERT INTO artifacts (run, kind, step, blob, bytes, change) "
                      "SELECT id, 'checkpoint', 9, 'h', 1, 1 FROM runs");
  const auto store = Value(Store::Open(Options()));
  EXPECT_THAT(Value(store->OpenAnalyses()), IsEmpty());
  EXPECT_TRUE(store->CreateAnalysis({"x", "signature", "request", {{"a", 9}}, {}}, 1).ok());
  EXPECT_THAT(Value(store->RunAnalyses(kServer, "a", "", 9)), SizeIs(1));
}

TEST_F(OpeningTest, TakesOverDataSetsOfTheSecondVersion) {
  MakeDatabase(2, "INSERT INTO datasets VALUES (1, 'names-1', 'names', 'h', 5, 1, 4, 7)");
  const auto store = Value(Store::Open(Options()));
  EXPECT_EQ(Value(store->FindDataset(kServer, "names-1")).characters, 4u);
  EXPECT_EQ(Value(store->Counts("names-1")).document_lengths, "") << "nobody has counted";
  EXPECT_EQ(Value(store->Counts("names-1")).code_points, 0u);
}

TEST_F(OpeningTest, TakesOverTheEleventhVersionAsEverybodys) {
  MakeDatabase(
      11,
      "INSERT INTO datasets (name, display_name, sha256, bytes, documents, characters, "
      "create_time, "
      "owner, code_points) VALUES ('names-1', 'names', 'h', 5, 1, 4, 7, 'mia', 9); "
      "INSERT INTO experiments (name, title, owner, request_id, request_hash, spec, priority, "
      "state, create_time) VALUES ('e-1', 'e', 'mia', 'r', x'61', x'', 1, 1, 1)");
  const auto store = Value(Store::Open(Options()));
  const DatasetRecord dataset = Value(store->FindDataset({"bob"}, "names"));
  EXPECT_EQ(dataset.owner, "mia");
  EXPECT_EQ(dataset.private_to, "");
  EXPECT_EQ(Value(store->Counts("names-1")).code_points, 9u);
  EXPECT_EQ(Value(store->FindExperiments({"bob"}, "", 9)), std::vector<std::string>{"e-1"});
  EXPECT_TRUE(Value(store->FindRequest("mia", "r", "a")).has_value());
  EXPECT_FALSE(Value(store->FindRequest("bob", "r", "a")).has_value());
}

TEST_F(OpeningTest, RefusesFilesOfOtherPrograms) {
  std::filesystem::create_directories(Options().folder);
  {
    const auto db = OpenDatabase();
    db->Execute("CREATE TABLE theirs (x)");
  }
  const std::string before = Bytes();
  EXPECT_EQ(CodeOf(Store::Open(Options())), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Bytes() == before);
  std::filesystem::remove_all(Options().folder);
  std::filesystem::create_directories(Options().folder);
  std::ofstream(Database()) << std::string(5000, 'x');
  EXPECT_EQ(CodeOf(Store::Open(Options())), absl::StatusCode::kDataLoss);
}

TEST_F(OpeningTest, RefusesAnImageOnFile) {
  StoreOptions options = Options();
  options.image = "x";
  EXPECT_EQ(CodeOf(Store::Open(options)), absl::StatusCode::kInvalidArgument);
}

TEST(NetworkFileSystemTest, KnowsThem) {
  EXPECT_EQ(NetworkFileSystem(0x6969), "NFS");
  EXPECT_EQ(NetworkFileSystem(static_cast<int32_t>(0xff534d42)), "CIFS");  // may come negative
  EXPECT_EQ(NetworkFileSystem(0xef53), "");                                // ext4
  EXPECT_EQ(NetworkFileSystem(0x01021994), "");                            // tmpfs
}

TEST(MigrationsTest, GoForwardStepByStep) {
  auto db = Value(Connection::OpenMemory(""));
  const char* first[] = {"CREATE TABLE t (x) STRICT"};
  const char* valid[] = {"CREATE TABLE t (x INTEGER) STRICT", "ALTER TABLE t ADD COLUMN y INTEGER"};
  const char* broken[] = {valid[0], valid[1], "INSERT INTO t VALUES (1, 2); CREATE TABLE t (x)"};
  const auto version = [&] {
    Statement read(*db, "PRAGMA user_version");
    return read.Row() ? read.Int(0) : -1;
  };
  EXPECT_FALSE(Migrate(*db, first).ok());  // no type: not STRICT
  EXPECT_EQ(version(), 0);
  ASSERT_TRUE(Migrate(*db, absl::MakeConstSpan(valid).subspan(0, 1)).ok());
  EXPECT_EQ(version(), 1);
  EXPECT_FALSE(Migrate(*db, broken).ok());
  EXPECT_EQ(version(), 2);
  EXPECT_FALSE(Statement(*db, "SELECT 1 FROM t").Row());
  ASSERT_TRUE(Migrate(*db, valid).ok());
  EXPECT_EQ(CodeOf(Migrate(*db, absl::MakeConstSpan(valid).subspan(0, 1))),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace ablate::storage
