// Requests for analyses: who gets them and who may answer.
#include <gmock/gmock.h>

#include "tests/schedule/analyses_fixture.h"

namespace ablate::schedule {
namespace {

namespace wire = worker::v1;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(AnalysesTest, GivesARequestToTheWorkerForAnalysesAndPassesItsAnswerOn) {
  const Peer trainer = Attach();
  const Peer analyst = AttachAnalyst();
  const auto asked = Ask();
  EXPECT_THAT(Given(trainer), IsEmpty());
  ASSERT_THAT(Given(analyst), ElementsAre(asked->id));
  SendPart(analyst, asked->id, 0);
  SendPart(analyst, asked->id, 1);
  SendResult(analyst, asked->id);
  EXPECT_THAT(asked->samples, ElementsAre(0, 1));
  EXPECT_THAT(asked->ends, ElementsAre(absl::OkStatus()));
  EXPECT_THAT(Withdrawn(analyst), IsEmpty());
}

TEST_F(AnalysesTest, NeverGrantsARunToAWorkerForAnalyses) {
  const Peer analyst = AttachAnalyst();
  Queue("runs", 3);
  scheduler_->Dispatch();
  Pass(absl::Seconds(3));
  EXPECT_THAT(analyst.grants(), IsEmpty());
  const Peer trainer = Attach();
  EXPECT_THAT(trainer.grants(), SizeIs(2));
  EXPECT_THAT(analyst.grants(), IsEmpty());
}

TEST_F(AnalysesTest, RefusesARequestThatNoWorkerWouldTake) {
  const Peer analyst = AttachAnalyst();
  AnalysisRequest request;
  request.message.mutable_samples()->set_prompt(std::string((1 << 20) + 1, 'a'));
  const absl::StatusOr<std::string> id = analyses().Submit(std::move(request));
  EXPECT_EQ(id.status(),
            absl::InvalidArgumentError("the analysis has 1048585 bytes; allowed: at most 1048576"));
  EXPECT_THAT(Given(analyst), IsEmpty());
  const auto asked = Ask();
  EXPECT_THAT(Given(analyst), ElementsAre(asked->id));
}

TEST_F(AnalysesTest, ListsBothWorkersOfADevice) {
  const Peer trainer = Attach();
  const Peer analyst = AttachAnalyst();
  const auto asked = Ask();
  const std::vector<WorkerInfo> workers = scheduler_->Workers();
  ASSERT_THAT(workers, SizeIs(2));
  EXPECT_TRUE(workers[0].analysis && workers[0].busy);
  EXPECT_FALSE(workers[1].analysis || workers[1].busy);
  SendResult(analyst, asked->id);
  EXPECT_FALSE(scheduler_->Workers()[0].busy);
}

TEST_F(AnalysesTest, GivesAWorkerOneAtATimeInTheOrderOfAsking) {
  const Peer first = AttachAnalyst("a");
  const auto one = Ask(), two = Ask(), three = Ask();
  EXPECT_THAT(Given(first), ElementsAre(one->id));
  const Peer second = AttachAnalyst("b");
  EXPECT_THAT(Given(second), ElementsAre(two->id));
  SendFailure(first, one->id, 3, "prompt: no");
  EXPECT_EQ(one->end(), absl::InvalidArgumentError("prompt: no"));
  EXPECT_THAT(Given(first), ElementsAre(one->id, three->id));
}

TEST_F(AnalysesTest, WaitsForAWorkerThatIsAboutToCome) {
  const auto asked = Ask();
  Pass(absl::Seconds(20));
  const Peer analyst = AttachAnalyst();
  EXPECT_THAT(Given(analyst), ElementsAre(asked->id));
}

TEST_F(AnalysesTest, RefusesMoreThanTheLimit) {
  std::vector<std::shared_ptr<Asked>> all;
  for (int i = 0; i < 16; ++i) all.push_back(Ask());
  const absl::Status refused = TryAsk(std::make_shared<Asked>());
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("at most 16"));
  analyses().Cancel(all[3]->id);
  EXPECT_TRUE(TryAsk(std::make_shared<Asked>()).ok());
}

TEST_F(AnalysesTest, LetsARunningOneReadItsOwnBlobsOnly) {
  const auto asked = Ask();
  EXPECT_TRUE(absl::IsNotFound(analyses().MayRead(asked->id, "x"))) << "nobody runs it yet";
  const Peer analyst = AttachAnalyst();
  EXPECT_TRUE(absl::IsPermissionDenied(analyses().MayRead(asked->id, "x")));
  SendResult(analyst, asked->id);
  EXPECT_TRUE(absl::IsNotFound(analyses().MayRead(asked->id, "x")));
}

TEST_F(AnalysesTest, RefusesAnAnswerOfAWorkerThatTrains) {
  AttachAnalyst();
  const auto asked = Ask();
  const Peer trainer = Attach();
  SendResult(trainer, asked->id);
  EXPECT_TRUE(absl::IsInvalidArgument(trainer.stream->closed));
  EXPECT_THAT(asked->ends, IsEmpty());
}

TEST_F(AnalysesTest, IgnoresAnswersOfAnotherWorkerForAnalyses) {
  AttachAnalyst("a");
  const auto asked = Ask();
  const Peer other = AttachAnalyst("b");
  SendPart(other, asked->id, 0);
  SendResult(other, asked->id);
  EXPECT_THAT(asked->samples, IsEmpty());
  EXPECT_THAT(asked->ends, IsEmpty());
  EXPECT_TRUE(other.open());
}

TEST_F(AnalysesTest, RefusesAHelloWithLeasesOrAnUnknownRole) {
  wire::FromWorker holding = AnalystsHello("a");
  holding.mutable_hello()->add_held()->set_lease("l");
  EXPECT_TRUE(absl::IsInvalidArgument(Attach(holding).stream->closed));
  wire::FromWorker odd = AnalystsHello("a");
  odd.mutable_hello()->set_role(static_cast<wire::Role>(7));
  EXPECT_THAT(std::string(Attach(odd).stream->closed.message()), HasSubstr("hello.role is 7"));
}

}  // namespace
}  // namespace ablate::schedule
