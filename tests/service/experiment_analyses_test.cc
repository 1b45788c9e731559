// Tests analyses that experiments' files ask for: requested once all runs have ended, for the
// selected runs, and reported with the experiment.
#include "tests/service/analysis_fixture.h"

namespace ablate::service {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;
using worker::v1::Analyze;

constexpr char kAxisOfRates[] = R"(
  axes { name: "lr" field: "training.learning_rate" tune: true
         values { number_value: 0.001 } values { number_value: 0.01 } })";

class ExperimentAnalysesTest : public AnalysisTest {
 protected:
  // `analyses` are entries as textproto.
  static v1::ExperimentSpec Asking(const std::string& analyses, uint32_t steps = 10) {
    v1::ExperimentSpec spec = SmallSpec(1, "asking", steps);
    spec.MergeFrom(SpecOf(analyses));
    return spec;
  }
  // Trains what is queued, in order; each run gets one of the losses.
  void Train(FakeWorker* worker, const std::vector<double>& losses, uint32_t steps) {
    for (const double loss : losses) {
      const FakeWorker::Leased run = worker->NextRun();
      worker->Started(run);
      worker->Points(run, {{"eval/loss", {steps}, {loss}}}, steps);
      worker->Checkpoint(run, steps, absl::StrCat("weights of ", run.run.run()));
      worker->Finished(run, steps);
    }
    worker->Settle();
  }
  static v1::Analysis Ranks(double rank) {
    v1::Analysis result;
    (*result.mutable_numbers())["stable_rank"].set_value(rank);
    return result;
  }
  // Waits until the condition holds for the experiment.
  v1::Experiment Await(const std::string& name,
                       const std::function<bool(const v1::Experiment&)>& holds) {
    Context context;
    v1::WatchExperimentRequest request;
    request.set_name(name);
    const auto reader = experiments_->WatchExperiment(&context, request);
    v1::ExperimentEvent event;
    v1::Experiment experiment = Get(name);
    while (!holds(experiment) && reader->Read(&event)) experiment = Get(name);
    if (!holds(experiment)) experiment = Get(name);
    EXPECT_TRUE(holds(experiment)) << experiment.DebugString();
    context.TryCancel();
    reader->Finish();
    return experiment;
  }
  v1::Experiment AwaitEnd(const std::string& name) {
    return Await(name, [](const v1::Experiment& experiment) {
      return experiment.state() != v1::ExperimentState::ACTIVE;
    });
  }
};

TEST_F(ExperimentAnalysesTest, AreMadeOfEveryRunOnceAllHaveEnded) {
  const std::string experiment =
      Create(Asking("analyses { spectrum {} } analyses { norm_response {} }", 20))
          .experiment()
          .name();
  const auto analyst = MakeAnalyst();
  const auto worker = MakeWorker();
  Train(worker.get(), {2}, 20);
  EXPECT_FALSE(Get(experiment).analyses().planned());
  Train(worker.get(), {1}, 20);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Get(experiment).state(), v1::ExperimentState::ACTIVE);
    analyst->ComputationResult(analyst->NextAnalysis(), Ranks(i));
  }
  const v1::Experiment ended = AwaitEnd(experiment);
  EXPECT_EQ(ended.state(), v1::ExperimentState::ENDED);
  EXPECT_EQ(ended.analyses().done(), 3u);
  EXPECT_EQ(ended.analyses().failure(), "");
  EXPECT_EQ(List(experiment).size(), 3u) << "the one of no run, too";
  std::map<std::string, int> labels;
  v1::ListAnalysesRequest list;
  list.set_parent(experiment);
  const auto listed = AnswerOf(*analyses_, &v1::Analyses::Stub::ListAnalyses, list);
  for (const v1::Analysis& analysis : listed.analyses()) {
    for (const std::string& label : analysis.labels()) ++labels[label];
  }
  EXPECT_THAT(labels, UnorderedElementsAre(Pair("spectrum", 2)));
  v1::QueryMetricsRequest query;
  query.set_experiment(experiment);
  query.add_keys("spectrum/stable_rank");
  EXPECT_EQ(Query(query).size(), 2u);
}

