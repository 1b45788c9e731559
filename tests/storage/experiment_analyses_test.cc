// Tests analyses that experiments' specs ask for: when they must be planned, that an experiment
// ends with the last of them, and the state after cancelling and deleting.
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ExperimentAnalysesTest : public StoreTest {
 protected:
  std::string Submit(const std::vector<std::string>& runs, bool analyses = true) {
    NewExperiment experiment = MakeExperiment(runs);
    experiment.analyses = analyses;
    return Create(experiment).id;
  }
  void TrainRuns(const std::vector<std::string>& runs) {
    Lease lease(&store(), "lease of " + runs[0], runs);
    for (const std::string& run : runs) {
      lease.Send(run, Checkpoint(100));
      EXPECT_EQ(lease.Send(run, FinishedEvent{false, 100}), Applied::kApplied);
    }
  }
  static NewAnalysis Asked(const std::string& id, const std::string& run,
                           const std::string& experiment, const std::string& label = "ranks") {
    NewAnalysis analysis;
    analysis.id = id;
    analysis.signature = label + "'s signature";
    analysis.subjects = {{run, 100}};
    analysis.labels = {{experiment, label}};
    analysis.asked_by = experiment;
    analysis.asked_as = label;
    return analysis;
  }
  CreatedAnalysis Make(const NewAnalysis& analysis) {
    return Value(store().CreateAnalysis(analysis, kMostOpen));
  }
  std::vector<std::string> ReadyToPlan() {
    std::vector<std::string> ready;
    for (const UnplannedExperiment& each : Value(store().UnplannedExperiments()).ready) {
      ready.push_back(each.id);
    }
    return ready;
  }
  // Returns the experiment's present entry for planning.
  UnplannedExperiment Unplanned(const std::string& experiment) {
    for (const UnplannedExperiment& each : Value(store().UnplannedExperiments()).ready) {
      if (each.id == experiment) return each;
    }
    return {experiment, 0};
  }
  void Planned(const std::string& experiment, const std::string& failure = "") {
    EXPECT_TRUE(store().PlannedAnalyses(Unplanned(experiment), failure).ok());
  }
  void Fail(const std::string& run, const std::string& owner) {
    for (int i = 0; i < 3; ++i) {
      Lease lease(&store(), owner + std::to_string(i), {run});
      lease.Send(run, FailedEvent{"out of memory"});
    }
    ASSERT_EQ(StateOf(run), RunState::kFailed);
  }
  void End(const std::string& id, const std::string& failure = "") {
    AnalysisEnd end;
    end.result = failure.empty() ? "r" : "";
    end.failure = failure;
    EXPECT_TRUE(store().EndAnalysis(id, end).ok());
  }
  ExperimentRecord Get(const std::string& id) { return Value(store().GetExperiment(id)); }
  AnalysisState StateOfAnalysis(const std::string& id) {
    return Value(store().GetAnalysis(id)).state;
  }
};

INSTANTIATE_TEST_SUITE_P(, ExperimentAnalysesTest, ::testing::Values(Where::kFile, Where::kMemory),
                         WhereName);

TEST_P(ExperimentAnalysesTest, AreToBePlannedOnceAllRunsHaveEnded) {
  EXPECT_THAT(ReadyToPlan(), IsEmpty());
  const std::string experiment = Submit({"a", "b"});
  Submit({"a"}, /*analyses=*/false);
  EXPECT_THAT(ReadyToPlan(), IsEmpty());
  EXPECT_TRUE(Value(store().UnplannedExperiments()).others);
  TrainRuns({"a", "b"});
  const auto unplanned = Value(store().UnplannedExperiments());
  EXPECT_THAT(ReadyToPlan(), ElementsAre(experiment));
  EXPECT_FALSE(unplanned.others);
  EXPECT_EQ(Get(experiment).state, ExperimentState::kActive);
  EXPECT_TRUE(Get(experiment).analyses.any);
  EXPECT_FALSE(Get(experiment).analyses.planned);
}

