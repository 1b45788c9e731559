// Tests bytes that a disk changed: reported with their run and key, never taken for numbers.
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "storage/sqlite/bytes.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/points.h"
#include "storage/sqlite/summaries.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Crc32cTest, IsThatOfTheStandard) {
  // RFC 3720, B.4.
  std::string ascending, zeros(32, '\0'), ones(32, '\xff');
  for (char i = 0; i < 32; ++i) ascending.push_back(i);
  for (const auto crc : {Crc32c, Crc32cByTables}) {
    EXPECT_EQ(crc("", 0), 0u);
    EXPECT_EQ(crc("123456789", 0), 0xe3069283u);
    EXPECT_EQ(crc(zeros, 0), 0x8a9136aau);
    EXPECT_EQ(crc(ones, 0), 0x62a8ab43u);
    EXPECT_EQ(crc(ascending, 0), 0x46dd794eu);
  }
  std::string bytes;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Crc32c(bytes), Crc32cByTables(bytes));
    const absl::string_view both = bytes;
    const size_t part = bytes.size() / 3;
    for (const auto crc : {Crc32c, Crc32cByTables}) {
      EXPECT_EQ(crc(both.substr(part), crc(both.substr(0, part), 0)), Crc32c(bytes));
    }
    bytes.push_back(static_cast<char>(i * 37));
  }
}

// Calls `look` with every change of one bit and of one whole byte.
void DamageEach(const std::string& good, const std::function<void(const std::string&)>& look) {
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit <= 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (bit < 8 ? 1 << bit : 0xff));
      look(bad);
    }
  }
}

TEST(DamageTest, IsFoundWhereverItIs) {
  const std::vector<uint32_t> steps = {0, 1, 5};
  const std::vector<double> values = {.2438, .3, .4};
  DamageEach(EncodePoints("place", {{0, &steps, &values}}), [](const std::string& bad) {
    std::vector<uint32_t> found;
    std::vector<double> numbers;
    EXPECT_EQ(CodeOf(DecodePoints("place", bad)), absl::StatusCode::kDataLoss);
    EXPECT_EQ(CodeOf(AppendPoints("place", bad, 0, 0, 9, &found, &numbers)),
              absl::StatusCode::kDataLoss);
    EXPECT_THAT(numbers, IsEmpty());
  });
  KeySummaries summaries(2);
  summaries[0].summary.key = "x";
  summaries[1].summary.key = "y";
  AddPoints({"x", steps, values}, &summaries[0]);
  DamageEach(EncodeSummaries("a", summaries), [](const std::string& bad) {
    EXPECT_EQ(CodeOf(DecodeSummaries("a", bad)), absl::StatusCode::kDataLoss);
    EXPECT_EQ(CodeOf(FindKey("a", bad, "x")), absl::StatusCode::kDataLoss);
  });
}

TEST(DamageTest, IsWhateverIsInAnotherPlace) {
  const std::vector<uint32_t> steps = {0, 1, 5};
  const std::vector<double> values = {.2438, .3, .4};
  const std::string chunk = ChunkPlace("a", 3, 0, 5);
  for (const std::string& other :
       {ChunkPlace("b", 3, 0, 5), ChunkPlace("a", 2, 0, 5), ChunkPlace("a", 3, 1, 5),
        ChunkPlace("a", 3, 0, 4), GroupPlace("a", 3, 0, 5), std::string()}) {
    const std::string bytes = EncodePoints(chunk, {{3, &steps, &values}});
    EXPECT_TRUE(DecodePoints(chunk, bytes).ok());
    EXPECT_EQ(CodeOf(DecodePoints(other, bytes)), absl::StatusCode::kDataLoss);
  }
  const std::string summaries = EncodeSummaries("a", KeySummaries(1));
  EXPECT_TRUE(DecodeSummaries("a", summaries).ok());
  EXPECT_EQ(CodeOf(DecodeSummaries("b", summaries)), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CodeOf(FindKey("b", summaries, "x")), absl::StatusCode::kDataLoss);
}