TEST_F(ExperimentAnalysesTest, AreOneOfAllStepsWhereTheKindReadsThemTogether) {
  const auto analyst = MakeAnalyst();
  const auto worker = MakeWorker();
  v1::ExperimentSpec spec = Asking(
      "analyses { trajectory {} } analyses { name: 'late' trajectory { points: 3 } at: [-1, 5, 10] "
      "}",
      20);
  for (const int32_t step : {0, 5, 10, -1})
    spec.mutable_base()->mutable_training()->add_checkpoints(step);
  const auto created = Create(spec);
  EXPECT_EQ(created.analyses(), 4u) << "of two runs";
  const std::string experiment = created.experiment().name();
  for (int i = 0; i < 2; ++i) {
    const FakeWorker::Leased run = worker->NextRun();
    worker->Started(run);
    for (const uint32_t step : {0, 5, 10, 20}) {
      worker->Checkpoint(run, step, absl::StrCat(run.run.run(), " at ", step));
    }
    worker->Points(run, {{"eval/loss", {20}, {2}}}, 20);
    worker->Finished(run, 20);
  }
  worker->Settle();
  std::vector<int> subjects;
  for (int i = 0; i < 4; ++i) {
    const Analyze analyze = analyst->NextAnalysis();
    subjects.push_back(analyze.computation().subjects_size());
    v1::Analysis result;
    (*result.mutable_numbers())["length"].set_value(subjects.back());
    analyst->ComputationResult(analyze, result);
  }
  EXPECT_THAT(subjects, UnorderedElementsAre(4, 4, 3, 3));
  EXPECT_EQ(AwaitEnd(experiment).analyses().failure(), "");
  for (const std::string& name : List(experiment)) {
    const v1::Analysis analysis = GetAnalysis(name);
    std::string steps;
    for (const v1::AnalysisSubject& of : analysis.subjects())
      absl::StrAppend(&steps, " ", of.step());
    EXPECT_EQ(steps, analysis.subjects_size() == 4 ? " 0 5 10 20" : " 5 10 20");
  }
  v1::QueryMetricsRequest query;
  query.set_experiment(experiment);
  query.add_keys("trajectory/length");
  query.add_keys("late/length");
  const std::vector<v1::Series> series = Query(query);
  ASSERT_EQ(series.size(), 4u);
  for (const v1::Series& of : series) {
    EXPECT_THAT(of.steps(), ElementsAre(20)) << "of the last checkpoint";
    EXPECT_THAT(of.values(), ElementsAre(of.key() == "late/length" ? 3 : 4));
  }
}

TEST_F(ExperimentAnalysesTest, AreHeldAgainstALimitByWhatOthersTookHere) {
  v1::ExperimentSpec spec = Asking("analyses { spectrum {} }");
  spec.mutable_seeds()->set_first(1);  // other runs than those that are done
  spec.mutable_limits()->mutable_device_time()->set_seconds(60);
  const auto analyst = MakeAnalyst();
  constexpr uint64_t kMinute = 60'000'000;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Preview(spec).problems_size(), 0) << i << " were made";
    v1::CreateAnalysisRequest request = Request("spectrum {}");
    request.set_seed(static_cast<uint32_t>(i));
    const std::string name = Ask(request).analysis().name();
    analyst->ComputationResult(analyst->NextAnalysis(), Ranks(1), "", kMinute);
    WaitUntil(name, v1::AnalysisState::DONE);
  }
  const v1::CreateExperimentResponse refused = Preview(spec);
  ASSERT_EQ(refused.problems_size(), 1);
  EXPECT_EQ(refused.problems(0).message(),
            "limits.device_time: training 2 runs with 2 analyses needs about 121s, more than 60s; "
            "expected at least 121s. Raise the limit, or submit a smaller experiment");
  spec.mutable_limits()->mutable_device_time()->set_seconds(121);
  EXPECT_EQ(Preview(spec).problems_size(), 0);
  EXPECT_TRUE(Preview(spec).estimate().measured());

  v1::ExperimentSpec stored = Asking("analyses { spectrum {} }");  // its runs, and one of two
  stored.mutable_limits()->mutable_device_time()->set_seconds(61);
  EXPECT_EQ(Preview(stored).problems_size(), 0);
  EXPECT_NEAR(static_cast<double>(Preview(stored).estimate().device_time().seconds()), 60, 1);
}