TEST_P(ExperimentAnalysesTest, EndTheirExperimentWithTheLastOfThem) {
  const std::string experiment = Submit({"a", "b"});
  TrainRuns({"a", "b"});
  Make(Asked("x", "a", experiment));
  Make(Asked("y", "b", experiment));
  End("x");
  EXPECT_EQ(Get(experiment).state, ExperimentState::kActive) << "the plan may not be whole";
  Planned(experiment);
  EXPECT_THAT(ReadyToPlan(), IsEmpty());
  const AnalysisCounts counts = Get(experiment).analyses;
  EXPECT_TRUE(counts.planned);
  EXPECT_EQ(counts.queued, 1u);
  EXPECT_EQ(counts.done, 1u);
  EXPECT_EQ(Get(experiment).state, ExperimentState::kActive);
  const uint64_t change = store().change_number();
  End("y", "out of memory");
  EXPECT_EQ(Get(experiment).state, ExperimentState::kEnded);
  EXPECT_NE(Get(experiment).end_time, 0);
  EXPECT_EQ(Get(experiment).analyses.failed, 1u);
  EXPECT_GT(store().change_number(), change) << "watchers are woken";
  const auto asked = Value(store().AskedAnalyses(experiment));
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0].id, "x");
  EXPECT_EQ(asked[1].state, AnalysisState::kFailed);
}

TEST_P(ExperimentAnalysesTest, KeepTheirExperimentActiveWhileOneRuns) {
  const std::string experiment = Submit({"a", "b"});
  TrainRuns({"a", "b"});
  Make(Asked("x", "a", experiment));
  Make(Asked("y", "b", experiment));
  Planned(experiment);
  ASSERT_TRUE(store().BeginAnalysis("y").ok());
  End("x");
  EXPECT_EQ(Get(experiment).state, ExperimentState::kActive);
  End("y");
  EXPECT_EQ(Get(experiment).state, ExperimentState::kEnded);
}

TEST_P(ExperimentAnalysesTest, EndTheirExperimentAtOnceWhereAllIsThere) {
  const std::string first = Submit({"a"});
  TrainRuns({"a"});
  Make(Asked("x", "a", first));
  Planned(first);
  End("x");
  const std::string second = Submit({"a"});
  EXPECT_EQ(Get(second).state, ExperimentState::kActive);
  EXPECT_THAT(ReadyToPlan(), ElementsAre(second));
  EXPECT_TRUE(Make(Asked("x", "a", second)).reused);
  Planned(second, "cka: there is no checkpoint");
  EXPECT_EQ(Get(second).state, ExperimentState::kEnded);
  EXPECT_EQ(Get(second).analyses.done, 1u);
  EXPECT_EQ(Get(second).analyses.failure, "cka: there is no checkpoint");
  EXPECT_EQ(Get(first).state, ExperimentState::kEnded);
}

TEST_P(ExperimentAnalysesTest, ArePlannedAnewWhenARunLivesAgain) {
  const std::string experiment = Submit({"a", "b"});
  TrainRuns({"a"});
  Fail("b", "failing ");
  Make(Asked("x", "a", experiment));
  Planned(experiment);
  End("x");
  ASSERT_EQ(Get(experiment).state, ExperimentState::kEnded);
  Submit({"b"}, /*analyses=*/false);
  EXPECT_EQ(Get(experiment).state, ExperimentState::kActive);
  EXPECT_TRUE(Value(store().UnplannedExperiments()).others);
  Planned(experiment);
  EXPECT_FALSE(Get(experiment).analyses.planned) << "a run of it lives";
  TrainRuns({"b"});
  EXPECT_THAT(ReadyToPlan(), ElementsAre(experiment));
  Make(Asked("y", "b", experiment));
  Planned(experiment);
  EXPECT_EQ(Get(experiment).analyses.done, 0u) << "x is of the plan before";
  EXPECT_EQ(Get(experiment).analyses.queued, 1u);
}

