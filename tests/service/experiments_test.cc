// Tests getting, listing, cancelling and deleting experiments.
#include <future>

#include "absl/strings/str_cat.h"
#include "proto/metadata.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class ExperimentsTest : public ServiceTest {
 protected:
  grpc::Status TryGet(const std::string& name) {
    return StatusOf(*experiments_, &v1::Experiments::Stub::GetExperiment,
                    Named<v1::GetExperimentRequest>(name));
  }
  v1::ListExperimentsResponse List(uint32_t page_size, const std::string& token = "") {
    v1::ListExperimentsRequest request;
    request.set_page_size(page_size);
    request.set_page_token(token);
    return AnswerOf(*experiments_, &v1::Experiments::Stub::ListExperiments, request);
  }
  // Returns the experiment that `name` means, and the answer's kNewestOf.
  std::pair<std::string, std::string> GetWithMetadata(const std::string& name) {
    Context context;
    v1::Experiment found;
    const grpc::Status status =
        experiments_->GetExperiment(&context, Named<v1::GetExperimentRequest>(name), &found);
    EXPECT_TRUE(status.ok()) << status.error_message();
    const auto& metadata = context.GetServerTrailingMetadata();
    const auto said = metadata.find(kNewestOf);
    return {found.name(),
            said == metadata.end() ? "" : std::string(said->second.data(), said->second.size())};
  }
};

TEST_F(ExperimentsTest, IsFoundByNameIdAndPrefix) {
  const std::string name = Create(SmallSpec(1, "placement")).experiment().name();
  const std::string id = name.substr(std::string("experiments/").size());
  for (const std::string& form : {name, id, id.substr(0, 4), "experiments/" + id.substr(0, 4)}) {
    EXPECT_EQ(Get(form).name(), name) << form;
  }
}

TEST_F(ExperimentsTest, PrefersAWholeIdToTheBeginningOfAnother) {
  const std::string first = Create(SmallSpec(1, "a")).experiment().name();
  // An id that begins with the first one.
  const std::string longer = first.substr(std::string("experiments/").size());
  Create(SmallSpec(1, longer));
  EXPECT_EQ(Get(first).name(), first);
}

TEST_F(ExperimentsTest, PrefersAnExactNameToLongerOnes) {
  const std::string name = Create(SmallSpec(1, "placement")).experiment().name();
  Create(SmallSpec(1, "placement-b"));
  const auto [found, newest_of] = GetWithMetadata("placement");
  EXPECT_EQ(found, name);
  EXPECT_EQ(newest_of, "") << "no other has the name";
}

TEST_F(ExperimentsTest, TakesANameForItsNewestExperimentAndSaysSo) {
  Create(SmallSpec(1, "placement"));
  const std::string name = Create(SmallSpec(1, "placement")).experiment().name();
  Create(SmallSpec(1, "placement-b"));
  const auto [found, newest_of] = GetWithMetadata("placement");
  EXPECT_EQ(found, name);
  EXPECT_EQ(newest_of, "placement " + name.substr(std::string("experiments/").size()));
  EXPECT_EQ(GetWithMetadata(name), std::make_pair(name, std::string()));
  EXPECT_EQ(TryDelete("placement").error_code(), grpc::StatusCode::NOT_FOUND)
      << "what is removed is named by its whole ID";
}

TEST_F(ExperimentsTest, SaysWhichExperimentWasMeant) {
  const std::string name = Create(SmallSpec(1, "placement")).experiment().name();
  const std::string id = name.substr(std::string("experiments/").size());
  const grpc::Status status = TryGet("plaecment" + id.substr(9));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("did you mean " + id + "?"));
  EXPECT_EQ(ReasonOf(status), "EXPERIMENT_NOT_FOUND");
}

TEST_F(ExperimentsTest, SuggestsANameWhenItIsMisspelt) {
  Create(SmallSpec(1, "placement"));
  EXPECT_THAT(TryGet("placment").error_message(), HasSubstr("; did you mean placement?"));
}

TEST_F(ExperimentsTest, ListsWhatAnAmbiguousPrefixBegins) {
  const std::string a = Create(SmallSpec(1, "placement-a")).experiment().name().substr(12);
  const std::string b = Create(SmallSpec(1, "placement-b")).experiment().name().substr(12);
  const grpc::Status status = TryGet("placement");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            absl::StrCat("name: \"placement\" matches several experiments: ", a, ", ", b,
                         ". Use a longer prefix"));
}