TEST_F(ExperimentAnalysesTest, TrainNothingWhereAFileAsksForMore) {
  const auto analyst = MakeAnalyst();
  const auto worker = MakeWorker();
  const std::string first = Create(Asking("analyses { spectrum {} }", 20)).experiment().name();
  Train(worker.get(), {1, 2}, 20);
  for (int i = 0; i < 2; ++i) analyst->ComputationResult(analyst->NextAnalysis(), Ranks(i));
  AwaitEnd(first);
  const auto more = Create(Asking("analyses { spectrum {} } analyses { weights {} }", 20));
  EXPECT_EQ(more.reused(), 2u);
  EXPECT_EQ(more.analyses(), 4u);
  for (int i = 0; i < 2; ++i) {
    const Analyze analyze = analyst->NextAnalysis();
    EXPECT_TRUE(analyze.computation().analysis().has_weights());
    analyst->ComputationResult(analyze, Ranks(i));
  }
  EXPECT_EQ(AwaitEnd(more.experiment().name()).analyses().done(), 4u);
}

TEST_F(ExperimentAnalysesTest, AreOfTheChosenValuesOfTunedAxes) {
  v1::ExperimentSpec spec = Asking("analyses { spectrum {} }", 20);
  spec.clear_axes();
  spec.MergeFrom(SpecOf(kAxisOfRates));
  spec.mutable_seeds()->set_count(2);
  const auto analyst = MakeAnalyst();
  const auto worker = MakeWorker();
  const std::string experiment = Create(spec).experiment().name();
  Train(worker.get(), {2, 2, 1, 1}, 20);
  for (int i = 0; i < 2; ++i) analyst->ComputationResult(analyst->NextAnalysis(), Ranks(i));
  AwaitEnd(experiment);
  const std::vector<v1::RunRow> rows = Rows(experiment);
  std::vector<std::string> analyzed;
  for (const std::string& name : List(experiment)) {
    analyzed.push_back(GetAnalysis(name).subjects(0).run());
  }
  EXPECT_THAT(analyzed, UnorderedElementsAre(rows[2].run(), rows[3].run()));

  spec.mutable_analyses(0)->set_on(v1::AnalyzedRuns::all);
  const std::string all = Create(spec).experiment().name();
  for (int i = 0; i < 2; ++i) analyst->ComputationResult(analyst->NextAnalysis(), Ranks(i));
  EXPECT_EQ(AwaitEnd(all).analyses().done(), 4u);
}

TEST_F(ExperimentAnalysesTest, LeaveModelsOutThatHaveNoUseForThem) {
  v1::ExperimentSpec spec = Asking("analyses { norm_statistics {} }", 20);
  spec.mutable_axes(0)->mutable_settings(1)->clear_set();
  spec.MergeFrom(
      SpecOf("axes { name: 'final' field: 'model.norm.final' values { bool_value: false } }"));
  auto& set = *spec.mutable_axes(0)->mutable_settings(1)->mutable_set();
  set["model.norm.placement"].set_string_value("none");
  const auto analyst = MakeAnalyst();
  const auto worker = MakeWorker();
  const std::string experiment = Create(spec).experiment().name();
  Train(worker.get(), {1, 2}, 20);
  analyst->ComputationResult(analyst->NextAnalysis(), Ranks(1));
  const v1::Experiment ended = AwaitEnd(experiment);
  EXPECT_EQ(ended.analyses().done(), 1u);
  EXPECT_EQ(ended.analyses().failure(), "");
}

TEST_F(ExperimentAnalysesTest, MayBePrimaryBeforeTheyAreMade) {
  const auto worker = MakeWorker();
  v1::ExperimentSpec spec = Asking("analyses { spectrum {} }", 20);
  spec.mutable_report()->set_primary("spectrum/stable_rank");
  const std::string experiment = Create(spec).experiment().name();
  Train(worker.get(), {1, 2}, 20);
  EXPECT_EQ(Compare(experiment).rows(0).n(), 0u);
  const auto analyst = MakeAnalyst();
  for (int i = 0; i < 2; ++i) analyst->ComputationResult(analyst->NextAnalysis(), Ranks(i));
  AwaitEnd(experiment);
  EXPECT_EQ(Compare(experiment).rows(0).n(), 1u);
  std::vector<double> last;
  for (const v1::RunRow& row : Rows(experiment)) {
    for (const v1::Summary& summary : row.summaries()) {
      if (summary.key() == "spectrum/stable_rank") last.push_back(summary.last());
    }
  }
  EXPECT_THAT(last, UnorderedElementsAre(0, 1)) << "runs are listed with their primary number";
}

