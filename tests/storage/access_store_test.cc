// Tests the access file: made, reopened, refused; and users.
#include "storage/access_store.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/storage/access_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AccessStoreTest : public AccessTest {
 protected:
  static unsigned ModeOf(const std::string& file) {
    struct stat found;
    EXPECT_EQ(stat(file.c_str(), &found), 0) << file;
    return found.st_mode & 0777;
  }
  std::string Bytes() const { return ReadText(File()); }
  absl::Status OpenAgain() {
    Close();
    return AccessStore::Open(Options()).status();
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const User& user : store().ListUsers()) names.push_back(user.name);
    return names;
  }
};

TEST_F(AccessStoreTest, MakesFilesForTheirOwnerAlone) {
  EXPECT_EQ(ModeOf(File()), 0600u);
  EXPECT_EQ(ModeOf(File() + "-wal"), 0600u);
}

TEST_F(AccessStoreTest, RefusesAFileThatOthersCanReadOrWrite) {
  Close();
  for (const mode_t mode : {0640, 0604, 0620, 0601, 0666}) {
    ASSERT_EQ(chmod(File().c_str(), mode), 0);
    EXPECT_EQ(CodeOf(OpenAgain()), absl::StatusCode::kFailedPrecondition) << mode;
  }
  ASSERT_EQ(chmod(File().c_str(), 0640), 0);
  EXPECT_EQ(
      OpenAgain().message(),
      File() +
          " is open to other users of this machine (mode 640); expected mode 600. Run chmod 600 " +
          File());
  EXPECT_EQ(ModeOf(File()), 0640u) << "it is left as it is";
  ASSERT_EQ(chmod(File().c_str(), 0600), 0);
  std::ofstream(File() + "-wal").close();
  ASSERT_EQ(chmod((File() + "-wal").c_str(), 0644), 0);
  EXPECT_THAT(OpenAgain().message(), HasSubstr("access.db-wal is open to other users"));
}

TEST_F(AccessStoreTest, RefusesWhatIsNoFile) {
  Close();
  std::filesystem::rename(File(), folder() + "/real.db");
  std::filesystem::create_symlink(folder() + "/real.db", File());
  EXPECT_EQ(OpenAgain().message(), File() + " isn't a regular file");
  std::filesystem::remove(File());
  std::filesystem::create_directory(File());
  EXPECT_EQ(OpenAgain().message(), File() + " isn't a regular file");
  AccessOptions options = Options();
  options.path = folder() + "/none/access.db";
  EXPECT_EQ(CodeOf(AccessStore::Open(options)), absl::StatusCode::kNotFound);
}

TEST_F(AccessStoreTest, RefusesANewerFileAndLeavesItAlone) {
  Tamper("PRAGMA user_version = 99; DROP TABLE audit");
  const std::string before = Bytes();
  const absl::Status refused = OpenAgain();
  EXPECT_EQ(CodeOf(refused), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      refused.message(),
      File() + ": the database has schema version 99; expected at most 2. Use a newer ablate.");
  EXPECT_TRUE(Bytes() == before);
}

TEST_F(AccessStoreTest, RefusesOtherDatabases) {
  Close();
  std::filesystem::remove(File());
  std::filesystem::remove(File() + "-wal");
  StoreOptions options;
  options.folder = folder() + "/data";
  Value(Store::Open(options)).reset();
  std::filesystem::copy(options.folder + "/ablate.db", File());
  ASSERT_EQ(chmod(File().c_str(), 0600), 0);
  const std::string before = Bytes();
  const absl::Status refused = OpenAgain();
  EXPECT_EQ(CodeOf(refused), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(), File() + ": the database belongs to another program");
  EXPECT_TRUE(Bytes() == before);
}

