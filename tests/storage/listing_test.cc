// Lists and pages of experiments, cells and runs.
#include <algorithm>

#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ListingTest : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(, ListingTest, ::testing::Values(Where::kFile, Where::kMemory), WhereName);

TEST_P(ListingTest, ListsNewestFirstInPages) {
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(Submit({"a"}).id);
  std::reverse(ids.begin(), ids.end());
  std::vector<std::string> listed;
  std::string after;
  while (true) {
    const auto page = Value(store().ListExperiments(after, 2));
    for (const ExperimentRecord& record : page) listed.push_back(record.id);
    if (page.size() < 2) break;
    after = listed.back();
  }
  EXPECT_EQ(listed, ids);
  EXPECT_EQ(CodeOf(store().ListExperiments("names-0000", 2)), absl::StatusCode::kNotFound);
}

TEST_P(ListingTest, FindsByPrefix) {
  const std::string id = Submit({"abc1", "abc2", "abd"}).id;
  NewExperiment other = MakeExperiment({"abc1"});
  other.name = "other";
  const std::string other_id = Create(other).id;
  EXPECT_THAT(Value(store().FindExperiments("names", 5)), ElementsAre(id));
  EXPECT_THAT(Value(store().FindExperiments(other_id, 5)), ElementsAre(other_id));
  EXPECT_THAT(Value(store().FindExperiments("", 5)), SizeIs(2));
  EXPECT_THAT(Value(store().FindExperiments("zzz", 5)), IsEmpty());
  EXPECT_THAT(Value(store().FindRuns("abc", 5)), ElementsAre("abc1", "abc2"));
  EXPECT_THAT(Value(store().FindRuns("ab", 2)), SizeIs(2));
  EXPECT_THAT(Value(store().FindRuns("x", 5)), IsEmpty());
}

TEST_P(ListingTest, PagesCells) {
  const std::string id = Submit({"a", "b", "c", "d"}).id;
  const auto page = Value(store().ListCells(id, 2, 1));
  ASSERT_THAT(page, SizeIs(1));
  EXPECT_EQ(page[0].name, "c2");
  EXPECT_THAT(Value(store().ListCells(id, 4, 5)), IsEmpty());
  EXPECT_EQ(CodeOf(store().ListCells("nothing", 0, 1)), absl::StatusCode::kNotFound);
}

TEST_P(ListingTest, TellsWhichCellsChanged) {
  const std::string id = Submit({"a", "b", "c", "a"}).id;
  const std::string other = Submit({"z"}).id;
  EXPECT_THAT(Value(store().ChangedCells(id, 0, 10)), SizeIs(4));
  const uint64_t before = store().change_number();
  EXPECT_THAT(Value(store().ChangedCells(id, before, 10)), IsEmpty());

  Lease lease(&store(), "l", {"c", "a", "z"});
  lease.Send("z", MakePoints(1, {}));
  lease.Send("c", MakePoints(5, {}));
  lease.Send("a", MakePoints(6, {}));
  const auto changed = Value(store().ChangedCells(id, before, 10));
  ASSERT_THAT(changed, SizeIs(3));
  EXPECT_EQ(changed[0].run, "c");
  EXPECT_EQ(changed[0].step, 5u);
  EXPECT_EQ(changed[0].state, RunState::kLeased);
  EXPECT_EQ(changed[1].run, "a");
  EXPECT_EQ(changed[2].run, "a");
  EXPECT_LE(changed[2].change, store().change_number());
}

TEST_P(ListingTest, DoesNotPartCellsThatChangedTogether) {
  const std::string id = Submit({"a", "a", "a", "b"}).id;
  const uint64_t before = store().change_number();
  Lease lease(&store(), "l", {"a", "b"});
  std::vector<std::string> cells;
  uint64_t after = before;
  while (true) {
    const auto page = Value(store().ChangedCells(id, after, 1));
    if (page.empty()) break;
    for (const CellRecord& cell : page) cells.push_back(cell.name);
    after = page.back().change;
  }
  EXPECT_THAT(cells, ElementsAre("c0", "c1", "c2", "c3"));
}

TEST_P(ListingTest, LooksUpRunsAndThoseThatDifferOnlyInEvaluation) {
  NewExperiment wanted = MakeExperiment({"a", "b", "c"});
  wanted.runs[0].trajectory = wanted.runs[1].trajectory = "same";
  Create(wanted);
  Train({"a"});
  NewRun unknown = MakeRun("x");
  unknown.trajectory = "same";
  const auto known = Value(store().LookUpRuns({wanted.runs[0], wanted.runs[2], unknown}));
  ASSERT_THAT(known, SizeIs(3));
  EXPECT_EQ(known[0].run, "a");
  EXPECT_EQ(known[0].state, RunState::kDone);
  EXPECT_THAT(known[0].same_trajectory, ElementsAre("b"));
  EXPECT_THAT(known[1].same_trajectory, IsEmpty());
  EXPECT_EQ(known[2].run, "");
  EXPECT_THAT(known[2].same_trajectory, ElementsAre("a", "b"));
}

}  // namespace
}  // namespace ablate::storage