TEST_F(ExperimentAnalysesTest, SayWhichNumbersThereAre) {
  const auto worker = MakeWorker();
  const std::string experiment =
      Create(Asking("analyses { name: 'ranks' spectrum {} }", 20)).experiment().name();
  Train(worker.get(), {1, 2}, 20);
  v1::CompareRequest request;
  request.set_experiment(experiment);
  const auto refusal = [&](const std::string& key) {
    request.set_key(key);
    return TryCompare(request).error_message();
  };
  EXPECT_THAT(refusal("ranks/nonsense"), HasSubstr("key: \"ranks/nonsense\" isn't a number of "
                                                   "spectrum; expected ranks/ followed by "));
  EXPECT_THAT(refusal("ranks/isoscore"),
              HasSubstr("expected a recorded key. No analysis with the label ranks has ended yet"));
  const auto analyst = MakeAnalyst();
  for (int i = 0; i < 2; ++i) analyst->ComputationResult(analyst->NextAnalysis(), Ranks(i));
  AwaitEnd(experiment);
  EXPECT_THAT(refusal("ranks/isoscore"), testing::EndsWith("expected ranks/stable_rank"));
}

TEST_F(ExperimentAnalysesTest, EndAtOnceWhereNoRunConverged) {
  const auto worker = MakeWorker();
  const auto analyst = MakeAnalyst();
  const std::string experiment =
      Create(Asking("analyses { spectrum {} } analyses { norm_response {} }", 20))
          .experiment()
          .name();
  for (int i = 0; i < 2; ++i) {
    const FakeWorker::Leased run = worker->NextRun();
    worker->Started(run);
    worker->Finished(run, 0, /*diverged=*/true);
  }
  analyst->ComputationResult(analyst->NextAnalysis(), Ranks(1));
  const v1::Experiment ended = AwaitEnd(experiment);
  EXPECT_EQ(ended.analyses().done(), 1u) << "norm_response is of no run";
  EXPECT_EQ(ended.analyses().failure(), "");
}

TEST_F(ExperimentAnalysesTest, SayWhatFailed) {
  const auto analyst = MakeAnalyst();
  const auto worker = MakeWorker();
  const std::string experiment =
      Create(Asking("analyses { name: 'ranks' spectrum {} }", 20)).experiment().name();
  Train(worker.get(), {1, 2}, 20);
  analyst->AnalysisFailed(analyst->NextAnalysis(), absl::FailedPreconditionError("too odd"));
  analyst->ComputationResult(analyst->NextAnalysis(), Ranks(1));
  const v1::Experiment ended = AwaitEnd(experiment);
  EXPECT_EQ(ended.state(), v1::ExperimentState::ENDED);
  EXPECT_EQ(ended.analyses().failed(), 1u);
  EXPECT_EQ(ended.analyses().done(), 1u);
}

TEST_F(ExperimentAnalysesTest, GoWithTheirExperimentWhenItIsCancelled) {
  const auto worker = MakeWorker();
  const std::string experiment = Create(Asking("analyses { spectrum {} }", 20)).experiment().name();
  Train(worker.get(), {1, 2}, 20);
  Await(experiment, [](const v1::Experiment& one) { return one.analyses().planned(); });
  const v1::Experiment cancelled = Cancel(experiment);
  EXPECT_EQ(cancelled.state(), v1::ExperimentState::CANCELLED);
  EXPECT_EQ(cancelled.analyses().cancelled(), 2u);
  const auto analyst = MakeAnalyst();
  const std::string next = Queue("weights {}");
  EXPECT_TRUE(analyst->NextAnalysis().computation().analysis().has_weights());
}

TEST_F(ExperimentAnalysesTest, AreTakenUpByTheNextServer) {
  std::string experiment;
  {
    const auto worker = MakeWorker();
    experiment = Create(Asking("analyses { spectrum {} }", 20)).experiment().name();
    Train(worker.get(), {1, 2}, 20);
  }
  Restart();
  const auto analyst = MakeAnalyst();
  for (int i = 0; i < 2; ++i) analyst->ComputationResult(analyst->NextAnalysis(), Ranks(i));
  EXPECT_EQ(AwaitEnd(experiment).analyses().done(), 2u);
}