TEST_F(AccessStoreTest, RefusesGarbage) {
  for (const size_t size : {1, 99, 100, 511, 512, 5000, 100'000}) {
    Close();
    std::filesystem::remove(File() + "-wal");
    std::ofstream(File(), std::ios::trunc) << std::string(size, 'x');
    const absl::Status refused = OpenAgain();
    EXPECT_EQ(CodeOf(refused), absl::StatusCode::kDataLoss) << size;
    EXPECT_THAT(refused.message(), HasSubstr(File())) << size;
  }
}

TEST_F(AccessStoreTest, RefusesADamagedFile) {
  Close();
  const size_t size = Bytes().size();
  ASSERT_GT(size, 8192u);
  for (size_t page = 1; page * 4096 < size; ++page) {
    const std::string kept = Bytes();
    {
      std::fstream file(File(), std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(page * 4096));
      file << std::string(4096, '\x07');
    }
    EXPECT_EQ(CodeOf(OpenAgain()), absl::StatusCode::kDataLoss) << "page " << page;
    std::ofstream(File(), std::ios::binary | std::ios::trunc) << kept;
  }
  EXPECT_TRUE(OpenAgain().ok());
}

TEST_F(AccessStoreTest, RefusesRowsThatCannotBe) {
  Tamper("UPDATE users SET role = 4");
  EXPECT_EQ(OpenAgain(), absl::DataLossError(File() + ": user 'root' has role number 4"));
  Tamper("UPDATE users SET role = -1");
  EXPECT_EQ(CodeOf(OpenAgain()), absl::StatusCode::kDataLoss);
  Tamper("UPDATE users SET role = 2; INSERT INTO tokens VALUES ('1', 'h', 'gone', '', 1, 0, 0, 0)");
  EXPECT_EQ(OpenAgain(), absl::DataLossError(File() + ": token '1' is valid and has no user"));
}

TEST_F(AccessStoreTest, RefusesASecondOneAtATime) {
  const auto second = AccessStore::Open(Options());
  EXPECT_EQ(second.status(),
            absl::FailedPreconditionError(
                File() + ": it is in use by another server. Stop that server first"));
  const pid_t child = fork();
  if (child == 0) _exit(AccessStore::Open(Options()).ok() ? 1 : 0);
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(store().SetQuota("root", {1, {}, {}}, kRoot, kStart).ok());
  EXPECT_TRUE(OpenAgain().ok());
}

TEST_F(AccessStoreTest, KeepsWhatItAnsweredWhenItIsKilled) {
  Create("ann", Role::kReader);
  const IssuedToken token = Issue("ann");
  const IssuedToken revoked = Issue("ann");
  ASSERT_TRUE(store().RevokeToken(revoked.token.id, kRoot, kStart).ok());
  const std::string copy = folder() + "/copy";
  std::filesystem::create_directory(copy);
  for (const char* suffix : {"", "-wal"}) {  // as they are on the disk while it is open
    std::filesystem::copy(File() + suffix, copy + "/access.db" + suffix);
  }
  AccessOptions options = Options();
  options.path = copy + "/access.db";
  const auto survivor = Value(AccessStore::Open(options));
  EXPECT_EQ(Value(survivor->Identify(token.secret, kStart)).user, "ann");
  EXPECT_EQ(CodeOf(survivor->Identify(revoked.secret, kStart)), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Value(survivor->ListAudits({}, 10)).rows, SizeIs(5));
}

TEST_F(AccessStoreTest, ReadsUsersAgain) {
  const Quota quota{4, 1000, int64_t{5} << 40};
  Value(store().CreateUser("ann", Role::kMember, quota, kRoot, After(absl::Nanoseconds(1500))));
  Value(store().CreateUser("box-2.lab_1", Role::kWorker, {{}, 0, {}}, kRoot, kStart));
  for (int opened = 0; opened < 2; ++opened, Reopen()) {
    EXPECT_THAT(Names(), ElementsAre("ann", "box-2.lab_1", "root"));
    const User ann = Value(store().GetUser("ann"));
    EXPECT_EQ(ann.name, "ann");
    EXPECT_EQ(ann.role, Role::kMember);
    EXPECT_EQ(ann.quota, quota);
    EXPECT_EQ(ann.created, After(absl::Microseconds(1)));
    const User worker = Value(store().GetUser("box-2.lab_1"));
    EXPECT_EQ(worker.role, Role::kWorker);
    EXPECT_EQ(worker.quota, (Quota{{}, 0, {}}));
    EXPECT_EQ(Value(store().GetUser("root")).role, Role::kAdmin);
  }
}

TEST_F(AccessStoreTest, InitializesOnlyWhereThereIsNobody) {
  EXPECT_EQ(
      store().Initialize("eve", kStart).status(),
      absl::FailedPreconditionError(
          "the server has users already, such as 'root'. Add others with `ablate admin user add`"));
  Reopen();
  EXPECT_EQ(CodeOf(store().Initialize("eve", kStart)), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Names(), ElementsAre("root"));
  AccessOptions options = Options();
  options.path = folder() + "/other.db";
  const auto other = Value(AccessStore::Open(options));
  EXPECT_EQ(CodeOf(other->Initialize("Eve", kStart)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Value(other->Initialize("eve", kStart)).role, Role::kAdmin);
}

TEST_F(AccessStoreTest, TakesNamesOfTheGrammarOnly) {
  const std::string longest(64, 'a');
  for (const std::string& name :
       {std::string("a"), std::string("7"), std::string("a-b_c.d"), std::string("0..-"), longest}) {
    EXPECT_TRUE(store().CreateUser(name, Role::kReader, {}, kRoot, kStart).ok()) << name;
  }
  for (const std::string& name :
       {std::string(), std::string("Ann"), std::string("-a"), std::string(".a"), std::string("_"),
        std::string("a b"), std::string("a/b"), std::string("\xc3\xa4"), std::string("a\0b", 3),
        longest + "a"}) {
    const auto refused = store().CreateUser(name, Role::kReader, {}, kRoot, kStart);
    EXPECT_EQ(CodeOf(refused), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_EQ(store().CreateUser("A\n", Role::kReader, {}, kRoot, kStart).status().message(),
            "name: 'A\\n' isn't a valid user name; expected 1 to 64 lower-case letters, digits, "
            "'-', '_' and '.', starting with a letter or digit");
}

TEST_F(AccessStoreTest, RefusesASecondUserOfAName) {
  Create("ann");
  EXPECT_EQ(store().CreateUser("ann", Role::kAdmin, {}, kRoot, kStart).status(),
            absl::AlreadyExistsError("name: user 'ann' exists; expected a new name"));
  EXPECT_EQ(Value(store().GetUser("ann")).role, Role::kMember);
}

TEST_F(AccessStoreTest, RefusesQuotasBelowZero) {
  EXPECT_EQ(store().CreateUser("ann", Role::kMember, {-1, {}, {}}, kRoot, kStart).status(),
            absl::InvalidArgumentError("quota.lanes: -1; expected 0 or more"));
  EXPECT_EQ(store().SetQuota("root", {{}, -2, {}}, kRoot, kStart),
            absl::InvalidArgumentError("quota.queued_runs: -2; expected 0 or more"));
  EXPECT_EQ(
      store().SetQuota("root", {0, 0, INT64_MIN}, kRoot, kStart),
      absl::InvalidArgumentError("quota.stored_bytes: -9223372036854775808; expected 0 or more"));
  EXPECT_EQ(Value(store().GetUser("root")).quota, Quota());
}

TEST_F(AccessStoreTest, SaysWhichUserIsUnknown) {
  const absl::Status unknown = absl::NotFoundError("there is no user 'eve\\n'");
  EXPECT_EQ(store().GetUser("eve\n").status(), unknown);
  EXPECT_EQ(store().SetRole("eve\n", Role::kAdmin, kRoot, kStart), unknown);
  EXPECT_EQ(store().SetQuota("eve\n", {}, kRoot, kStart), unknown);
  EXPECT_EQ(store().DeleteUser("eve\n", kRoot, kStart), unknown);
  EXPECT_EQ(store().IssueToken("eve\n", "", {}, kRoot, kStart).status(), unknown);
  EXPECT_THAT(Log(), SizeIs(1));
}

TEST_F(AccessStoreTest, SetsQuotas) {
  const Quota quota{{}, 7, 0};
  ASSERT_TRUE(store().SetQuota("root", quota, kRoot, kStart).ok());
  EXPECT_EQ(Value(store().GetUser("root")).quota, quota);
  ASSERT_TRUE(store().SetQuota("root", quota, kRoot, kStart).ok()) << "the same again";
  Reopen();
  EXPECT_EQ(Value(store().GetUser("root")).quota, quota);
  EXPECT_THAT(Log({}, 2), ElementsAre("root feedbeef access/SetQuota users/root OK: lanes without "
                                      "limit, queued_runs 7, stored_bytes 0",
                                      HasSubstr("access/CreateUser")));
}

TEST_F(AccessStoreTest, SetsRolesAndEndsTheirTokens) {
  Create("ann");
  const IssuedToken token = Issue("ann");
  const IssuedToken expired = Issue("ann", absl::Seconds(1));
  Issue("root");
  const absl::Time later = After(absl::Hours(1));
  const Caller before = Value(store().Identify(token.secret, later));
  EXPECT_TRUE(store().CheckStill(before, later).ok());
  ASSERT_TRUE(store().SetRole("ann", Role::kReader, kRoot, later).ok());
  EXPECT_THAT(ended_, ElementsAre(ElementsAre(token.token.id)));
  EXPECT_EQ(Value(store().Identify(token.secret, later)).role, Role::kReader);
  EXPECT_EQ(store().CheckStill(before, later),
            absl::AbortedError("the role of user 'ann' changed to reader during the call. Call "
                               "again"));
  ASSERT_TRUE(store().SetRole("ann", Role::kReader, kRoot, later).ok()) << "the same again";
  EXPECT_THAT(ended_, SizeIs(1));
  Reopen();
  EXPECT_EQ(Value(store().GetUser("ann")).role, Role::kReader);
  EXPECT_EQ(Log({}, 1)[0], "root feedbeef access/SetRole users/ann OK: role reader, was member");
}

TEST_F(AccessStoreTest, KeepsTheRightToSubmitPrograms) {
  Create("ann");
  EXPECT_FALSE(Value(store().GetUser("ann")).programs);
  ASSERT_TRUE(store().SetPrograms("ann", true, kRoot, kStart).ok());
  ASSERT_TRUE(store().SetPrograms("ann", true, kRoot, kStart).ok()) << "the same again";
  EXPECT_THAT(Log({}, 2), ElementsAre("root feedbeef access/SetPrograms users/ann OK: may submit "
                                      "programs",
                                      HasSubstr("access/CreateUser")));
  EXPECT_THAT(ended_, IsEmpty());
  ASSERT_TRUE(store().CreateUser("bob", Role::kMember, {}, kRoot, kStart, true).ok());
  EXPECT_THAT(Log({}, 1), ElementsAre(HasSubstr("OK: role member, programs")));
  Reopen();
  EXPECT_TRUE(Value(store().GetUser("ann")).programs);
  EXPECT_TRUE(Value(store().GetUser("bob")).programs);
  ASSERT_TRUE(store().SetPrograms("ann", false, kRoot, kStart).ok());
  EXPECT_FALSE(Value(store().GetUser("ann")).programs);
  EXPECT_EQ(CodeOf(store().SetPrograms("eve", true, kRoot, kStart)), absl::StatusCode::kNotFound);
}

TEST_F(AccessStoreTest, GivesUsersOfAnOlderFileNoRightToSubmitPrograms) {
  Create("ann");
  Tamper("ALTER TABLE users DROP COLUMN programs; PRAGMA user_version = 1");
  Reopen();
  EXPECT_FALSE(Value(store().GetUser("ann")).programs);
  EXPECT_TRUE(store().SetPrograms("ann", true, kRoot, kStart).ok());
}

TEST_F(AccessStoreTest, KeepsTheLastAdmin) {
  Create("ann");
  const absl::Status last = absl::FailedPreconditionError(
      "user 'root' is the last admin. Make another user an admin first");
  EXPECT_EQ(store().SetRole("root", Role::kMember, kRoot, kStart), last);
  EXPECT_EQ(store().DeleteUser("root", kRoot, kStart), last);
  EXPECT_TRUE(store().SetRole("root", Role::kAdmin, kRoot, kStart).ok());
  ASSERT_TRUE(store().SetRole("ann", Role::kAdmin, kRoot, kStart).ok());
  ASSERT_TRUE(store().DeleteUser("root", kRoot, kStart).ok());
  EXPECT_EQ(CodeOf(store().DeleteUser("ann", kRoot, kStart)),
            absl::StatusCode::kFailedPrecondition);
  Reopen();
  EXPECT_THAT(Names(), ElementsAre("ann"));
}

TEST_F(AccessStoreTest, DeletesAUserWithItsTokens) {
  Create("ann");
  const IssuedToken first = Issue("ann");
  const IssuedToken second = Issue("ann", absl::Hours(9));
  const IssuedToken expired = Issue("ann", absl::Seconds(1));
  const IssuedToken other = Issue("root");
  const Caller caller = Value(store().Identify(first.secret, kStart));
  ASSERT_TRUE(store().DeleteUser("ann", kRoot, After(absl::Hours(1))).ok());
  ASSERT_THAT(ended_, SizeIs(1));
  EXPECT_THAT(ended_[0], ::testing::UnorderedElementsAre(first.token.id, second.token.id));
  Create("ann", Role::kAdmin);  // somebody else
  for (int opened = 0; opened < 2; ++opened, Reopen()) {
    const absl::Time later = After(absl::Hours(10));
    for (const IssuedToken& issued : {first, second}) {
      EXPECT_EQ(store().Identify(issued.secret, later).status(),
                absl::UnauthenticatedError("the token was revoked on 2026-01-02 04:04:05 UTC"));
    }
    EXPECT_EQ(store().Identify(expired.secret, later).status(),
              absl::UnauthenticatedError("the token expired on 2026-01-02 03:04:06 UTC"));
    EXPECT_EQ(CodeOf(store().Identify(expired.secret, kStart)), absl::StatusCode::kUnauthenticated)
        << "also where a clock was set back";
    EXPECT_EQ(CodeOf(store().CheckStill(caller, later)), absl::StatusCode::kUnauthenticated);
    EXPECT_TRUE(store().Identify(other.secret, later).ok());
    EXPECT_THAT(store().ListTokens("ann"), SizeIs(3));
  }
  EXPECT_EQ(Log({}, 2)[1], "root feedbeef access/DeleteUser users/ann OK: with 2 valid tokens");
}

TEST_F(AccessStoreTest, HasALimitOfUsers) {
  Tamper(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999) INSERT INTO "
      "users SELECT 'u' || i, 0, -1, -1, -1, 1, 0 FROM n");
  Reopen();
  EXPECT_EQ(store().CreateUser("more", Role::kReader, {}, kRoot, kStart).status(),
            absl::ResourceExhaustedError(
                "the server has 1000 users, which is the limit. Remove one first"));
  ASSERT_TRUE(store().DeleteUser("u1", kRoot, kStart).ok());
  Create("more");
}

TEST_F(AccessStoreTest, ChangesNothingWhenTheDiskIsFull) {
  Create("ann");
  const IssuedToken token = Issue("ann");
  const auto rows = Log();
  disk_.room = 0;
  const auto full = absl::StatusCode::kResourceExhausted;
  EXPECT_EQ(CodeOf(store().CreateUser("eve", Role::kReader, {}, kRoot, kStart)), full);
  EXPECT_EQ(CodeOf(store().SetRole("ann", Role::kAdmin, kRoot, kStart)), full);
  EXPECT_EQ(CodeOf(store().SetQuota("ann", {1, 1, 1}, kRoot, kStart)), full);
  EXPECT_EQ(CodeOf(store().IssueToken("ann", "", {}, kRoot, kStart)), full);
  EXPECT_EQ(CodeOf(store().RevokeToken(token.token.id, kRoot, kStart)), full);
  EXPECT_EQ(CodeOf(store().DeleteUser("ann", kRoot, kStart)), full);
  EXPECT_EQ(CodeOf(store().Record({})), full);
  EXPECT_THAT(ended_, IsEmpty());
  EXPECT_THAT(Names(), ElementsAre("ann", "root"));
  EXPECT_EQ(Value(store().GetUser("ann")).quota, Quota());
  EXPECT_EQ(Value(store().Identify(token.secret, kStart)).role, Role::kMember);
  EXPECT_EQ(Log(), rows);
  disk_.room = INT64_MAX;
  EXPECT_TRUE(store().DeleteUser("ann", kRoot, kStart).ok());
  Reopen();
  EXPECT_THAT(Names(), ElementsAre("root"));
}

TEST_F(AccessStoreTest, SaysThatTheDiskFailed) {
  disk_.fail_sync = true;
  EXPECT_EQ(CodeOf(store().CreateUser("ann", Role::kReader, {}, kRoot, kStart)),
            absl::StatusCode::kDataLoss);
  EXPECT_THAT(Names(), ElementsAre("root"));
  disk_.fail_sync = false;
  Create("ann");
}

TEST_F(AccessStoreTest, ServesThreadsAtOnce) {
  const auto work = [this](const std::string& name) {
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(store().CreateUser(name, Role::kMember, {}, kRoot, kStart).ok());
      const auto issued = store().IssueToken(name, "", {}, kRoot, kStart);
      ASSERT_TRUE(issued.ok());
      EXPECT_EQ(Value(store().Identify(issued->secret, kStart)).user, name);
      store().NoteUse(issued->token.id, kStart);
      EXPECT_TRUE(store().ListAudits({}, 5).ok());
      EXPECT_TRUE(store().DeleteUser(name, {name, ""}, kStart).ok());
      EXPECT_FALSE(store().Identify(issued->secret, kStart).ok());
      EXPECT_FALSE(store().ListTokens(name).empty());
      EXPECT_FALSE(store().ListUsers().empty());
    }
  };
  Close();
  AccessOptions options = Options();
  std::atomic<int> ended = 0;
  options.on_end = [&](const auto& tokens) { ended += static_cast<int>(tokens.size()); };
  Adopt(Value(AccessStore::Open(options)));
  std::thread other(work, "ann");
  work("bob");
  other.join();
  EXPECT_EQ(ended, 20);
  EXPECT_THAT(Names(), ElementsAre("root"));
  EXPECT_THAT(Log(), SizeIs(1 + 2 * 10 * 3));
}

TEST_F(AccessStoreTest, CallsTheListenerWithoutALock) {
  Close();
  AccessOptions options = Options();
  options.on_end = [&](const auto& tokens) {
    for (const Token& token : store().ListTokens()) {
      EXPECT_EQ(token.revoked.has_value(), token.id == tokens[0]);
    }
    EXPECT_TRUE(store().Record({}).ok());
  };
  Adopt(Value(AccessStore::Open(options)));
  Issue("root");
  EXPECT_TRUE(store().RevokeToken(Issue("root").token.id, kRoot, kStart).ok());
}

TEST(RoleTest, HasNames) {
  EXPECT_EQ(RoleName(Role::kReader), "reader");
  EXPECT_EQ(RoleName(Role::kMember), "member");
  EXPECT_EQ(RoleName(Role::kAdmin), "admin");
  EXPECT_EQ(RoleName(Role::kWorker), "worker");
}

}  // namespace
}  // namespace ablate::storage
