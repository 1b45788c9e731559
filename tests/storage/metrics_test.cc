// Tests points and summaries: stored bit for bit, read in order, before, during and after
// compaction.
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "storage/run_query.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/summaries.h"
#include "tests/storage/older_store.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

uint64_t Bits(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

class MetricsTest : public StoreTest {
 protected:
  // Sends points that must be refused and returns the error; nothing may have changed.
  std::string Refuse(Lease* lease, std::vector<Column> columns) {
    const uint64_t change = store().change_number();
    const LeaseEvent event{lease->name(), lease->sent() + 1, MakePoints(5, columns)};
    const auto refused = ApplyAndWait(store(), "i1", {event});
    EXPECT_EQ(CodeOf(refused), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(store().change_number(), change);
    return std::string(refused.status().message());
  }
};
INSTANTIATE_TEST_SUITE_P(, MetricsTest, ::testing::Values(Where::kFile, Where::kMemory), WhereName);

TEST_P(MetricsTest, ReadsSeriesBeforeAndAfterCompaction) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  const std::vector<double> odd = {1.0 / 3, -0.0, 5e-324, 1e308, kInfinity, NAN};
  lease.Send("a", MakePoints(10, {MakeColumn("x", {0, 2, 4, 6, 8, 9}, odd),
                                  MakeColumn("y", {0, 5}, {1.5, 2.5})}));
  lease.Send("a", MakePoints(20, {MakeColumn("x", {10}, {7})}));
  lease.Send("a", MakePoints(30, {MakeColumn("y", {29}, {3.5})}));
  const auto expect = [&] {
    const auto x = Series("a", "x");
    ASSERT_THAT(x, SizeIs(7));
    for (size_t i = 0; i < odd.size(); ++i) EXPECT_EQ(Bits(x[i].second), Bits(odd[i]));
    EXPECT_THAT(x[6], Pair(10, 7));
    EXPECT_THAT(Series("a", "y"), ElementsAre(Pair(0, 1.5), Pair(5, 2.5), Pair(29, 3.5)));
    EXPECT_THAT(Series("a", "y", 1, 28), ElementsAre(Pair(5, 2.5)));
    EXPECT_THAT(Series("a", "y", 5, 29), SizeIs(2));
    EXPECT_THAT(Series("a", "y", 6, 28), IsEmpty());
    EXPECT_THAT(Series("a", "nothing"), IsEmpty());
  };
  expect();
  lease.Send("a", FinishedEvent{false, 100});
  expect();
  ASSERT_TRUE(store().Maintain().ok());
  expect();
  Reopen();
  expect();
}

TEST_P(MetricsTest, KeepsEveryBitOfNaNs) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  std::vector<double> values;
  for (const uint64_t bits : {0x7ff8000000000000ull, 0xfff8000000000001ull, 0x7ff4000000000000ull,
                              0x7ff80000e0000000ull, 0xffffffffffffffffull}) {
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    values.push_back(value);
  }
  for (uint32_t i = 0; i < values.size(); ++i) {
    lease.Send("a", MakePoints(i, {MakeColumn("x", {i}, {values[i]})}));
  }
  lease.Send("a", FinishedEvent{true, 5});
  ASSERT_TRUE(store().Maintain().ok());
  const auto points = Series("a", "x");
  ASSERT_EQ(points.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(Bits(points[i].second), Bits(values[i]));
}

TEST_P(MetricsTest, HandsOverLongSeriesInPieces) {
  Submit({"a"}, 200'000);
  Lease lease(&store(), "l", {"a"});
  const uint32_t groups = 1100, each = 130;  // more groups and points than a page has
  std::vector<LeaseEvent> events;
  for (uint32_t g = 0; g < groups; ++g) {
    Column x{"x", {}, {}};
    for (uint32_t i = 0; i < each; ++i) {
      x.steps.push_back(g * each + i);
      x.values.push_back(g * 0.1 + i);
    }
    events.push_back(lease.Next("a", MakePoints(1, {x})));
  }
  ASSERT_TRUE(ApplyAndWait(store(), "i1", events).ok());
  lease.Send("a", MakePoints(1, {MakeColumn("rare", {groups * each}, {1})}));
  const auto count = [&](const char* key) {
    std::pair<size_t, size_t> pieces_points;
    uint32_t next = 0;
    const absl::Status status = store().ReadSeries({"a", key}, [&](const auto& steps, const auto&) {
      ++pieces_points.first;
      pieces_points.second += steps.size();
      for (const uint32_t step : steps) {
        EXPECT_GE(step, next);
        next = step + 1;
      }
      return true;
    });
    EXPECT_TRUE(status.ok()) << status;
    return pieces_points;
  };
  EXPECT_EQ(count("x").second, groups * each);
  EXPECT_GT(count("x").first, 1u);
  EXPECT_EQ(count("rare").second, 1u);
  lease.Send("a", FinishedEvent{false, 200'000});
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_EQ(count("x").second, groups * each);
  EXPECT_GT(count("x").first, 1u);
  EXPECT_EQ(count("rare").second, 1u);
}

TEST_P(MetricsTest, StopsWhenTheReaderHasEnough) {
  Submit({"a"});
  Train({"a"});
  int pieces = 0;
  const absl::Status status =
      store().ReadSeries({"a", "train/loss"}, [&](const auto&, const auto&) {
        ++pieces;
        return false;
      });
  EXPECT_EQ(CodeOf(status), absl::StatusCode::kCancelled);
  EXPECT_EQ(pieces, 1);
  EXPECT_EQ(CodeOf(store().ReadSeries({"nothing", "x"}, nullptr)), absl::StatusCode::kNotFound);
}

TEST_P(MetricsTest, ReadsOnWhenRowGroupsBecomeChunksMeanwhile) {
  Submit({"a"}, 1200);
  Lease lease(&store(), "l", {"a"});
  std::vector<LeaseEvent> events;
  for (uint32_t g = 0; g < 1200; ++g) {
    events.push_back(lease.Next("a", MakePoints(1, {MakeColumn("x", {g}, {0.5 + g})})));
  }
  ASSERT_TRUE(ApplyAndWait(store(), "i1", events).ok());
  std::vector<uint32_t> seen;
  const absl::Status status = store().ReadSeries({"a", "x"}, [&](const auto& steps, const auto&) {
    if (seen.empty()) {
      lease.Send("a", FinishedEvent{false, 1200});
      EXPECT_TRUE(store().Maintain().ok());
    }
    seen.insert(seen.end(), steps.begin(), steps.end());
    return true;
  });
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_THAT(seen, SizeIs(1200));
  for (uint32_t g = 0; g < 1200; ++g) EXPECT_EQ(seen[g], g);
}

// Points added to a run meanwhile don't affect the check of those read before.
TEST_P(MetricsTest, ReadsOnAfterAPauseWhateverTheRunDoes) {
  const std::vector<std::string> runs = {"a", "b", "c"};
  Submit(runs, 1200);
  Lease lease(&store(), "l", runs);
  const auto send = [&](Lease* to, const std::string& run, uint32_t first, uint32_t last) {
    std::vector<LeaseEvent> events;
    for (uint32_t g = first; g <= last; ++g) {
      events.push_back(to->Next(run, MakePoints(g, {MakeColumn("x", {g}, {0.5 + g})})));
    }
    ASSERT_TRUE(ApplyAndWait(store(), "i1", events).ok());
  };
  for (const std::string& run : runs) send(&lease, run, 0, 599);  // more groups than a page has
  const auto read = [&](const std::string& run, const std::function<void()>& pause) {
    SeriesPosition position;
    size_t points = 0;
    int pieces = 0;
    absl::Status status = absl::CancelledError("");
    while (absl::IsCancelled(status)) {
      if (pieces == 1) pause();
      status = store().ReadSeries(
          {run, "x"},
          [&](const auto& steps, const auto&) {
            ++pieces;
            points += steps.size();
            return false;
          },
          &position);
    }
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_GT(pieces, 1);
    return points;
  };
  EXPECT_EQ(read("a", [] {}), 600u);
  EXPECT_EQ(read("a", [&] { send(&lease, "a", 600, 604); }), 605u);
  const auto end = [&] {
    lease.Send("b", FinishedEvent{false, 1200});
    EXPECT_TRUE(store().Maintain().ok());
  };
  EXPECT_EQ(read("b", end), 600u);
  const auto begin_anew = [&] {
    lease.Send("c", ReleasedEvent{});
    Lease next(&store(), "next", {"c"});
    send(&next, "c", 0, 519);
  };
  EXPECT_EQ(read("c", begin_anew), 520u);
}

TEST_P(MetricsTest, SummarisesAsPointsArrive) {
  Submit({"a", "b"});
  Lease lease(&store(), "l", {"a", "b"});
  lease.Send("a", MakePoints(3, {MakeColumn("z", {0, 1, 2}, {NAN, 4, -2})}));
  lease.Send("a", MakePoints(6, {MakeColumn("a", {3}, {kInfinity}), MakeColumn("z", {5}, {1})}));
  const auto summaries = Value(store().Summaries({"b", "a"}));
  ASSERT_THAT(summaries, SizeIs(2));
  EXPECT_THAT(summaries[0].keys, IsEmpty());
  ASSERT_THAT(summaries[1].keys, SizeIs(2));
  const Summary& none = summaries[1].keys[0];
  EXPECT_EQ(none.key, "a");
  EXPECT_EQ(none.count, 1u);
  EXPECT_EQ(none.nonfinite, 1u);
  EXPECT_EQ(none.first_nonfinite_step, 3u);
  const Summary& z = summaries[1].keys[1];
  EXPECT_EQ(z.key, "z");
  EXPECT_EQ(z.first, 4);
  EXPECT_EQ(z.last, 1);
  EXPECT_EQ(z.min, -2);
  EXPECT_EQ(z.max, 4);
  EXPECT_DOUBLE_EQ(z.mean, 1);
  EXPECT_EQ(z.count, 4u);
  EXPECT_EQ(z.nonfinite, 1u);
  EXPECT_EQ(z.first_nonfinite_step, 0u);
  EXPECT_EQ(CodeOf(store().Summaries({"a", "nothing"})), absl::StatusCode::kNotFound);
}

TEST_P(MetricsTest, HasTheLastValueWhateverItIs) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  lease.Send("a", MakePoints(3, {MakeColumn("x", {0, 1, 2}, {4, -2, NAN})}));
  const auto last = [&] { return Value(store().Summaries({"a"}))[0].keys[0].last; };
  EXPECT_TRUE(std::isnan(last())) << "not -2, the last finite one";
  lease.Send("a", MakePoints(4, {MakeColumn("x", {3}, {kInfinity})}));
  EXPECT_EQ(last(), kInfinity);
  lease.Send("a", MakePoints(5, {MakeColumn("x", {4}, {1})}));
  EXPECT_EQ(last(), 1);
}

TEST_P(MetricsTest, HasNoLastValuesAfterARunDivergedBeforeItsEnd) {
  Submit({"early", "end"});
  for (const auto& [run, step] : {std::pair("early", kSteps - 1), std::pair("end", kSteps)}) {
    Lease lease(&store(), absl::StrCat("l-", run), {run});
    lease.Send(run, MakePoints(step, {MakeColumn("eval/loss", {0, 10}, {3, 2}),
                                      MakeColumn("train/loss", {0}, {3})}));
    lease.Send(run, FinishedEvent{true, step});
  }
  const auto summaries = Value(store().Summaries({"early", "end"}));
  for (const Summary& early : summaries[0].keys) EXPECT_TRUE(std::isnan(early.last)) << early.key;
  EXPECT_EQ(summaries[0].keys[0].min, 2) << "stays";
  EXPECT_EQ(summaries[1].keys[0].last, 2) << "of the evaluation at its end";
}

// The numbers of a store of version 23, whose last values were the last finite ones.
TEST_P(MetricsTest, CorrectsTheLastValuesOfAnOlderStore) {
  if (!on_file()) GTEST_SKIP();
  const std::vector<std::string> runs = {"early", "nan", "mended", "finite"};
  Submit(runs);
  for (const std::string& run : runs) {
    Lease lease(&store(), absl::StrCat("l-", run), {run});
    const double middle = run == "early" || run == "finite" ? 2.5 : NAN;
    const double end = run == "nan" ? NAN : 2;
    const bool early = run == "early";
    const uint32_t step = early ? 3 : kSteps;
    lease.Send(run, MakePoints(step, {MakeColumn("x", {0, 1, 2}, {3, middle, end})}));
    lease.Send(run, FinishedEvent{early, step});
  }
  Close();
  {
    auto db = Value(Connection::OpenFile(folder() + "/ablate.db", Connection::Access::kReadWrite));
    for (const std::string& run : runs) {
      Statement row(*db, "SELECT id FROM runs WHERE name = ?1", run);
      ASSERT_TRUE(row.Row());
      KeySummaries summaries = Value(LoadSummaries(*db, row.Int(0), run));
      summaries[0].summary.last = run == "nan" ? 3 : 2;
      SaveSummaries(*db, row.Int(0), run, summaries);
    }
    db->Execute(absl::StrCat("UPDATE final_values SET last = min;", BackToVersion(24)).c_str());
    ASSERT_TRUE(db->error().ok()) << db->error();
  }
  Reopen();
  const auto summaries = Value(store().Summaries(runs));
  EXPECT_TRUE(std::isnan(summaries[0].keys[0].last));
  EXPECT_TRUE(std::isnan(summaries[1].keys[0].last));
  EXPECT_EQ(summaries[2].keys[0].last, 2);
  EXPECT_EQ(summaries[3].keys[0].last, 2);
  RunQuery query;
  query.viewer = kServer;
  query.limit = 10;
  query.order_by = RunKey{RunKey::Kind::kLast, "x"};
  query.where.test = {*query.order_by, RunTest::Op::kExists, {}};
  query.where.kind = RunCondition::Kind::kTest;
  std::vector<std::string> found;
  for (const FoundCell& cell : Value(store().FindCells(query))) found.push_back(cell.cell.run);
  EXPECT_THAT(found, ElementsAre("mended", "finite"));
}

TEST_P(MetricsTest, SummariesDoNotDependOnFlushes) {
  Submit({"one", "many"});
  Lease lease(&store(), "l", {"one", "many"});
  Column all{"x", {}, {}};
  std::vector<LeaseEvent> events;
  for (uint32_t i = 0; i < 100; ++i) {
    all.steps.push_back(i);
    all.values.push_back(i % 7 == 3 ? NAN : std::sin(i) * 1e300 * (i % 2 == 0 ? 1e8 : -1e8));
    events.push_back(
        lease.Next("many", MakePoints(1, {MakeColumn("x", {i}, {all.values.back()})})));
  }
  ASSERT_TRUE(ApplyAndWait(store(), "i1", events).ok());
  lease.Send("one", MakePoints(1, {all}));
  const auto summaries = Value(store().Summaries({"one", "many"}));
  EXPECT_EQ(Bits(summaries[0].keys[0].mean), Bits(summaries[1].keys[0].mean));
  EXPECT_TRUE(std::isfinite(summaries[0].keys[0].mean));
  EXPECT_EQ(summaries[0].keys[0].first_nonfinite_step, 3u);
}

TEST_P(MetricsTest, CountsKeysOverDistinctRuns) {
  const std::string id = Submit({"a", "b", "a"}).id;
  Lease lease(&store(), "l", {"a", "b"});
  lease.Send("a",
             MakePoints(3, {MakeColumn("x", {0, 1, 2}, {1, 2, 3}), MakeColumn("y", {0}, {1})}));
  lease.Send("b", MakePoints(3, {MakeColumn("x", {0, 1}, {1, 2})}));
  EXPECT_THAT(Value(store().RunKeys("a")), ElementsAre(Pair("x", 3), Pair("y", 1)));
  EXPECT_THAT(Value(store().ExperimentKeys(id)), ElementsAre(Pair("x", 5), Pair("y", 1)));
  EXPECT_EQ(CodeOf(store().RunKeys("z")), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf(store().ExperimentKeys("z")), absl::StatusCode::kNotFound);
}

TEST_P(MetricsTest, RefusesMalformedColumns) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  ASSERT_EQ(lease.Send("a", MakePoints(1, {MakeColumn("x", {5}, {1})})), Applied::kApplied);
  EXPECT_THAT(Refuse(&lease, {MakeColumn("y", {}, {})}), HasSubstr("key 'y': has no points"));
  EXPECT_THAT(Refuse(&lease, {MakeColumn("y", {6, 7}, {1})}), HasSubstr("2 steps but 1 values"));
  EXPECT_THAT(Refuse(&lease, {MakeColumn("y", {7, 7}, {1, 1})}), HasSubstr("step 7 after step 7"));
  EXPECT_THAT(Refuse(&lease, {MakeColumn("x", {5}, {1})}), HasSubstr("step 5 after step 5"));
  EXPECT_THAT(Refuse(&lease, {MakeColumn("y", {6}, {1}), MakeColumn("y", {7}, {1})}),
              HasSubstr("key 'y': is repeated"));
  EXPECT_THAT(Refuse(&lease, {MakeColumn("", {6}, {1})}), HasSubstr("1 to 200 bytes"));
  EXPECT_THAT(Refuse(&lease, {MakeColumn(std::string(201, 'k'), {6}, {1})}),
              HasSubstr("has 201 bytes; expected at most 200"));
  EXPECT_EQ(lease.Send("a", MakePoints(1, {MakeColumn(std::string(200, 'k'), {6}, {1})})),
            Applied::kApplied);
}

// 2^32 - 1 was once stored for a run of 100 steps, and spoilt all of its figures.
TEST_P(MetricsTest, RefusesPointsOutsideTheirEventsSteps) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  ASSERT_EQ(lease.Send("a", PointsEvent{{MakeColumn("x", {0, 9, 10}, {1, 2, 3})}, 10, {}}),
            Applied::kApplied);
  const auto refuse = [&](PointsEvent event) {
    const auto refused = ApplyAndWait(store(), "i1", {{lease.name(), lease.sent() + 1, event}});
    EXPECT_EQ(CodeOf(refused), absl::StatusCode::kInvalidArgument);
    return std::string(refused.status().message());
  };
  EXPECT_THAT(refuse({{MakeColumn("x", {11, UINT32_MAX}, {1, 2})}, 20, {}}),
              HasSubstr("key 'x': step 4294967295; expected 10 to 20"));
  EXPECT_THAT(refuse({{MakeColumn("y", {9}, {1})}, 20, {}}),
              HasSubstr("key 'y': step 9; expected 10 to 20"));
  EXPECT_THAT(refuse({{}, 9, {}}), HasSubstr("step: 9; expected at least 10"));
  EXPECT_THAT(refuse({{}, 101, {}}), HasSubstr("step: 101; expected at most 100"));
  // Steps within, ends included, are valid: an evaluation is made before the update.
  EXPECT_EQ(lease.Send("a", PointsEvent{{MakeColumn("y", {10, 20}, {1, 2})}, 20, {}}),
            Applied::kApplied);
  EXPECT_EQ(Series("a", "x").size(), 3u);
}

TEST_P(MetricsTest, CapsTheNumberOfKeys) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  std::vector<Column> columns;
  for (int i = 0; i < 2000; ++i) columns.push_back(MakeColumn(absl::StrCat("key", i), {0}, {1}));
  ASSERT_EQ(lease.Send("a", MakePoints(1, columns)), Applied::kApplied);
  EXPECT_THAT(Refuse(&lease, {MakeColumn("one more", {1}, {1})}),
              HasSubstr("key 'one more': is one too many; expected at most 2000 keys"));
  for (Column& column : columns) column.steps[0] = 1;
  std::swap(columns[0], columns[1999]);  // in another order than before
  ASSERT_EQ(lease.Send("a", MakePoints(1, columns)), Applied::kApplied);
  EXPECT_THAT(Value(store().RunKeys("a")), SizeIs(2000));
  EXPECT_THAT(Series("a", "key1999"), SizeIs(2));
  lease.Send("a", FinishedEvent{false, 100});
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_THAT(Series("a", "key0"), ElementsAre(Pair(0, 1), Pair(1, 1)));
}

