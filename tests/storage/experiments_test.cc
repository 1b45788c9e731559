// Tests experiments and the runs that they share: creating, reusing, cancelling, listing.
#include <algorithm>

#include "base/sha256.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

class ExperimentsTest : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(, ExperimentsTest, ::testing::Values(Where::kFile, Where::kMemory),
                         WhereName);

// As two submissions at the same time: neither knew the other when it was planned.
TEST_P(ExperimentsTest, CreatesOneExperimentOfEqualSubmissions) {
  const auto submit = [this](NewExperiment experiment) {
    experiment.repeats = [](const ExperimentRecord& known) { return known.spec == "the spec"; };
    return Value(store().CreateExperiment(experiment));
  };
  const CreatedExperiment first = submit(MakeExperiment({"a", "b"}));
  EXPECT_FALSE(first.identical);
  const CreatedExperiment second = submit(MakeExperiment({"a", "b"}));
  EXPECT_TRUE(second.identical);
  EXPECT_EQ(second.id, first.id);
  EXPECT_FALSE(submit(MakeExperiment({"a"})).identical) << "fewer cells";
  EXPECT_FALSE(submit(MakeExperiment({"b", "a"})).identical) << "other runs";
  NewExperiment bobs = MakeExperiment({"a", "b"});
  bobs.owner = "bob";
  EXPECT_FALSE(submit(bobs).identical);
  NewExperiment other = MakeExperiment({"a", "b"});
  other.spec = "another spec";
  const CreatedExperiment third = Value(store().CreateExperiment(other));
  EXPECT_FALSE(third.identical) << "the submission didn't ask";
  EXPECT_EQ(submit(MakeExperiment({"a", "b"})).id, first.id);
}

TEST_P(ExperimentsTest, CreatesCellsAndQueuesRuns) {
  NewExperiment wanted = MakeExperiment({"a", "b", "a"});
  const CreatedExperiment created = Create(wanted);
  EXPECT_THAT(created.id, MatchesRegex("names-[a-z2-7]{4}"));
  EXPECT_FALSE(created.repeated);
  EXPECT_EQ(created.reused, 0u);
  ASSERT_THAT(created.cells, SizeIs(3));
  EXPECT_EQ(created.cells[0].run, "a");
  EXPECT_EQ(created.cells[2].run, "a");

  const ExperimentRecord record = Value(store().GetExperiment(created.id));
  EXPECT_EQ(record.id, created.id);
  EXPECT_EQ(record.name, "names");
  EXPECT_EQ(record.owner, "ann");
  EXPECT_EQ(record.spec, "the spec");
  EXPECT_EQ(record.state, ExperimentState::kActive);
  EXPECT_EQ(record.counts.queued, 3u);
  EXPECT_EQ(record.create_time, now());

  const auto cells = Value(store().ListCells(created.id, 0, 10));
  ASSERT_THAT(cells, SizeIs(3));
  EXPECT_EQ(cells[1].index, 1u);
  EXPECT_EQ(cells[1].name, "c1");
  EXPECT_EQ(cells[1].labels, wanted.cells[1].labels);
  EXPECT_EQ(cells[1].run, "b");
  EXPECT_EQ(cells[1].steps, 100u);
  EXPECT_GT(cells[1].change, 0u);

  const RunRecord run = Run("b");
  EXPECT_EQ(run.trajectory, "t-b");
  EXPECT_EQ(run.spec, "spec of b");
  EXPECT_EQ(run.parameters, 1234u);
  EXPECT_EQ(run.seed, 7u);
  EXPECT_EQ(run.create_time, now());
  EXPECT_THAT(History("b"), ElementsAre("queued"));
}

TEST_P(ExperimentsTest, AnswersARepeatedRequestWithTheFirstAnswer) {
  const CreatedExperiment before = Submit({"a"});
  const NewExperiment wanted = MakeExperiment({"a", "b"});
  const CreatedExperiment first = Create(wanted);
  EXPECT_EQ(first.reused, 1u);
  Train({"b"});
  const CreatedExperiment again = Create(wanted);
  EXPECT_TRUE(again.repeated);
  EXPECT_EQ(again.id, first.id);
  EXPECT_EQ(again.reused, 1u);
  ASSERT_THAT(again.cells, SizeIs(2));
  EXPECT_TRUE(again.cells[0].reused);
  EXPECT_FALSE(again.cells[1].reused);
  EXPECT_EQ(again.cells[1].run, "b");
  EXPECT_THAT(Value(store().ListExperiments(kServer, {}, "", 10)), SizeIs(2));
}