TEST_F(ExperimentAnalysesTest, AreRefusedBeforeAnythingIsQueued) {
  v1::CreateExperimentRequest request;
  request.set_request_id("r");
  *request.mutable_spec() = Asking("analyses { spectrum {} at: 3 }");
  const grpc::Status refused = TryCreate(request);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(refused), "analyses[0].at[0]");
  request.set_validate_only(true);
  *request.mutable_spec() = Asking("analyses { spectrum {} at: [-1] }");
  v1::CreateExperimentResponse response;
  ASSERT_TRUE(TryCreate(request, &response).ok());
  EXPECT_THAT(response.problems(), IsEmpty());
  EXPECT_EQ(response.analyses(), 2u);
}

TEST_F(ExperimentAnalysesTest, AreRefusedForWhatTheDataLackBeforeAnythingIsQueued) {
  const std::string names = Upload("names", "anna\nbob\nclara\n").name();
  v1::CreateExperimentRequest request;
  request.set_request_id("r");
  const auto ask = [&](const std::string& analyses) {
    v1::ExperimentSpec spec = Asking(analyses);
    v1::DocumentsTask* task = spec.mutable_base()->mutable_task()->mutable_documents();
    task->set_dataset(names);
    task->set_held_out(1);
    spec.mutable_base()->mutable_model()->set_context(8);
    *request.mutable_spec() = std::move(spec);
    const grpc::Status status = TryCreate(request);
    return absl::StrCat(FieldOf(status), " | ", status.error_message());
  };
  EXPECT_THAT(ask("analyses { spectrum {} } analyses { attention {} inputs { prompt: 'anx' } }"),
              AllOf(StartsWith("analyses[1].inputs.prompt | "),
                    HasSubstr("character 3, \"x\" U+0078, is not in the run's data")));
  EXPECT_THAT(ask("analyses { cka {} inputs { dataset: '" + Upload("x", "max\n").name() + "' } }"),
              AllOf(StartsWith("analyses[0].inputs.dataset | "), HasSubstr("\"m\" U+006D")));
  const auto needs_tagged =
      AllOf(StartsWith("analyses[1].inputs.dataset | "),
            HasSubstr("probe needs tagged sentences; "), ::testing::Not(HasSubstr("seed")));
  EXPECT_THAT(ask("analyses { spectrum {} } analyses { probe {} }"), needs_tagged);
  EXPECT_THAT(ask("analyses { spectrum {} } analyses { probe {} inputs { dataset: 'x' } }"),
              needs_tagged);
  Upload("longer", "anna\nbob\nclara\nbo\n");
  EXPECT_THAT(
      ask("analyses { attention { maps: heads } inputs { dataset: 'longer' } }"),
      AllOf(StartsWith("analyses[0].attention.maps | "), HasSubstr("4 of up to 6 are read")));
  EXPECT_THAT(ask("analyses { patch { clean: 'an' corrupt: 'xn' right: 'a' wrong: 'b' } }"),
              AllOf(StartsWith("analyses[0].patch.corrupt[0] | "), HasSubstr("\"x\" U+0078"),
                    ::testing::Not(HasSubstr("seed"))));
  EXPECT_EQ(ask("analyses { attention {} inputs { prompt: 'an' } }"), " | ");
}

// The seed decides which two of the three documents are held out, and if their lengths differ.
TEST_F(ExperimentAnalysesTest, AreRefusedForWhatAnySeedHoldsOut) {
  const std::string names = Upload("names", "aa\nbb\nccc\n").name();
  const auto refusal = [&](const std::vector<uint32_t>& seeds) {
    v1::CreateExperimentRequest request;
    request.set_validate_only(true);
    v1::ExperimentSpec spec = Asking("analyses { capture { sites: 'block.0.attention.weights' } }");
    v1::DocumentsTask* task = spec.mutable_base()->mutable_task()->mutable_documents();
    task->set_dataset(names);
    task->set_held_out(2);
    spec.mutable_base()->mutable_model()->set_context(8);
    spec.mutable_seeds()->clear_count();
    spec.mutable_seeds()->mutable_list()->Add(seeds.begin(), seeds.end());
    *request.mutable_spec() = std::move(spec);
    v1::CreateExperimentResponse response;
    EXPECT_TRUE(TryCreate(request, &response).ok());
    return response.problems().empty() ? "" : response.problems(0).message();
  };
  std::vector<uint32_t> good, bad;
  for (uint32_t seed = 0; seed < 20; ++seed) (refusal({seed}).empty() ? good : bad).push_back(seed);
  ASSERT_FALSE(good.empty());
  ASSERT_FALSE(bad.empty());
  EXPECT_EQ(refusal(good), "");
  good.push_back(bad[0]);
  EXPECT_THAT(refusal(good), AllOf(StartsWith("analyses[0].capture.sites[0]: "),
                                   HasSubstr(absl::StrCat(", with seed ", bad[0], ";"))));
}