TEST_P(ExperimentAnalysesTest, ArePlannedAnewWhenARunHasLivedAgainMeanwhile) {
  const std::string experiment = Submit({"a", "b"});
  TrainRuns({"a"});
  Fail("b", "failing ");
  const UnplannedExperiment planned = Unplanned(experiment);
  Make(Asked("x", "a", experiment));
  Submit({"b"}, /*analyses=*/false);
  TrainRuns({"b"});
  EXPECT_TRUE(store().PlannedAnalyses(planned, "").ok());
  EXPECT_FALSE(Get(experiment).analyses.planned) << "other values may be chosen now";
  EXPECT_EQ(Get(experiment).analyses.queued, 0u) << "x is of the plan before";
  EXPECT_THAT(ReadyToPlan(), ElementsAre(experiment));
  Planned(experiment);
  EXPECT_TRUE(Get(experiment).analyses.planned);
}

TEST_P(ExperimentAnalysesTest, AreNotMadeAgainWhereThePlanIsMadeAgain) {
  const std::string experiment = Submit({"a"});
  TrainRuns({"a"});
  Make(Asked("x", "a", experiment));
  End("x", "out of memory");
  EXPECT_TRUE(Make(Asked("x", "a", experiment)).reused);
  EXPECT_EQ(StateOfAnalysis("x"), AnalysisState::kFailed);
  EXPECT_FALSE(Make(Asked("x", "a", Submit({"a"}))).reused) << "another experiment asks";
}

TEST_P(ExperimentAnalysesTest, AreCancelledWithTheirExperimentUnlessAnotherWaits) {
  const std::string first = Submit({"a"}), second = Submit({"a"});
  TrainRuns({"a"});
  Make(Asked("shared", "a", first));
  Make(Asked("shared", "a", second));
  Make(Asked("own", "a", first, "sharpness"));
  Planned(first);
  Planned(second);
  EXPECT_THAT(Value(store().CancelExperiment(first)).analyses, ElementsAre("own"));
  EXPECT_EQ(Get(first).state, ExperimentState::kCancelled);
  EXPECT_EQ(StateOfAnalysis("own"), AnalysisState::kCancelled);
  EXPECT_EQ(StateOfAnalysis("shared"), AnalysisState::kQueued);
  EXPECT_EQ(Get(second).state, ExperimentState::kActive);
  const auto refused = store().CreateAnalysis(Asked("late", "a", first), kMostOpen);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_TRUE(absl::IsNotFound(store().GetAnalysis("late").status())) << "nothing is half done";
  EXPECT_THAT(Value(store().CancelExperiment(second)).analyses, ElementsAre("shared"));
}

TEST_P(ExperimentAnalysesTest, GoOnWhereSomebodyWaitsWhenTheirExperimentIsCancelled) {
  const std::string experiment = Submit({"a"});
  TrainRuns({"a"});
  const auto by_hand = [&](const std::string& id) {
    NewAnalysis analysis = Asked(id, "a", experiment, id);
    analysis.asked_by = analysis.asked_as = "";
    return analysis;
  };
  Make(by_hand("before"));
  Make(Asked("before", "a", experiment, "before"));
  Make(Asked("after", "a", experiment, "after"));
  Make(by_hand("after"));
  Make(Asked("own", "a", experiment, "own"));
  Planned(experiment);
  EXPECT_THAT(Value(store().CancelExperiment(experiment)).analyses, ElementsAre("own"));
  EXPECT_EQ(StateOfAnalysis("before"), AnalysisState::kQueued);
  EXPECT_EQ(StateOfAnalysis("after"), AnalysisState::kQueued);
}

TEST_P(ExperimentAnalysesTest, AreCancelledWhereNobodyWaitsForThemAnyMore) {
  const std::string first = Submit({"a"});
  TrainRuns({"a"});
  NewAnalysis by_hand = Asked("x", "a", first);
  by_hand.asked_by = by_hand.asked_as = "";
  Make(by_hand);
  EXPECT_TRUE(store().CancelAnalysis("x").ok());
  EXPECT_FALSE(Make(Asked("x", "a", first)).reused);
  Planned(first);
  EXPECT_THAT(Value(store().CancelExperiment(first)).analyses, ElementsAre("x"));
}