class DamagedStoreTest : public FileTest {
 protected:
  // Writes two runs with two keys each, done or not, and closes the store.
  void Write(bool done) {
    auto store = Value(Store::Open(Options()));
    ASSERT_TRUE(store->CreateExperiment(MakeExperiment({"a", "b"})).ok());
    Lease lease(store.get(), "l", {"a", "b"}, "w", "i");
    for (const std::string run : {"a", "b"}) {
      lease.Send(
          run, MakePoints(50, {MakeColumn("x", {0, 1}, {.2438, .5}), MakeColumn("y", {0}, {.75})}));
      if (done) lease.Send(run, FinishedEvent{false, kSteps});
    }
    ASSERT_TRUE(store->Maintain().ok());
  }
  // Flips a bit of the value that a query finds.
  void Damage(const char* select, const char* update) {
    auto db = Value(Connection::OpenFile(Database(), Connection::Access::kReadWrite));
    std::string bytes;
    {
      Statement stored(*db, select);
      ASSERT_TRUE(stored.Row());
      bytes = stored.Text(0);
      ASSERT_FALSE(bytes.empty());
    }
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    Statement(*db, update, Bytes{bytes}).Run();
    ASSERT_TRUE(db->error().ok()) << db->error();
  }
  void Update(const std::string& sql) { Alter(Database(), sql); }
  static absl::Status Read(Store* store, const std::string& run, const std::string& key,
                           std::vector<double>* found) {
    found->clear();
    return store->ReadSeries({run, key}, [&](const auto&, const auto& values) {
      found->insert(found->end(), values.begin(), values.end());
      return true;
    });
  }
  // Makes a run with a point and a resume state, returned to the queue, and closes the store.
  void PauseAtAState() {
    auto store = Value(Store::Open(Options()));
    Begin(store.get());
    const auto pin = PublishIn(store->blobs(), "state");
    ASSERT_TRUE(
        ApplyAndWait(
            *store, "i",
            {Point(0), {"l", 2, ResumeStateEvent{1, pin->sha256(), 5}}, {"l", 3, ReleasedEvent{}}})
            .ok());
  }
  // Expects that run to begin again, with the reason in its history.
  void ExpectBegunAnew(const std::string& why) {
    auto store = Value(Store::Open(Options()));
    const Lease lease(store.get(), "l2", {"a"});
    ASSERT_THAT(lease.granted(), SizeIs(1));
    EXPECT_EQ(lease.granted()[0].resume_blob, "");
    EXPECT_EQ(Count(store.get()), 0u);
    bool told = false;
    for (const RunEventRecord& event : Value(store->RunEvents("a"))) {
      told = told || (event.kind == "rewound" && event.message.find(why) != std::string::npos);
    }
    EXPECT_TRUE(told);
  }
  void ExpectOnlyXOfADamaged() {
    auto store = Value(Store::Open(Options()));
    std::vector<double> values;
    const absl::Status status = Read(store.get(), "a", "x", &values);
    EXPECT_EQ(CodeOf(status), absl::StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("run a:"), HasSubstr("points of x")));
    EXPECT_THAT(values, IsEmpty());
    EXPECT_TRUE(Read(store.get(), "b", "x", &values).ok());
    EXPECT_THAT(values, ElementsAre(.2438, .5));
    EXPECT_TRUE(fatal_.ok()) << fatal_;
  }
};

TEST_F(DamagedStoreTest, NamesRunAndKeyOfAChunk) {
  Write(/*done=*/true);
  Damage("SELECT data FROM chunks WHERE run = 1 AND key = 0",
         "UPDATE chunks SET data = ?1 WHERE run = 1 AND key = 0");
  ExpectOnlyXOfADamaged();
  auto store = Value(Store::Open(Options()));
  std::vector<double> values;
  EXPECT_TRUE(Read(store.get(), "a", "y", &values).ok());
  EXPECT_THAT(values, ElementsAre(.75));
}

