// Requests for analyses: every way in which they end without an answer.
#include <gmock/gmock.h>

#include "tests/schedule/analyses_fixture.h"

namespace ablate::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(AnalysesTest, EndsWithoutAWorkerAfterAWhile) {
  const auto asked = Ask();
  scheduler_->Exited({"cpu-analysis", true, "exit code 4: no memory", true});
  Pass(absl::Seconds(31));
  EXPECT_TRUE(absl::IsUnavailable(asked->end()));
  EXPECT_THAT(std::string(asked->end().message()),
              AllOf(HasSubstr("no worker for analyses"), HasSubstr("exit code 4: no memory")));
}

TEST_F(AnalysesTest, SaysHowTheWorkerDiedWhicheverIsHeardFirst) {
  for (const bool stream_first : {true, false}) {
    Restart();
    const Peer analyst = AttachAnalyst();
    const auto asked = Ask();
    if (stream_first) scheduler_->Closed(analyst.session);
    EXPECT_THAT(asked->ends, IsEmpty()) << "the reason is on its way";
    scheduler_->Exited({"a", true, "killed by SIGSEGV", true});
    ASSERT_THAT(asked->ends, SizeIs(1));
    EXPECT_TRUE(absl::IsUnavailable(asked->end()));
    EXPECT_THAT(std::string(asked->end().message()),
                AllOf(HasSubstr("killed by SIGSEGV"), HasSubstr("try again")));
    EXPECT_THAT(Given(AttachAnalyst()), IsEmpty()) << "it may have killed its worker";
  }
}

TEST_F(AnalysesTest, EndsSoonWhenOnlyTheStreamBreaks) {
  const Peer analyst = AttachAnalyst();
  const auto asked = Ask();
  scheduler_->Closed(analyst.session);
  Pass(absl::Seconds(1));
  EXPECT_TRUE(absl::IsUnavailable(asked->end()));
  const auto again = Ask();
  scheduler_->Closed(AttachAnalyst().session);
  AttachAnalyst();
  EXPECT_THAT(again->ends, SizeIs(1)) << "at once when the worker is back";
}

TEST_F(AnalysesTest, TakesNoOtherWorkersFateForThatOfItsOwn) {
  const Peer first = AttachAnalyst("a");
  const auto asked = Ask();
  const Peer second = AttachAnalyst("b");
  scheduler_->Closed(first.session);
  scheduler_->Exited({"b", true, "killed by SIGSEGV", true});
  AttachAnalyst("b");
  EXPECT_THAT(asked->ends, IsEmpty());
  scheduler_->Exited({"a", true, "killed by SIGBUS", true});
  ASSERT_THAT(asked->ends, SizeIs(1));
  EXPECT_THAT(std::string(asked->end().message()), HasSubstr("killed by SIGBUS"));
}

TEST_F(AnalysesTest, CancelledRequestsFreeTheirWorkerOnlyWhenItHasAnswered) {
  const Peer analyst = AttachAnalyst();
  const auto running = Ask(), waiting = Ask(), next = Ask();
  analyses().Cancel(running->id);
  analyses().Cancel(waiting->id);
  EXPECT_TRUE(absl::IsCancelled(running->end()));
  EXPECT_TRUE(absl::IsCancelled(waiting->end()));
  EXPECT_THAT(Withdrawn(analyst), ElementsAre(running->id));
  EXPECT_THAT(Given(analyst), ElementsAre(running->id));
  SendPart(analyst, running->id, 0);
  EXPECT_THAT(running->samples, IsEmpty());
  SendFailure(analyst, running->id, 1, "withdrawn");
  EXPECT_THAT(running->ends, SizeIs(1)) << "once";
  EXPECT_THAT(Given(analyst), ElementsAre(running->id, next->id));
}

TEST_F(AnalysesTest, EndsWhatRunsTooLong) {
  const Peer analyst = AttachAnalyst();
  const auto asked = Ask();
  PassWithHeartbeats(absl::Seconds(59), {analyst});
  EXPECT_THAT(asked->ends, IsEmpty());
  PassWithHeartbeats(absl::Seconds(2), {analyst});
  EXPECT_TRUE(absl::IsDeadlineExceeded(asked->end()));
  EXPECT_THAT(std::string(asked->end().message()), HasSubstr("1m"));
  EXPECT_THAT(Withdrawn(analyst), ElementsAre(asked->id));
}

TEST_F(AnalysesTest, ReplacesAWorkerThatDoesNotLetGo) {
  const Peer analyst = AttachAnalyst();
  analyses().Cancel(Ask()->id);
  PassWithHeartbeats(absl::Seconds(9), {analyst});
  EXPECT_FALSE(analyst.drained());
  PassWithHeartbeats(absl::Seconds(2), {analyst});
  EXPECT_TRUE(analyst.drained());
  const auto next = Ask();
  EXPECT_THAT(Given(analyst), SizeIs(1)) << "it gets nothing new";
  EXPECT_THAT(Given(AttachAnalyst("b")), ElementsAre(next->id));
}

TEST_F(AnalysesTest, AWorkerThatWaitsForMinutesIsNotReplaced) {
  const Peer analyst = AttachAnalyst();
  SendResult(analyst, Ask()->id);
  PassWithHeartbeats(absl::Minutes(3), {analyst});
  EXPECT_FALSE(analyst.drained());
  EXPECT_TRUE(analyst.open());
}

TEST_F(AnalysesTest, EndsEverythingWithTheServer) {
  AttachAnalyst();
  const auto running = Ask(), waiting = Ask();
  analyses().Stop();
  EXPECT_TRUE(absl::IsUnavailable(running->end()));
  EXPECT_TRUE(absl::IsUnavailable(waiting->end()));
  EXPECT_TRUE(absl::IsUnavailable(TryAsk(std::make_shared<Asked>())));
}

}  // namespace
}  // namespace ablate::schedule