TEST_P(MetricsTest, TakesStepsUpToTheLargest) {
  Submit({"a"}, UINT32_MAX);
  Lease lease(&store(), "l", {"a"});
  lease.Send("a", MakePoints(1, {MakeColumn("x", {0, UINT32_MAX - 1}, {1, 2})}));
  lease.Send("a", MakePoints(1, {MakeColumn("x", {UINT32_MAX}, {3})}));
  EXPECT_THAT(Series("a", "x"), SizeIs(3));
  EXPECT_THAT(Series("a", "x", UINT32_MAX), ElementsAre(Pair(UINT32_MAX, 3)));
  lease.Send("a", FinishedEvent{false, UINT32_MAX});
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_THAT(Series("a", "x"), SizeIs(3));
}

TEST_P(MetricsTest, FreesWhatCompactionReplaces) {
  Submit({"a", "b"});
  Lease lease(&store(), "l", {"a", "b"});
  for (uint32_t g = 0; g < 50; ++g) {
    for (const char* run : {"a", "b"}) {
      lease.Send(run, MakePoints(1, {MakeColumn("x", {g}, {0.25})}));
    }
  }
  lease.Send("a", FinishedEvent{false, 100});
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_THAT(Series("a", "x"), SizeIs(50));
  EXPECT_THAT(Series("b", "x"), SizeIs(50));
  lease.Send("b", MakePoints(1, {MakeColumn("x", {50}, {0.25})}));
  EXPECT_THAT(Series("b", "x"), SizeIs(51));
}

}  // namespace
}  // namespace ablate::storage