// Bits of a row outside its bytes: those would give a run another one's numbers, or hide its own.
TEST_F(DamagedStoreTest, GivesNoRunTheChunksOfAnother) {
  Write(/*done=*/true);
  Update(
      "DELETE FROM chunks WHERE run = 1 AND key = 0; UPDATE chunks SET run = 1 WHERE run = 2 AND "
      "key = 0");
  auto store = Value(Store::Open(Options()));
  std::vector<double> values;
  for (const std::string run : {"a", "b"}) {
    const absl::Status status = Read(store.get(), run, "x", &values);
    EXPECT_EQ(CodeOf(status), absl::StatusCode::kDataLoss) << run;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("run " + run + ":"), HasSubstr("points of x")));
    EXPECT_THAT(values, IsEmpty());
    EXPECT_TRUE(Read(store.get(), run, "y", &values).ok());
    EXPECT_THAT(values, ElementsAre(.75));
  }
}

TEST_F(DamagedStoreTest, NamesRunAndKeyWhereNumbersBesideTheBytesChanged) {
  Write(/*done=*/true);
  for (const char* change :
       {"key = 2", "first_step = 1", "first_step = 1 << 20", "last_step = 3", "last_step = -1"}) {
    SCOPED_TRACE(change);
    std::filesystem::copy_file(Database(), folder_.path() + "/kept.db");
    Update(absl::StrCat("UPDATE chunks SET ", change, " WHERE run = 1 AND key = 0"));
    ExpectOnlyXOfADamaged();
    std::filesystem::remove(Database() + "-wal");
    std::filesystem::rename(folder_.path() + "/kept.db", Database());
  }
}

TEST_F(DamagedStoreTest, GivesNoRunTheRowGroupsOfAnother) {
  Write(/*done=*/false);
  Update("UPDATE row_groups SET run = 3 - run");
  auto store = Value(Store::Open(Options()));
  std::vector<double> values;
  for (const std::string run : {"a", "b"}) {
    EXPECT_EQ(CodeOf(Read(store.get(), run, "x", &values)), absl::StatusCode::kDataLoss);
    EXPECT_THAT(values, IsEmpty());
  }
}

TEST_F(DamagedStoreTest, NoticesARowGroupWhoseNumbersChanged) {
  for (const char* change :
       {"run = 9", "id = id + 100", "first_step = 1 << 20", "last_step = -1"}) {
    SCOPED_TRACE(change);
    Write(/*done=*/false);
    Update(absl::StrCat("UPDATE row_groups SET ", change, " WHERE run = 1"));
    ExpectOnlyXOfADamaged();
    std::filesystem::remove_all(Options().folder);
  }
}

TEST_F(DamagedStoreTest, MissesARowGroupOfALongSeriesThatIsReadInPieces) {
  constexpr uint32_t kPoints = 1100;  // a row group each, more than two pages have
  auto store = Value(Store::Open(Options()));
  Begin(store.get());
  std::vector<LeaseEvent> events;
  for (uint32_t step = 0; step < kPoints; ++step) events.push_back(Point(step));
  ASSERT_TRUE(ApplyAndWait(*store, "i", events).ok());
  const auto read = [&](uint32_t* points) {
    SeriesPosition position;
    absl::Status status = absl::CancelledError("");
    while (absl::IsCancelled(status)) {
      status = store->ReadSeries(
          {"a", "x"},
          [&](const auto& steps, const auto&) {
            *points += static_cast<uint32_t>(steps.size());
            return false;
          },
          &position);
    }
    return status;
  };
  uint32_t points = 0;
  EXPECT_TRUE(read(&points).ok());
  EXPECT_EQ(points, kPoints);
  Update("UPDATE row_groups SET run = 9 WHERE first_step = 3");
  EXPECT_THAT(read(&points).message(), HasSubstr("1099 of 1100 are there"));
}

TEST_F(DamagedStoreTest, GivesNoRunTheSummariesOfAnother) {
  Write(/*done=*/true);
  Update("DELETE FROM summaries WHERE run = 1; UPDATE summaries SET run = 1 WHERE run = 2");
  auto store = Value(Store::Open(Options()));
  const auto summaries = Value(store->Summaries({"a", "b"}));
  ASSERT_THAT(summaries, SizeIs(2));
  EXPECT_THAT(summaries[0].damage, HasSubstr("run a: its summaries are damaged"));
  EXPECT_THAT(summaries[1].damage, HasSubstr("run b: its summaries are missing"));
}