TEST_P(ExperimentsTest, FindsARequestThatWasAnswered) {
  Submit({"a"});
  const NewExperiment wanted = MakeExperiment({"a", "b"});
  EXPECT_EQ(Value(store().FindRequest(wanted.owner, wanted.request_id, wanted.request_hash)),
            std::nullopt);
  const CreatedExperiment created = Create(wanted);
  const auto found =
      Value(store().FindRequest(wanted.owner, wanted.request_id, wanted.request_hash));
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->repeated);
  EXPECT_EQ(found->id, created.id);
  EXPECT_EQ(found->reused, 1u);
  EXPECT_THAT(found->cells, SizeIs(2));
  EXPECT_EQ(CodeOf(store().FindRequest(wanted.owner, wanted.request_id, "another")),
            absl::StatusCode::kAlreadyExists);
}

TEST_P(ExperimentsTest, RefusesARequestIdThatWasUsedForSomethingElse) {
  NewExperiment wanted = MakeExperiment({"a"});
  Create(wanted);
  wanted.request_hash = "another";
  const auto refused = store().CreateExperiment(wanted);
  EXPECT_EQ(CodeOf(refused), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(refused.status().message(), HasSubstr(wanted.request_id));
}

TEST_P(ExperimentsTest, ChangesNothingWhenTheGridIsInvalid) {
  NewExperiment same_names = MakeExperiment({"a", "b"});
  same_names.cells[1].name = "c0";
  NewExperiment no_run = MakeExperiment({"a", "b"});
  no_run.cells[1].fingerprint = "zz";
  NewExperiment twice = MakeExperiment({"a", "b"});
  twice.runs[1].fingerprint = "a";
  NewExperiment no_data = MakeExperiment({"a", "b"});
  no_data.runs[1].dataset_blob = Sha256Hex("unknown");
  for (const auto& [wanted, code] : {std::pair{same_names, absl::StatusCode::kInvalidArgument},
                                     std::pair{no_run, absl::StatusCode::kInvalidArgument},
                                     std::pair{twice, absl::StatusCode::kInvalidArgument},
                                     std::pair{no_data, absl::StatusCode::kNotFound}}) {
    EXPECT_EQ(CodeOf(store().CreateExperiment(wanted)), code);
  }
  EXPECT_THAT(Value(store().ListExperiments(kServer, {}, "", 10)), IsEmpty());
  EXPECT_THAT(Value(store().Queue("cpu", {"torch"}, 10)), IsEmpty());
  EXPECT_EQ(CodeOf(store().GetRun("a")), absl::StatusCode::kNotFound);
}

TEST_P(ExperimentsTest, IsNoFullDiskWhenItExceedsAQuota) {
  NewExperiment experiment = MakeExperiment({"a", "b"});
  experiment.max_open_runs = 1;
  EXPECT_EQ(CodeOf(store().CreateExperiment(experiment)), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(store().stalled(), "");
  EXPECT_EQ(CodeOf(store().GetRun("a")), absl::StatusCode::kNotFound);
}

TEST_P(ExperimentsTest, ReusesRunsInAnyStateButFailedAndCancelled) {
  Submit({"queued", "leased", "done", "diverged"});
  const std::string cancelled = Submit({"cancelled"}).id;
  ASSERT_TRUE(store().CancelExperiment(cancelled).ok());
  Submit({"failed"});
  for (int i = 0; i < 3; ++i) {
    Lease lease(&store(), "f" + std::to_string(i), {"failed"});
    lease.Send("failed", FailedEvent{"boom"});
  }
  Train({"done"});
  Train({"diverged"}, /*diverged=*/true);
  Lease lease(&store(), "l", {"leased"});

  const CreatedExperiment created =
      Submit({"queued", "leased", "done", "diverged", "cancelled", "failed", "new"});
  std::vector<bool> reused;
  for (const CreatedCell& cell : created.cells) reused.push_back(cell.reused);
  EXPECT_THAT(reused, ElementsAre(true, true, true, true, false, false, false));
  EXPECT_EQ(created.reused, 4u);
  std::vector<int64_t> first;
  for (const CellRecord& cell : Value(store().ListCells(created.id, 0, 7))) {
    first.push_back(cell.first_experiment);
  }
  EXPECT_THAT(first, ElementsAre(1, 1, 1, 1, 2, 3, 4)) << "the experiment that first had the run";
  EXPECT_EQ(StateOf("failed"), RunState::kQueued);
  EXPECT_EQ(Run("failed").failures, 0u);
  EXPECT_EQ(Run("failed").failure, "");
  EXPECT_EQ(StateOf("cancelled"), RunState::kQueued);
  EXPECT_THAT(History("cancelled"), ElementsAre("queued", "cancelled", "queued"));
  ExpectConsistent(created.id);
  ExpectConsistent(cancelled);
  EXPECT_EQ(Value(store().GetExperiment(cancelled)).state, ExperimentState::kCancelled);
}

TEST_P(ExperimentsTest, RevivesAnEndedExperimentWhoseFailedRunIsQueuedAgain) {
  const std::string first = Submit({"a"}).id;
  for (int i = 0; i < 3; ++i) {
    Lease(&store(), "f" + std::to_string(i), {"a"}).Send("a", FailedEvent{"boom"});
  }
  EXPECT_EQ(Value(store().GetExperiment(first)).state, ExperimentState::kEnded);
  ExpectConsistent(first);
  const std::string second = Submit({"a"}).id;
  EXPECT_EQ(Value(store().GetExperiment(first)).state, ExperimentState::kActive);
  ExpectConsistent(first);
  Train({"a"});
  for (const std::string& id : {first, second}) {
    EXPECT_EQ(Value(store().GetExperiment(id)).state, ExperimentState::kEnded);
    ExpectConsistent(id);
  }
}

TEST_P(ExperimentsTest, MakesGenerationsWhenFresh) {
  Submit({"a"});
  NewExperiment fresh = MakeExperiment({"a"});
  fresh.fresh = true;
  const CreatedExperiment second = Create(fresh);
  EXPECT_EQ(second.cells[0].run, "a.2");
  EXPECT_FALSE(second.cells[0].reused);
  fresh = MakeExperiment({"a"});
  fresh.fresh = true;
  EXPECT_EQ(Create(fresh).cells[0].run, "a.3");
  const CreatedExperiment newest = Submit({"a"});
  EXPECT_EQ(newest.cells[0].run, "a.3");
  EXPECT_TRUE(newest.cells[0].reused);
  EXPECT_EQ(Value(store().LookUpRuns({MakeRun("a")}))[0].run, "a.3");
  EXPECT_EQ(Value(store().ListCells(second.id, 0, 9))[0].run, "a.2");
}

TEST_P(ExperimentsTest, CancelsRunsThatNobodyElseHas) {
  const std::string first = Submit({"shared", "mine", "running"}).id;
  const std::string second = Submit({"shared"}).id;
  Lease lease(&store(), "l1", {"running"});
  lease.Send("running", StartedEvent{});
  Advance(5);
  const auto withdrawn = Value(store().CancelExperiment(first)).withdrawals;
  ASSERT_THAT(withdrawn, SizeIs(1));
  EXPECT_EQ(withdrawn[0].lease, "l1");
  EXPECT_EQ(withdrawn[0].worker, "cpu-train");
  EXPECT_EQ(StateOf("shared"), RunState::kQueued);
  EXPECT_EQ(StateOf("mine"), RunState::kCancelled);
  EXPECT_EQ(StateOf("running"), RunState::kCancelled);
  EXPECT_EQ(Run("running").end_time, now());
  const ExperimentRecord record = Value(store().GetExperiment(first));
  EXPECT_EQ(record.state, ExperimentState::kCancelled);
  EXPECT_EQ(record.end_time, now());
  EXPECT_EQ(record.counts.cancelled, 2u);
  EXPECT_EQ(record.counts.queued, 1u);
  ExpectConsistent(second);

  const uint64_t change = store().change_number();
  EXPECT_THAT(Value(store().CancelExperiment(first)).withdrawals, IsEmpty());
  EXPECT_EQ(store().change_number(), change);
  EXPECT_EQ(CodeOf(store().CancelExperiment("names-zzzz")), absl::StatusCode::kNotFound);
  EXPECT_THAT(Value(store().ListLeases()), IsEmpty());
}

TEST_P(ExperimentsTest, DoesNotCancelWhatHasEnded) {
  const std::string id = Submit({"a"}).id;
  Train({"a"});
  EXPECT_THAT(Value(store().CancelExperiment(id)).withdrawals, IsEmpty());
  EXPECT_EQ(Value(store().GetExperiment(id)).state, ExperimentState::kEnded);
  EXPECT_EQ(StateOf("a"), RunState::kDone);
}

TEST_P(ExperimentsTest, QueuesByBestLivePriorityThenAge) {
  Submit({"old", "shared"});
  NewExperiment urgent = MakeExperiment({"shared", "late"});
  urgent.priority = 0;
  const std::string urgent_id = Create(urgent).id;
  NewExperiment patient = MakeExperiment({"slow", "old"});
  patient.priority = 2;
  Create(patient);
  const auto names = [&] {
    std::vector<std::string> runs;
    for (const QueuedRun& run : Value(store().Queue("cpu", {"torch"}, 10))) runs.push_back(run.run);
    return runs;
  };
  EXPECT_THAT(names(), ElementsAre("shared", "late", "old", "slow"));
  const QueuedRun first = Value(store().Queue("cpu", {"torch"}, 1))[0];
  EXPECT_EQ(first.priority, 0);
  EXPECT_EQ(first.shape, "shape");
  EXPECT_EQ(first.device_kind, "cpu");
  EXPECT_EQ(first.trainer, "torch");
  EXPECT_EQ(first.steps, 100u);
  EXPECT_THAT(Value(store().Queue("cuda", {"torch"}, 10)), IsEmpty());
  EXPECT_THAT(Value(store().Queue("cpu", {"native"}, 10)), IsEmpty());
  EXPECT_THAT(Value(store().Queue("cpu", {}, 10)), IsEmpty());
  ASSERT_TRUE(store().CancelExperiment(urgent_id).ok());
  EXPECT_THAT(names(), ElementsAre("old", "shared", "slow"));
}

TEST_P(ExperimentsTest, KeepsItsPlaceInTheQueueWhenItComesBack) {
  Submit({"a", "b"});
  Lease lease(&store(), "l", {"a"});
  lease.Send("a", ReleasedEvent{});
  EXPECT_EQ(Value(store().Queue("cpu", {"torch"}, 1))[0].run, "a");
}

TEST_P(ExperimentsTest, RemembersEverythingAfterReopening) {
  const CreatedExperiment created = Submit({"a", "b"});
  Train({"a"});
  const uint64_t change = store().change_number();
  const std::string generation = store().generation();
  EXPECT_THAT(generation, MatchesRegex("[0-9a-f]{16}"));
  Reopen();
  EXPECT_EQ(store().change_number(), change);
  EXPECT_EQ(store().generation(), generation);
  EXPECT_EQ(StateOf("a"), RunState::kDone);
  EXPECT_EQ(Value(store().Queue("cpu", {"torch"}, 10))[0].run, "b");
  EXPECT_THAT(Series("a", "train/loss"), SizeIs(3));
  ExpectConsistent(created.id);
}

// --- Lists and pages of experiments, cells and runs.

class ListingTest : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(, ListingTest, ::testing::Values(Where::kFile, Where::kMemory), WhereName);

TEST_P(ListingTest, ListsNewestFirstInPages) {
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(Submit({"a"}).id);
  std::reverse(ids.begin(), ids.end());
  std::vector<std::string> listed;
  std::string after;
  while (true) {
    const auto page = Value(store().ListExperiments(kServer, {}, after, 2));
    for (const ExperimentRecord& record : page) listed.push_back(record.id);
    if (page.size() < 2) break;
    after = listed.back();
  }
  EXPECT_EQ(listed, ids);
  EXPECT_EQ(CodeOf(store().ListExperiments(kServer, {}, "names-0000", 2)),
            absl::StatusCode::kNotFound);
}

TEST_P(ListingTest, FindsByPrefix) {
  const std::string id = Submit({"abc1", "abc2", "abd"}).id;
  NewExperiment other = MakeExperiment({"abc1"});
  other.name = "other";
  const std::string other_id = Create(other).id;
  EXPECT_THAT(Value(store().FindExperiments(kServer, "names", 5)), ElementsAre(id));
  EXPECT_THAT(Value(store().FindExperiments(kServer, other_id, 5)), ElementsAre(other_id));
  EXPECT_THAT(Value(store().FindExperiments(kServer, "", 5)), SizeIs(2));
  EXPECT_THAT(Value(store().FindExperiments(kServer, "zzz", 5)), IsEmpty());
  EXPECT_THAT(Value(store().FindRuns(kServer, "abc", 5)), ElementsAre("abc1", "abc2"));
  EXPECT_THAT(Value(store().FindRuns(kServer, "ab", 2)), SizeIs(2));
  EXPECT_THAT(Value(store().FindRuns(kServer, "x", 5)), IsEmpty());
}

TEST_P(ListingTest, FindsTheNewestOfAName) {
  NewExperiment longer = MakeExperiment({"a"});
  longer.name = "names-2";
  const std::string longer_id = Create(longer).id;
  const std::string first = Submit({"b"}).id, second = Submit({"c"}).id;
  const auto named = [&](const std::string& name, uint32_t limit = 5) {
    std::vector<std::string> ids;
    for (const auto& one : Value(store().ExperimentsNamed(kServer, name, limit))) {
      ids.push_back(one.id);
    }
    return ids;
  };
  EXPECT_THAT(named("names"), ElementsAre(second, first));
  EXPECT_THAT(named("names", 1), ElementsAre(second));
  ExperimentUpdate archived;
  archived.archived = true;
  ASSERT_TRUE(store().UpdateExperiment(second, archived).ok());
  EXPECT_THAT(named("names"), ElementsAre(first, second));
  ExperimentUpdate renamed;
  renamed.name = "old";
  ASSERT_TRUE(store().UpdateExperiment(second, renamed).ok());
  EXPECT_THAT(named("names"), ElementsAre(first));
  EXPECT_THAT(named("old"), ElementsAre(second));
  EXPECT_THAT(Value(store().FindExperiments(kServer, first, 5)), ElementsAre(first));
  EXPECT_THAT(Value(store().FindExperiments(kServer, "names-", 1)), SizeIs(1));
}

TEST_P(ExperimentsTest, ShowsWhatIsPrivateToItsOwner) {
  const std::string open = Create(MakeExperiment({"o"})).id;
  NewExperiment wanted = MakeExperiment({"p"});
  wanted.private_to = "ann";
  const std::string hidden = Create(wanted).id;
  const auto ids = [&](const Viewer& viewer, absl::string_view owner = "") {
    std::vector<std::string> found;
    for (const ExperimentRecord& record :
         Value(store().ListExperiments(viewer, {std::string(owner)}, "", 9))) {
      found.push_back(record.id);
    }
    return found;
  };
  EXPECT_THAT(ids({"ann"}), ElementsAre(hidden, open));
  EXPECT_THAT(ids(kServer), ElementsAre(hidden, open));
  EXPECT_THAT(ids({"bob"}), ElementsAre(open));
  EXPECT_THAT(ids({"bob"}, "ann"), ElementsAre(open));
  EXPECT_THAT(ids({"bob"}, "bob"), IsEmpty());
  EXPECT_EQ(CodeOf(store().ListExperiments({"bob"}, {}, hidden, 9)), absl::StatusCode::kNotFound);
  EXPECT_THAT(Value(store().FindExperiments({"bob"}, hidden, 9)), IsEmpty());
  EXPECT_EQ(Value(store().GetExperiment(hidden)).private_to, "ann");
  EXPECT_THAT(Value(store().FindRuns({"bob"}, "", 9)), ElementsAre("o"));
  EXPECT_THAT(Value(store().VisibleRuns({"bob"}, {"p", "o"})), ElementsAre("o"));
  EXPECT_EQ(Run("p").private_to, "ann");
  EXPECT_TRUE(Value(store().OwnsAnything("ann")));
}

TEST_P(ExperimentsTest, NeverSharesARunOfAnothersPrivacy) {
  NewExperiment wanted = MakeExperiment({"p"});
  wanted.private_to = "ann";
  Create(wanted);
  EXPECT_EQ(CodeOf(store().CreateExperiment(MakeExperiment({"p"}))), absl::StatusCode::kInternal);
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

TEST_P(ListingTest, HasNewsOfPublicExperimentsThatAreActiveOrEndedLately) {
  NewExperiment hidden = MakeExperiment({"h"});
  hidden.private_to = hidden.owner;
  Create(hidden);
  const std::string ended = Create(MakeExperiment({"a"})).id;
  Train({"a"});
  Advance(1'000);
  const std::string active = Create(MakeExperiment({"b"})).id;
  const auto all = Value(store().NewsSince(now() - 1'000));
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].id, ended);
  EXPECT_EQ(all[0].state, ExperimentState::kEnded);
  EXPECT_EQ(all[0].counts.done, 1u);
  EXPECT_EQ(all[1].id, active);
  EXPECT_EQ(all[1].state, ExperimentState::kActive);
  EXPECT_EQ(all[1].counts.queued, 1u);
  const auto later = Value(store().NewsSince(now()));
  ASSERT_THAT(later, SizeIs(1));
  EXPECT_EQ(later[0].id, active);
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
