// Tests files and folders that are made, migrated, or left alone.
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/folder.h"
#include "storage/sqlite/migrations.h"
#include "tests/storage/older_store.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::HasSubstr;

class OpeningTest : public FileTest {
 protected:
  // Returns the error for a store that isn't opened, and is left as it is.
  std::string Refusal(absl::StatusCode code) {
    const std::string before = ReadText(Database());
    const absl::Status refused = Store::Open(Options()).status();
    EXPECT_EQ(refused.code(), code) << refused;
    EXPECT_TRUE(ReadText(Database()) == before);
    return std::string(refused.message());
  }
};

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

// It would name none of them, and all would be swept.
TEST_F(OpeningTest, MakesNoDatabaseBesideBlobs) {
  const std::string blobs = Options().folder + "/blobs";
  {
    auto store = Value(Store::Open(Options()));
    // A blob that nothing names may be swept before the store is closed.
    const auto pin = PublishIn(store->blobs(), "data");
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
    EXPECT_THAT(refused.status().message(), HasSubstr("Restore the database"));
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
  Alter(Database(), "VACUUM; PRAGMA journal_mode = DELETE");  // a file without tables
  refuse();
  std::filesystem::rename(kept, Database());
  EXPECT_TRUE(Store::Open(Options()).ok());
  std::filesystem::remove(Database());
  std::filesystem::rename(blobs, folder_.path() + "/away");
  EXPECT_TRUE(Store::Open(Options()).ok());
}

TEST_F(OpeningTest, RefusesFilesOfOtherVersionsAndLeavesThemAlone) {
  Value(Store::Open(Options())).reset();
  Alter(Database(), "PRAGMA user_version = 14; PRAGMA journal_mode = DELETE");
  EXPECT_THAT(Refusal(absl::StatusCode::kFailedPrecondition),
              AllOf(HasSubstr("schema version 14"), HasSubstr("start with another folder")));
  Alter(Database(), "PRAGMA user_version = 99; DROP TABLE step_times");
  EXPECT_THAT(Refusal(absl::StatusCode::kFailedPrecondition), HasSubstr("schema version 99"));
}

TEST_F(OpeningTest, RefusesFilesOfOtherPrograms) {
  std::filesystem::create_directories(Options().folder);
  Alter(Database(), "CREATE TABLE theirs (x)");
  Refusal(absl::StatusCode::kFailedPrecondition);
  std::filesystem::remove_all(Options().folder);
  std::filesystem::create_directories(Options().folder);
  std::ofstream(Database()) << std::string(5000, 'x');
  Refusal(absl::StatusCode::kDataLoss);
}

TEST_F(OpeningTest, CountsRunsThatNoLaneHadBegunAsQueued) {
  std::string id;
  {
    const auto store = Value(Store::Open(Options()));
    id = Value(store->CreateExperiment(MakeExperiment({"a", "b", "c"}))).id;
    Lease lease(store.get(), "l", {"a", "b"});
    lease.Send("a", StartedEvent{});
  }
  Alter(Database(),
        absl::StrCat("UPDATE experiments SET queued = 1, leased = 2;", BackToVersion(27)));
  const auto store = Value(Store::Open(Options()));
  EXPECT_EQ(Value(store->GetExperiment(id)).counts.queued, 2u);
  EXPECT_EQ(Value(store->GetExperiment(id)).counts.running, 1u);
}

TEST_F(OpeningTest, RefusesAnImageOnFile) {
  StoreOptions options = Options();
  options.image = "x";
  EXPECT_EQ(CodeOf(Store::Open(options)), absl::StatusCode::kInvalidArgument);
}

TEST(NetworkFileSystemTest, KnowsThem) {
  EXPECT_EQ(NetworkFileSystem(0x6969), "NFS");
  EXPECT_EQ(NetworkFileSystem(static_cast<int32_t>(0xff534d42)), "CIFS");  // may be negative
  EXPECT_EQ(NetworkFileSystem(0xef53), "");                                // ext4
  EXPECT_EQ(NetworkFileSystem(0x01021994), "");                            // tmpfs
}

TEST(MigrationsTest, GoForwardStepByStep) {
  auto db = Value(Connection::OpenMemory(""));
  const SchemaStep first[] = {{"CREATE TABLE t (x) STRICT"}};
  const SchemaStep valid[] = {
      {"CREATE TABLE t (x INTEGER) STRICT"},
      {"", [](Connection& opened) { opened.Execute("ALTER TABLE t ADD COLUMN y INTEGER"); }}};
  const SchemaStep broken[] = {
      valid[0], valid[1], {"INSERT INTO t VALUES (1, 2); CREATE TABLE t (x)"}};
  const auto migrate = [&](absl::Span<const SchemaStep> steps) {
    return Migrate(*db, {7, 3, steps});
  };
  const auto version = [&] {
    Statement read(*db, "PRAGMA user_version");
    return read.Row() ? read.Int(0) : -1;
  };
  EXPECT_FALSE(migrate(first).ok());  // no type: not STRICT
  EXPECT_EQ(version(), 0);
  ASSERT_TRUE(migrate(absl::MakeConstSpan(valid).subspan(0, 1)).ok());
  EXPECT_EQ(version(), 3);
  EXPECT_FALSE(migrate(broken).ok());
  EXPECT_EQ(version(), 4);
  EXPECT_FALSE(Statement(*db, "SELECT 1 FROM t").Row());
  ASSERT_TRUE(migrate(valid).ok());
  EXPECT_EQ(CodeOf(migrate(absl::MakeConstSpan(valid).subspan(0, 1))),
            absl::StatusCode::kFailedPrecondition);
}

// A made-up step, like the first one after the release.
TEST(MigrationsTest, KeepWhatAStoreHolds) {
  auto db = Value(Connection::OpenMemory(""));
  ASSERT_TRUE(Migrate(*db, StoreSchema()).ok());
  db->Execute("INSERT INTO step_times VALUES ('s', 2000, 4)");
  std::vector<SchemaStep> steps(StoreSchema().steps.begin(), StoreSchema().steps.end());
  steps.push_back({"ALTER TABLE step_times ADD COLUMN runs INTEGER NOT NULL DEFAULT 1"});
  Schema next = StoreSchema();
  next.steps = steps;
  ASSERT_TRUE(Migrate(*db, next).ok());
  Statement row(*db, "SELECT device_time, runs FROM step_times");
  ASSERT_TRUE(row.Row());
  EXPECT_EQ(row.Int(0), 2000);
  EXPECT_EQ(row.Int(1), 1);
}

TEST(MigrationsTest, LeaveTheDeviceOfOlderStatesOfAnalysesUnknown) {
  auto db = Value(Connection::OpenMemory(""));
  Schema before = StoreSchema();
  before.steps = before.steps.subspan(0, 7);
  ASSERT_TRUE(Migrate(*db, before).ok());
  db->Execute(
      "INSERT INTO analyses (name, signature, request, owner, private_to, time_group, "
      "guessed_time, state_blob, create_time) VALUES ('x', '', x'', '', '', '', 1, 'blob', 2)");
  ASSERT_TRUE(Migrate(*db, StoreSchema()).ok());
  Statement row(*db, "SELECT state_blob, state_on_gpu IS NULL FROM analyses");
  ASSERT_TRUE(row.Row());
  EXPECT_EQ(row.Text(0), "blob");
  EXPECT_EQ(row.Int(1), 1);
}

}  // namespace
}  // namespace ablate::storage