TEST_F(DamagedStoreTest, MissesSummariesOfARunWithPoints) {
  for (const bool done : {true, false}) {
    Write(done);
    Update("UPDATE summaries SET run = run + 64 WHERE run = 1");
    auto store = Value(Store::Open(Options()));
    const auto summaries = Value(store->Summaries({"a", "b"}));
    EXPECT_THAT(summaries[0].damage, HasSubstr("run a: its summaries are missing"));
    EXPECT_THAT(summaries[0].keys, IsEmpty());
    EXPECT_THAT(summaries[1].damage, IsEmpty());
    EXPECT_THAT(summaries[1].keys, SizeIs(2));
    EXPECT_EQ(CodeOf(store->RunKeys("a")), absl::StatusCode::kDataLoss);
    std::vector<double> values;
    EXPECT_THAT(Read(store.get(), "a", "x", &values).message(),
                HasSubstr("run a: its summaries are missing"));
    EXPECT_TRUE(Read(store.get(), "b", "x", &values).ok());
    store.reset();
    std::filesystem::remove_all(Options().folder);
  }
}

// Its keys would get new numbers, although row groups have the numbers already.
TEST_F(DamagedStoreTest, TakesNoPointsForARunWhoseSummariesAreGone) {
  Write(/*done=*/false);
  Update("UPDATE summaries SET run = run + 64 WHERE run = 1");
  auto store = Value(Store::Open(Options()));
  const LeaseEvent next{"l", 2, MakePoints(60, {MakeColumn("y", {60}, {.25})})};
  const auto refused = ApplyAndWait(*store, "i", {next});
  EXPECT_EQ(CodeOf(refused), absl::StatusCode::kDataLoss);
  EXPECT_THAT(refused.status().message(), HasSubstr("run a: its summaries are missing"));
  ASSERT_TRUE(EndLeaseAndWait(*store, "l", {LeaseEnd::kLost, "refused"}).ok());
  Lease again(store.get(), "l2", {"a"}, "w", "i");  // from its beginning, where it has no points
  EXPECT_THAT(Value(store->Summaries({"a"}))[0].damage, IsEmpty());
  EXPECT_EQ(again.Send("a", MakePoints(60, {MakeColumn("y", {60}, {.25})})), Applied::kApplied);
}

TEST_F(DamagedStoreTest, NamesRunAndKeyOfARowGroup) {
  Write(/*done=*/false);
  Damage("SELECT data FROM row_groups WHERE run = 1",
         "UPDATE row_groups SET data = ?1 WHERE run = 1");
  ExpectOnlyXOfADamaged();
}

TEST_F(DamagedStoreTest, NamesTheRunOfSummaries) {
  Write(/*done=*/true);
  Damage("SELECT data FROM summaries WHERE run = 1",
         "UPDATE summaries SET data = ?1 WHERE run = 1");
  auto store = Value(Store::Open(Options()));
  const auto summaries = Value(store->Summaries({"a", "b"}));
  ASSERT_THAT(summaries, SizeIs(2));
  EXPECT_THAT(summaries[0].damage, AllOf(HasSubstr("run a:"), HasSubstr("summaries are damaged")));
  EXPECT_THAT(summaries[0].keys, IsEmpty());
  EXPECT_THAT(summaries[1].damage, IsEmpty());
  EXPECT_EQ(summaries[1].keys[0].first, .2438);
  EXPECT_THAT(Value(store->ExperimentKeys(Value(store->FindExperiments(kServer, "", 1))[0])),
              SizeIs(2));
  EXPECT_EQ(CodeOf(store->RunKeys("a")), absl::StatusCode::kDataLoss);
  std::vector<double> values;
  EXPECT_EQ(CodeOf(Read(store.get(), "a", "x", &values)), absl::StatusCode::kDataLoss);
}

TEST_F(DamagedStoreTest, BeginsAnewWhereAResumeStatesSummariesAreDamaged) {
  PauseAtAState();
  Damage("SELECT summaries FROM resume_states", "UPDATE resume_states SET summaries = ?1");
  ExpectBegunAnew("damaged");
}

TEST_F(DamagedStoreTest, BeginsAnewWhereAResumeStateWasStoredWithoutSummaries) {
  PauseAtAState();
  Update("UPDATE resume_states SET summaries = x''");
  ExpectBegunAnew("gone");
}

}  // namespace
}  // namespace ablate::storage