TEST_F(ExperimentsTest, AreListedNewestFirstPageByPage) {
  std::vector<std::string> names;
  for (int i = 0; i < 7; ++i) {
    names.push_back(Create(SmallSpec(1, absl::StrCat("e", i))).experiment().name());
  }
  std::vector<std::string> listed;
  std::string token;
  int pages = 0;
  do {
    const v1::ListExperimentsResponse page = List(3, token);
    EXPECT_LE(page.experiments_size(), 3);
    for (const v1::Experiment& experiment : page.experiments()) listed.push_back(experiment.name());
    token = page.next_page_token();
    ++pages;
  } while (!token.empty());
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(listed, std::vector<std::string>(names.rbegin(), names.rend()));
}

TEST_F(ExperimentsTest, HaveNoNextPageWhenTheLastIsFull) {
  for (int i = 0; i < 4; ++i) Create(SmallSpec(1, absl::StrCat("e", i)));
  const std::string token = List(2).next_page_token();
  EXPECT_EQ(List(2, token).experiments_size(), 2);
  EXPECT_EQ(List(2, token).next_page_token(), "");
  EXPECT_TRUE(List(0).next_page_token().empty());
}

TEST_F(ExperimentsTest, EndAPageBeforeItIsTooLarge) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.set_question(std::string(700'000, 'q'));  // past the service, which takes shorter ones only
  storage::NewExperiment record;
  record.name = "large";
  record.spec = spec.SerializeAsString();
  record.cells = {{"c", {}, 0, "f"}};
  record.runs.resize(1);
  record.runs[0].fingerprint = "f";
  record.runs[0].device_kind = "cpu";
  for (int i = 0; i < 10; ++i) {
    record.request_id = absl::StrCat(i);
    ASSERT_TRUE(store().CreateExperiment(record).ok());
  }
  std::string token;
  int listed = 0;
  do {
    const v1::ListExperimentsResponse page = List(1'000, token);
    EXPECT_LT(page.ByteSizeLong(), size_t{4} << 20);
    listed += page.experiments_size();
    token = page.next_page_token();
  } while (!token.empty());
  EXPECT_EQ(listed, 10);
}

TEST_F(ExperimentsTest, RefuseATokenWhoseExperimentIsGone) {
  for (int i = 0; i < 3; ++i) Create(SmallSpec(1, absl::StrCat("e", i)));
  const v1::ListExperimentsResponse page = List(1);
  Cancel(page.experiments(0).name());
  ASSERT_TRUE(TryDelete(page.experiments(0).name()).ok());
  v1::ListExperimentsRequest request;
  request.set_page_token(page.next_page_token());
  const grpc::Status status =
      StatusOf(*experiments_, &v1::Experiments::Stub::ListExperiments, request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "page_token");
}

TEST_F(ExperimentsTest, StopTheirRunsWhenCancelledAlsoIfNoStateIsSaved) {
  save_timeout_ = absl::Milliseconds(10);
  Restart();
  const std::string name = Create(SmallSpec()).experiment().name();
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  worker->Started(run);
  worker->Settle();
  const v1::Experiment cancelled = Cancel(name);
  EXPECT_EQ(cancelled.state(), v1::ExperimentState::CANCELLED);
  EXPECT_EQ(cancelled.counts().cancelled(), 2u);
  worker->WaitForCancel(run);
  EXPECT_EQ(Cancel(name).state(), v1::ExperimentState::CANCELLED);
}

TEST_F(ExperimentsTest, GoOnFromWhereTheyWereCancelled) {
  const std::string name = Create(SmallSpec()).experiment().name();
  const auto worker = MakeWorker("cpu-train", 1);
  const FakeWorker::Leased run = worker->NextRun();
  worker->Started(run);
  worker->Points(run, {{"train/loss", {0, 1, 2}, {3, 2, 1}}}, 3);
  worker->Settle();
  auto cancelled = std::async(std::launch::async, [this, &name] { Cancel(name); });
  worker->WaitForSave(run);
  const std::string state = worker->State(run, 3, "state after 3 steps");
  worker->WaitForCancel(run);
  cancelled.get();
  const v1::CreateExperimentResponse preview = Preview(SmallSpec()),
                                     fresh = Preview(SmallSpec(), true);
  EXPECT_THAT(preview.notes(), Contains("1 cancelled run continues from its saved state"));
  EXPECT_THAT(fresh.notes(), Not(Contains("1 cancelled run continues from its saved state")));
  const auto seconds = [](const v1::CreateExperimentResponse& response) {
    const auto& time = response.estimate().device_time();
    return static_cast<double>(time.seconds()) + time.nanos() / 1e9;
  };
  EXPECT_LT(seconds(preview), seconds(fresh));
  Create(SmallSpec());
  FakeWorker::Leased again;
  do {
    again = worker->NextRun();
  } while (again.run.run() != run.run.run() && !again.run.run().empty());
  EXPECT_EQ(again.run.resume_step(), 3u);
  EXPECT_EQ(again.run.resume_blob(), state);
}

TEST_F(ExperimentsTest, LeaveRunsToOthersWhenCancelled) {
  const std::string first = Create(SmallSpec(1, "first")).experiment().name();
  const std::string second = Create(SmallSpec(1, "second")).experiment().name();
  Cancel(first);
  EXPECT_EQ(Get(second).state(), v1::ExperimentState::ACTIVE);
  const auto worker = MakeWorker();
  TrainAll(worker.get(), 2);
  EXPECT_EQ(Get(second).counts().done(), 2u);
}

TEST_F(ExperimentsTest, AreDeletedOnlyWhenTheyHaveEnded) {
  const v1::CreateExperimentResponse created = Create(SmallSpec());
  const std::string name = created.experiment().name();
  const grpc::Status refused = TryDelete(name);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonOf(refused), "EXPERIMENT_ACTIVE");
  Cancel(name);
  EXPECT_TRUE(TryDelete(name).ok());
  EXPECT_EQ(TryGet(name).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(TryDelete(name).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(List(0).experiments_size(), 0);
}

TEST_F(ExperimentsTest, AreNotDeletedByADryRun) {
  const std::string name = Create(SmallSpec(2)).experiment().name();
  auto request = Named<v1::DeleteExperimentRequest>(name);
  request.set_validate_only(true);
  const grpc::Status refused =
      StatusOf(*experiments_, &v1::Experiments::Stub::DeleteExperiment, request);
  EXPECT_EQ(ReasonOf(refused), "EXPERIMENT_ACTIVE");
  Cancel(name);
  const v1::DeleteExperimentResponse plan =
      AnswerOf(*experiments_, &v1::Experiments::Stub::DeleteExperiment, request);
  EXPECT_EQ(plan.runs(), 4u);
  EXPECT_EQ(plan.shared_runs(), 0u);
  EXPECT_TRUE(TryGet(name).ok());
  const v1::DeleteExperimentResponse deleted =
      AnswerOf(*experiments_, &v1::Experiments::Stub::DeleteExperiment,
               Named<v1::DeleteExperimentRequest>(name));
  EXPECT_EQ(deleted.runs(), 4u);
  EXPECT_EQ(TryGet(name).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ExperimentsTest, AreNotCancelledOrDeletedByTheBeginningOfAName) {
  const std::string first = Create(SmallSpec(1, "a")).experiment().name();
  // Its id begins with the whole of the first one's.
  const std::string other = Create(SmallSpec(1, first.substr(12))).experiment().name();
  Cancel(first);
  Cancel(other.substr(12));
  ASSERT_TRUE(TryDelete(first).ok());

  const grpc::Status repeated = TryDelete(first);
  EXPECT_EQ(repeated.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(repeated.error_message(),
            absl::StrCat("there is no experiment \"", first.substr(12), "\", but ",
                         other.substr(12), " begins with it. Give the whole ID"));
  EXPECT_EQ(ReasonOf(repeated), "EXPERIMENT_NOT_FOUND");
  EXPECT_EQ(StatusOf(*experiments_, &v1::Experiments::Stub::CancelExperiment,
                     Named<v1::CancelExperimentRequest>(other.substr(0, other.size() - 1)))
                .error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Get(first).name(), other);  // a read still completes IDs
}

}  // namespace
}  // namespace ablate::service