TEST_F(ExperimentAnalysesTest, KeepTheirLabelsBeforeTheyAreMade) {
  const auto analyst = MakeAnalyst();
  const auto worker = MakeWorker();
  const std::string experiment = Create(Asking("analyses { spectrum {} }", 20)).experiment().name();
  Train(worker.get(), {1}, 20);
  v1::CreateAnalysisRequest request = RequestOf("analysis { spectrum {} } inputs { tokens: 100 }");
  request.add_subjects()->set_experiment(experiment);
  request.mutable_subjects(0)->set_cell(Rows(experiment)[0].cell());
  request.set_label("spectrum");
  const grpc::Status refused = Try(request);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_THAT(refused.error_message(), HasSubstr("label: spectrum is reserved in experiment"));
  request.set_validate_only(true);
  const v1::CreateAnalysisResponse dry = Ask(request);
  ASSERT_EQ(dry.problems_size(), 1);
  EXPECT_EQ(dry.problems(0).field(), "label");
  EXPECT_EQ(dry.problems(0).message(), refused.error_message());
  request.set_validate_only(false);
  request.set_label("short");
  Ask(request);
  request.mutable_inputs()->set_tokens(200);
  const grpc::Status taken = Try(request);
  EXPECT_EQ(taken.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_THAT(taken.error_message(), StartsWith("label: short is used in experiment "));
  request.set_validate_only(true);
  EXPECT_EQ(Ask(request).problems(0).message(), taken.error_message());
  request.set_validate_only(false);
  request.clear_label();
  EXPECT_EQ(Ask(request).label(), "spectrum-2");
  request.mutable_inputs()->set_tokens(300);
  EXPECT_EQ(Ask(request).label(), "spectrum-3") << "spectrum-2 is of 200 tokens";
  request.mutable_inputs()->set_tokens(200);
  EXPECT_EQ(Ask(request).label(), "spectrum-2");
  request.clear_inputs();
  EXPECT_EQ(Ask(request).label(), "spectrum");
  const std::string own = Ask(request).analysis().name();  // the file's own, ahead of time
  Train(worker.get(), {2}, 20);
  for (int i = 0; i < 5; ++i) analyst->ComputationResult(analyst->NextAnalysis(), Ranks(i));
  const v1::Experiment ended = AwaitEnd(experiment);
  EXPECT_EQ(ended.analyses().failure(), "");
  EXPECT_EQ(ended.analyses().done(), 2u);
  EXPECT_THAT(List(experiment), ::testing::Contains(own));
}

TEST_F(ExperimentAnalysesTest, AreMadeAgainAfterTheyWereRemoved) {
  const auto analyst = MakeAnalyst();
  const auto worker = MakeWorker();
  const std::string experiment = Create(Asking("analyses { spectrum {} }", 20)).experiment().name();
  Train(worker.get(), {1, 2}, 20);
  for (int i = 0; i < 2; ++i) analyst->ComputationResult(analyst->NextAnalysis(), Ranks(i));
  AwaitEnd(experiment);
  const std::string removed = List(experiment)[0];
  AnswerOf(*analyses_, &v1::Analyses::Stub::DeleteAnalysis,
           Named<v1::DeleteAnalysisRequest>(removed));
  EXPECT_EQ(Get(experiment).analyses().cancelled(), 1u);
  EXPECT_EQ(GetAnalysis(removed).state(), v1::AnalysisState::CANCELLED);
  EXPECT_TRUE(GetAnalysis(removed).numbers().empty());
  v1::QueryMetricsRequest query;
  query.set_experiment(experiment);
  query.add_keys("spectrum/stable_rank");
  EXPECT_EQ(Query(query).size(), 1u);

  v1::CreateAnalysisRequest again = RequestOf("analysis { spectrum {} }");
  again.add_subjects()->set_run(GetAnalysis(removed).subjects(0).run());
  EXPECT_EQ(Ask(again).analysis().name(), removed);
  analyst->ComputationResult(analyst->NextAnalysis(), Ranks(3));
  WaitUntil(removed, v1::AnalysisState::DONE);
  EXPECT_EQ(Query(query).size(), 2u);
  EXPECT_EQ(Get(experiment).analyses().done(), 2u);
}

}  // namespace
}  // namespace ablate::service