TEST_P(ExperimentAnalysesTest, AreLeftToOthersWhenTheirExperimentIsDeleted) {
  const std::string first = Submit({"a"}), second = Submit({"a"});
  TrainRuns({"a"});
  for (const std::string& experiment : {first, second}) {
    Make(Asked("x", "a", experiment));
    Planned(experiment);
  }
  End("x");
  ASSERT_TRUE(store().DeleteExperiment(first).ok());
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_EQ(Value(store().AskedAnalyses(second)).size(), 1u);
  ASSERT_TRUE(store().DeleteExperiment(second).ok());
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_TRUE(absl::IsNotFound(store().GetAnalysis("x").status()));
}

TEST_P(ExperimentAnalysesTest, LetTheLabelOfWhatFailedGo) {
  const std::string experiment = Submit({"a"}, /*analyses=*/false);
  TrainRuns({"a"});
  NewAnalysis first = Asked("first", "a", experiment);
  first.asked_by.clear();
  NewAnalysis second = first;
  second.id = "second";
  second.signature = "another";
  Make(first);
  const absl::Status taken = store().CheckLabels(second);
  EXPECT_TRUE(absl::IsAlreadyExists(taken)) << taken;
  EXPECT_THAT(std::string(taken.message()), HasSubstr("analyses/first"));
  End("first", "out of memory");
  EXPECT_TRUE(store().CheckLabels(second).ok());
  Make(second);
  End("second");
  ASSERT_EQ(Value(store().LabelledAnalyses(experiment)).size(), 1u);
  EXPECT_EQ(Value(store().LabelledAnalyses(experiment))[0].id, "second");
}

// A label that a user took before labels were reserved returns to the experiment's own analysis.
TEST_P(ExperimentAnalysesTest, TakeTheirLabelFromAnother) {
  const std::string experiment = Submit({"a"});
  TrainRuns({"a"});
  NewAnalysis other = Asked("other", "a", experiment);
  other.signature = "of other options";
  other.asked_by = other.asked_as = "";
  Make(other);
  Make(Asked("own", "a", experiment));
  EXPECT_TRUE(absl::IsAlreadyExists(store().CreateAnalysis(other, kMostOpen).status()));
  End("other");
  End("own");
  ASSERT_EQ(Value(store().LabelledAnalyses(experiment)).size(), 1u);
  EXPECT_EQ(Value(store().LabelledAnalyses(experiment))[0].id, "own");
}

TEST_P(ExperimentAnalysesTest, StayAsCancelledWhenTheyAreDeletedAndAreMadeAgain) {
  const std::string experiment = Submit({"a", "b"});
  TrainRuns({"a", "b"});
  for (const char* run : {"a", "b"}) Make(Asked(std::string("of ") + run, run, experiment));
  Planned(experiment);
  End("of a");
  EXPECT_EQ(Value(store().AnalysisAskers("of a")).size(), 1u);
  EXPECT_EQ(Value(store().AnalysisAskers("of a"))[0].experiment, experiment);
  EXPECT_TRUE(Value(store().AnalysisAskers("of a"))[0].active);
  ASSERT_TRUE(store().DeleteAnalysis("of a").ok());
  EXPECT_EQ(Get(experiment).state, ExperimentState::kActive) << "b's is open";
  ASSERT_TRUE(store().DeleteAnalysis("of b").ok());
  EXPECT_EQ(Get(experiment).state, ExperimentState::kEnded);
  EXPECT_EQ(Get(experiment).analyses.cancelled, 2u);
  EXPECT_EQ(Value(store().GetAnalysis("of a")).result, "");
  EXPECT_FALSE(Value(store().AnalysisAskers("of a"))[0].active);

  NewAnalysis by_hand = Asked("of a", "a", experiment);
  by_hand.asked_by = by_hand.asked_as = "";
  EXPECT_FALSE(Make(by_hand).reused);
  End("of a");
  EXPECT_EQ(Get(experiment).analyses.done, 1u) << "it counts as one of the experiment's again";
  EXPECT_EQ(Value(store().LabelledAnalyses(experiment)).size(), 1u);
}

}  // namespace
}  // namespace ablate::storage
