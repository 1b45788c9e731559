// Tests requests for analyses: their workers, who may answer, and every end without an answer.
#include "server/schedule/analyses.h"

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/config.h"
#include "tests/schedule/scheduler_fixture.h"

namespace ablate::schedule {
namespace {

namespace wire = worker::v1;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A caller, and the result.
struct Asked {
  std::string id;
  std::vector<uint32_t> samples;  // indices, in order of the parts
  std::vector<absl::Status> ends;

  absl::Status end() const { return ends.empty() ? absl::OkStatus() : ends.front(); }
};

worker::v1::FromWorker AnalystsHello(const std::string& name, uint32_t lanes = 1) {
  worker::v1::FromWorker message;
  worker::v1::Hello& hello = *message.mutable_hello();
  hello.set_worker(name);
  hello.set_incarnation(name + "#1");
  hello.set_device_kind("cpu");
  hello.set_lanes(lanes);
  hello.set_role(worker::v1::ANALYSIS);
  hello.set_config_version(engine::kConfigVersion);
  return message;
}

class AnalysesTest : public SchedulerTest {
 protected:
  Analyses& analyses() { return scheduler_->analyses(); }

  Peer AttachAnalyst(const std::string& name = "a") { return Attach(AnalystsHello(name)); }

  absl::Status TryAsk(const std::shared_ptr<Asked>& asked, bool on_gpu = false) {
    AnalysisRequest request;
    request.on_gpu = on_gpu;
    request.message.set_checkpoint_blob("checkpoint");
    request.part = [asked](const worker::v1::AnalysisPart& part) {
      for (const worker::v1::Sample& sample : part.samples())
        asked->samples.push_back(sample.index());
    };
    request.done = [asked](const absl::StatusOr<worker::v1::AnalysisResult>& result) {
      asked->ends.push_back(result.status());
    };
    const auto id = analyses().Submit(std::move(request));
    if (id.ok()) asked->id = *id;
    return id.status();
  }
  std::shared_ptr<Asked> Ask() {
    auto asked = std::make_shared<Asked>();
    EXPECT_TRUE(TryAsk(asked).ok());
    return asked;
  }

  // Returns the ids of a worker's requests.
  static std::vector<std::string> Given(const Peer& peer) {
    std::vector<std::string> ids;
    for (const worker::v1::ToWorker& message : peer.stream->received) {
      if (message.has_analyze()) ids.push_back(message.analyze().id());
    }
    return ids;
  }
  static std::vector<std::string> Withdrawn(const Peer& peer) {
    std::vector<std::string> ids;
    for (const worker::v1::ToWorker& message : peer.stream->received) {
      if (message.has_cancel_analysis()) ids.push_back(message.cancel_analysis().id());
    }
    return ids;
  }

  void SendPart(const Peer& peer, const std::string& id, uint32_t index) {
    worker::v1::FromWorker message;
    message.mutable_analysis_part()->set_id(id);
    message.mutable_analysis_part()->add_samples()->set_index(index);
    Send(peer, message);
  }
  void SendResult(const Peer& peer, const std::string& id) {
    worker::v1::FromWorker message;
    message.mutable_analysis_result()->set_id(id);
    Send(peer, message);
  }
  void SendFailure(const Peer& peer, const std::string& id, uint32_t code,
                   const std::string& text) {
    worker::v1::FromWorker message;
    message.mutable_analysis_failed()->set_id(id);
    message.mutable_analysis_failed()->set_code(code);
    message.mutable_analysis_failed()->set_message(text);
    Send(peer, message);
  }
};

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

// It might take another model for the requested one.
TEST_F(AnalysesTest, GivesNothingToAWorkerThatKnowsLessThanSpecsSay) {
  worker::v1::FromWorker hello = AnalystsHello("old");
  hello.mutable_hello()->set_config_version(engine::kConfigVersion - 1);
  const Peer old = Attach(hello);
  const Peer analyst = AttachAnalyst("new");
  const auto first = Ask(), second = Ask();
  EXPECT_THAT(Given(old), IsEmpty());
  EXPECT_THAT(Given(analyst), ElementsAre(first->id));
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
            absl::InvalidArgumentError("the analysis has 1048585 bytes; expected at most 1048576"));
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
  EXPECT_TRUE(absl::IsNotFound(analyses().MayRead(asked->id, "", "x"))) << "nobody runs it yet";
  const Peer analyst = AttachAnalyst();
  EXPECT_TRUE(absl::IsPermissionDenied(analyses().MayRead(asked->id, "", "x")));
  EXPECT_TRUE(absl::IsNotFound(analyses().MayRead(asked->id, "gpu2", "x"))) << "another's worker";
  SendResult(analyst, asked->id);
  EXPECT_TRUE(absl::IsNotFound(analyses().MayRead(asked->id, "", "x")));
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
                AllOf(HasSubstr("killed by SIGSEGV"), HasSubstr("retry")));
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

TEST_F(AnalysesTest, ReplacesAWorkerThatDoesNotStop) {
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

// Tests of computations.
class ComputationsTest : public AnalysesTest {
 protected:
  // A caller of a computation.
  struct Made : Asked {
    int begun = 0;
    int restarted = 0;
    bool on_gpu = false;  // the device of the last report
    std::vector<double> progress;
  };

  // More than a short one has.
  static constexpr double kLongWork = 5e7;

  std::shared_ptr<Made> Compute(
      double work = 1, bool alone = false, double state = 0,
      const std::function<void(AnalysisRequest*)>& change = [](AnalysisRequest*) {}) {
    auto made = std::make_shared<Made>();
    AnalysisRequest request;
    request.message.mutable_computation();
    request.work = work;
    request.alone = alone;
    request.state = state;
    change(&request);
    request.begun = [made] { ++made->begun; };
    request.restarted = [made] { ++made->restarted; };
    request.saved = [made](const wire::AnalysisSaved& saved, bool on_gpu) {
      made->progress.push_back(saved.progress());
      made->on_gpu = on_gpu;
    };
    request.done = [made](const absl::StatusOr<wire::AnalysisResult>& result) {
      made->ends.push_back(result.status());
    };
    const auto id = analyses().Submit(std::move(request));
    EXPECT_TRUE(id.ok()) << id.status();
    if (id.ok()) made->id = *id;
    return made;
  }
  void SendSaved(const Peer& peer, const std::string& id, double progress,
                 const std::string& blob = "", bool yielded = false) {
    wire::FromWorker message;
    message.mutable_analysis_saved()->set_id(id);
    message.mutable_analysis_saved()->set_progress(progress);
    message.mutable_analysis_saved()->set_state_blob(blob);
    message.mutable_analysis_saved()->set_yielded(yielded);
    Send(peer, message);
  }
  void Yield(const Peer& peer, const std::string& id) { SendSaved(peer, id, .5, "s-" + id, true); }

  static std::vector<std::string> Yielding(const Peer& peer) {
    std::vector<std::string> ids;
    for (const wire::ToWorker& message : peer.stream->received) {
      if (message.has_yield_analysis()) ids.push_back(message.yield_analysis().id());
    }
    return ids;
  }
  static std::string LastState(const Peer& peer) {
    std::string state;
    for (const wire::ToWorker& message : peer.stream->received) {
      if (message.has_analyze()) state = message.analyze().computation().state_blob();
    }
    return state;
  }
};

TEST_F(ComputationsTest, SaysThatItHasBegunAndHowFarItIs) {
  const auto made = Compute();
  EXPECT_EQ(made->begun, 0);
  const Peer analyst = AttachAnalyst();
  EXPECT_EQ(made->begun, 1);
  SendSaved(analyst, made->id, .25);
  SendSaved(analyst, made->id, .5, "state");
  SendResult(analyst, made->id);
  EXPECT_THAT(made->progress, ElementsAre(.25, .5));
  EXPECT_THAT(made->ends, ElementsAre(absl::OkStatus()));
}

TEST_F(ComputationsTest, AShorterOneGetsTheWorkerAfterATurnAndNotBefore) {
  const Peer analyst = AttachAnalyst();
  const auto first = Compute(1), second = Compute(.2);
  clock_.Advance(absl::Milliseconds(999));
  analyses().Tick();
  EXPECT_THAT(Yielding(analyst), IsEmpty());
  clock_.Advance(absl::Milliseconds(1));
  analyses().Tick();
  EXPECT_THAT(Yielding(analyst), ElementsAre(first->id));
  analyses().Tick();
  EXPECT_THAT(Yielding(analyst), SizeIs(1)) << "it is asked once";
  EXPECT_THAT(Given(analyst), ElementsAre(first->id));
  Yield(analyst, first->id);
  EXPECT_THAT(Given(analyst), ElementsAre(first->id, second->id));
  EXPECT_EQ(LastState(analyst), "");
  SendResult(analyst, second->id);
  EXPECT_THAT(Given(analyst), ElementsAre(first->id, second->id, first->id));
  EXPECT_EQ(LastState(analyst), "s-" + first->id);
  EXPECT_EQ(first->begun, 2);
}

TEST_F(ComputationsTest, AShorterOneGetsTheWorkerWithTheFirstReportBehindATurn) {
  const Peer analyst = AttachAnalyst();
  const auto first = Compute();
  const auto second = Compute(.1);
  clock_.Advance(absl::Milliseconds(900));
  SendSaved(analyst, first->id, .1);
  EXPECT_THAT(Yielding(analyst), IsEmpty());
  clock_.Advance(absl::Milliseconds(100));
  SendSaved(analyst, first->id, .2);
  EXPECT_THAT(Yielding(analyst), ElementsAre(first->id)) << "without a tick";
}

TEST_F(ComputationsTest, ANewShorterOneIsGivenTheWorkerOfOneWhoseTurnIsOver) {
  const Peer analyst = AttachAnalyst();
  const auto first = Compute();
  PassWithHeartbeats(absl::Seconds(5), {analyst});
  EXPECT_THAT(Yielding(analyst), IsEmpty()) << "nothing else is there";
  Compute(1);
  EXPECT_THAT(Yielding(analyst), IsEmpty()) << "it takes as long";
  Compute(.2);
  EXPECT_THAT(Yielding(analyst), ElementsAre(first->id)) << "at once";
}

TEST_F(ComputationsTest, OneThatHasMadeWayMakesWayAgainAfterAQuarterOfASecond) {
  const Peer analyst = AttachAnalyst();
  const auto first = Compute(), second = Compute(.1);
  PassWithHeartbeats(absl::Seconds(1), {analyst});
  Yield(analyst, first->id);
  SendResult(analyst, second->id);
  const auto third = Compute(.1);
  clock_.Advance(absl::Milliseconds(249));
  SendSaved(analyst, first->id, .5);
  EXPECT_THAT(Yielding(analyst), SizeIs(1));
  clock_.Advance(absl::Milliseconds(1));
  SendSaved(analyst, first->id, .5);
  EXPECT_THAT(Yielding(analyst), ElementsAre(first->id, first->id));
}

TEST_F(ComputationsTest, YieldsOnlyToWhatTakesLessThanHalfOfWhatIsLeft) {
  const Peer analyst = AttachAnalyst();
  const auto a = Compute(8), b = Compute(5), c = Compute(1.9);
  SendSaved(analyst, a->id, .6);  // 3.2 are left
  PassWithHeartbeats(absl::Seconds(5), {analyst});
  EXPECT_THAT(Yielding(analyst), IsEmpty());
  const auto d = Compute(1.5);
  ASSERT_THAT(Yielding(analyst), ElementsAre(a->id));
  SendSaved(analyst, a->id, .6, "state", true);
  for (const auto& made : {d, c, a}) SendResult(analyst, made->id);
  EXPECT_THAT(Given(analyst), ElementsAre(a->id, d->id, c->id, a->id, b->id))
      << "of which least is left comes first";
}

TEST_F(ComputationsTest, EqualOnesAreMadeOneAfterTheOther) {
  const Peer analyst = AttachAnalyst();
  const auto first = Compute(), second = Compute(), third = Compute();
  PassWithHeartbeats(absl::Minutes(1), {analyst});
  EXPECT_THAT(Yielding(analyst), IsEmpty());
  SendResult(analyst, first->id);
  SendResult(analyst, second->id);
  EXPECT_THAT(Given(analyst), ElementsAre(first->id, second->id, third->id));
}

TEST_F(ComputationsTest, SamplesComeBetweenAndBeforeThoseThatWait) {
  const Peer analyst = AttachAnalyst();
  const auto running = Compute(), waiting = Compute();
  const auto samples = Ask();
  PassWithHeartbeats(absl::Seconds(1), {analyst});
  ASSERT_THAT(Yielding(analyst), ElementsAre(running->id));
  Yield(analyst, running->id);
  EXPECT_THAT(Given(analyst), ElementsAre(running->id, samples->id));
  PassWithHeartbeats(absl::Seconds(30), {analyst});
  EXPECT_THAT(Yielding(analyst), SizeIs(1)) << "samples are not asked to";
  SendResult(analyst, samples->id);
  EXPECT_THAT(Given(analyst), ElementsAre(running->id, samples->id, running->id));
  SendResult(analyst, running->id);
  EXPECT_EQ(Given(analyst).back(), waiting->id);
}

// The following workers have a lane for each class, or more.
TEST_F(ComputationsTest, SamplesAndAShortOneAndALongOneAreMadeSideBySide) {
  const Peer analyst = Attach(AnalystsHello("a", 3));
  const double work = 10 * AnalysisLimits().short_work;
  const auto long_one = Compute(work), brief = Compute();
  const auto samples = Ask();
  EXPECT_THAT(Given(analyst), ElementsAre(long_one->id, brief->id, samples->id));
  const auto second_long = Compute(work), second_brief = Compute();
  const auto second_samples = Ask();
  PassWithHeartbeats(absl::Seconds(5), {analyst});
  EXPECT_THAT(Given(analyst), SizeIs(3)) << "one of each";
  EXPECT_THAT(Yielding(analyst), IsEmpty()) << "nobody's state has to be saved for samples";
  SendResult(analyst, brief->id);
  SendResult(analyst, samples->id);
  EXPECT_THAT(Given(analyst), ElementsAre(long_one->id, brief->id, samples->id, second_brief->id,
                                          second_samples->id));
  SendResult(analyst, long_one->id);
  EXPECT_EQ(Given(analyst).back(), second_long->id);
}

TEST_F(ComputationsTest, ShortOnesHaveAllLanesButThatOfSamplesUntilALongOneWaits) {
  const Peer analyst = Attach(AnalystsHello("a", 4));
  const auto first = Compute(), second = Compute(), third = Compute(), fourth = Compute();
  EXPECT_THAT(Given(analyst), ElementsAre(first->id, second->id, third->id));
  const auto long_one = Compute(kLongWork);
  SendResult(analyst, first->id);
  EXPECT_EQ(Given(analyst).back(), long_one->id);
  SendResult(analyst, second->id);
  EXPECT_EQ(Given(analyst).back(), fourth->id);
  EXPECT_THAT(Yielding(analyst), IsEmpty());
}

TEST_F(ComputationsTest, LongOnesLeaveALaneToShortOnes) {
  const Peer analyst = Attach(AnalystsHello("a", 4));
  const auto first = Compute(kLongWork), second = Compute(kLongWork), third = Compute(kLongWork);
  EXPECT_THAT(Given(analyst), ElementsAre(first->id, second->id));
  const auto brief = Compute();
  EXPECT_THAT(Given(analyst), ElementsAre(first->id, second->id, brief->id));
  SendResult(analyst, brief->id);
  EXPECT_THAT(Given(analyst), SizeIs(3)) << "nor does the third long one take it";
  SendResult(analyst, first->id);
  EXPECT_EQ(Given(analyst).back(), third->id);
}

TEST_F(ComputationsTest, TheStatesOfAllThatAWorkerMakesAreBounded) {
  const Peer analyst = Attach(AnalystsHello("a", 5));
  const auto first = Compute(kLongWork, false, .4), second = Compute(kLongWork, false, .4);
  const auto third = Compute(kLongWork, false, .3);
  EXPECT_THAT(Given(analyst), ElementsAre(first->id, second->id));
  const auto small = Compute(1, false, .2);
  EXPECT_THAT(Given(analyst), ElementsAre(first->id, second->id, small->id));
  SendResult(analyst, small->id);
  SendResult(analyst, first->id);
  EXPECT_EQ(Given(analyst).back(), third->id);
}

TEST_F(ComputationsTest, ALongOneYieldsToAMuchShorterLongOneThatHasNoLaneOfItsOwn) {
  const Peer analyst = Attach(AnalystsHello("a", 3));
  const double work = 10 * AnalysisLimits().short_work;
  const auto long_one = Compute(work), shorter = Compute(.2 * work);
  PassWithHeartbeats(absl::Seconds(1), {analyst});
  ASSERT_THAT(Yielding(analyst), ElementsAre(long_one->id));
  Yield(analyst, long_one->id);
  EXPECT_THAT(Given(analyst), ElementsAre(long_one->id, shorter->id));
  SendResult(analyst, shorter->id);
  EXPECT_THAT(Given(analyst), ElementsAre(long_one->id, shorter->id, long_one->id));
}

TEST_F(ComputationsTest, OneThatIsWithdrawnKeepsItsLaneUntilItsWorkerAnswers) {
  const Peer analyst = Attach(AnalystsHello("a", 3));
  const auto first = Compute(kLongWork), second = Compute(kLongWork);
  analyses().Cancel(first->id);
  const auto samples = Ask();
  EXPECT_THAT(Given(analyst), ElementsAre(first->id, samples->id));
  SendFailure(analyst, first->id, static_cast<uint32_t>(absl::StatusCode::kCancelled), "");
  EXPECT_THAT(Given(analyst), ElementsAre(first->id, samples->id, second->id));
}

TEST_F(ComputationsTest, KeepsAStuckWorkerThatMakesOthersWhileNothingWaitsForItsLane) {
  const Peer analyst = Attach(AnalystsHello("a", 3));
  const auto long_one = Compute(kLongWork), stuck = Compute();
  analyses().Cancel(stuck->id);
  const auto second_long = Compute(kLongWork);
  PassWithHeartbeats(absl::Seconds(61), {analyst});
  EXPECT_FALSE(analyst.drained()) << "what waits does so for the other lane";
  const auto brief = Compute();
  EXPECT_THAT(Given(analyst), SizeIs(2));
  PassWithHeartbeats(absl::Seconds(1), {analyst});
  EXPECT_TRUE(analyst.drained());
  EXPECT_THAT(long_one->ends, IsEmpty());
  EXPECT_THAT(Given(AttachAnalyst("b")), ElementsAre(brief->id));
}

TEST_F(ComputationsTest, DrainsAStuckWorkerForOneThatWaitsOnlyAfterAMinute) {
  const Peer analyst = Attach(AnalystsHello("a", 3));
  const auto long_one = Compute(kLongWork), stuck = Compute(), brief = Compute();
  analyses().Cancel(stuck->id);
  PassWithHeartbeats(absl::Seconds(59), {analyst});
  EXPECT_FALSE(analyst.drained());
  PassWithHeartbeats(absl::Seconds(2), {analyst});
  EXPECT_TRUE(analyst.drained());
}

TEST_F(ComputationsTest, DrainsAStuckWorkerOnceItMakesNothingElse) {
  const Peer analyst = Attach(AnalystsHello("a", 3));
  const auto long_one = Compute(kLongWork), stuck = Compute();
  analyses().Cancel(stuck->id);
  PassWithHeartbeats(absl::Minutes(5), {analyst});
  EXPECT_FALSE(analyst.drained()) << "nothing waits for its lane";
  SendResult(analyst, long_one->id);
  PassWithHeartbeats(absl::Seconds(1), {analyst});
  EXPECT_TRUE(analyst.drained());
  EXPECT_THAT(long_one->ends, ElementsAre(absl::OkStatus()));
}

TEST_F(ComputationsTest, OneAloneHasItsWorkerToItselfUntilItHasSavedAState) {
  const Peer analyst = Attach(AnalystsHello("a", 3));
  const auto alone = Compute(kLongWork, true);
  const auto brief = Compute();
  const auto samples = Ask();
  EXPECT_THAT(Given(analyst), ElementsAre(alone->id));
  SendSaved(analyst, alone->id, .1);
  EXPECT_THAT(Given(analyst), SizeIs(1)) << "it only said how far it is";
  SendSaved(analyst, alone->id, .2, "state");
  EXPECT_THAT(Given(analyst), ElementsAre(alone->id, samples->id, brief->id));
}

TEST_F(ComputationsTest, OneAloneYieldsToSamplesThenRunsWithThem) {
  const Peer analyst = Attach(AnalystsHello("a", 3));
  const auto alone = Compute(kLongWork, true);
  const auto samples = Ask();
  PassWithHeartbeats(absl::Seconds(1), {analyst});
  ASSERT_THAT(Yielding(analyst), ElementsAre(alone->id));
  Yield(analyst, alone->id);
  EXPECT_THAT(Given(analyst), ElementsAre(alone->id, samples->id, alone->id))
      << "it has saved a state, and goes on beside them";
}

TEST_F(ComputationsTest, OneAloneWaitsUntilNothingElseRuns) {
  const Peer analyst = Attach(AnalystsHello("a", 3));
  const auto long_one = Compute(kLongWork);
  const auto samples = Ask();
  const auto alone = Compute(1, true);
  EXPECT_THAT(Given(analyst), ElementsAre(long_one->id, samples->id));
  PassWithHeartbeats(absl::Seconds(1), {analyst});
  ASSERT_THAT(Yielding(analyst), ElementsAre(long_one->id));
  Yield(analyst, long_one->id);
  EXPECT_THAT(Given(analyst), SizeIs(2)) << "not the long one again";
  SendResult(analyst, samples->id);
  EXPECT_THAT(Given(analyst), ElementsAre(long_one->id, samples->id, alone->id));
  SendResult(analyst, alone->id);
  EXPECT_EQ(Given(analyst).back(), long_one->id);
}

TEST_F(ComputationsTest, RunsTwoInTurnIfTheirStatesExceedTheLimit) {
  const Peer analyst = Attach(AnalystsHello("a", 3));
  const auto long_one = Compute(kLongWork, false, .6);
  const auto large = Compute(1, false, .5);
  const auto samples = Ask();
  EXPECT_THAT(Given(analyst), ElementsAre(long_one->id, samples->id));
  PassWithHeartbeats(absl::Seconds(1), {analyst});
  ASSERT_THAT(Yielding(analyst), ElementsAre(long_one->id));
  Yield(analyst, long_one->id);
  EXPECT_THAT(Given(analyst), ElementsAre(long_one->id, samples->id, large->id));
  SendResult(analyst, large->id);
  const auto fits = Compute(1, false, .4);
  EXPECT_THAT(Given(analyst),
              ElementsAre(long_one->id, samples->id, large->id, long_one->id, fits->id));
}

TEST_F(ComputationsTest, OneThatIsWithdrawnKeepsItsStateUntilItsWorkerAnswers) {
  const Peer analyst = Attach(AnalystsHello("a", 3));
  const auto long_one = Compute(kLongWork, false, .6);
  analyses().Cancel(long_one->id);
  const auto large = Compute(1, false, .5);
  EXPECT_THAT(Given(analyst), ElementsAre(long_one->id));
  SendFailure(analyst, long_one->id, static_cast<uint32_t>(absl::StatusCode::kCancelled), "");
  EXPECT_THAT(Given(analyst), ElementsAre(long_one->id, large->id));
}

TEST_F(ComputationsTest, WaitForAWorkerAsLongAsItTakes) {
  const auto made = Compute();
  Pass(absl::Minutes(10));
  EXPECT_THAT(made->ends, IsEmpty());
  const Peer analyst = AttachAnalyst();
  PassWithHeartbeats(absl::Minutes(10), {analyst});
  EXPECT_THAT(made->ends, IsEmpty()) << "nor is there a limit to its time";
  SendResult(analyst, made->id);
  EXPECT_THAT(made->ends, SizeIs(1));
}

TEST_F(ComputationsTest, EndWithTheirWorker) {
  const Peer analyst = AttachAnalyst();
  const auto made = Compute(), waiting = Compute();
  scheduler_->Closed(analyst.session);
  scheduler_->Exited({"a", true, "killed by SIGSEGV", true});
  EXPECT_TRUE(absl::IsUnavailable(made->end()));
  EXPECT_THAT(std::string(made->end().message()), HasSubstr("killed by SIGSEGV"));
  EXPECT_THAT(waiting->ends, IsEmpty());
  EXPECT_THAT(Given(AttachAnalyst()), ElementsAre(waiting->id));
}

TEST_F(ComputationsTest, AWorkerThatLostItsDeviceGetsNothingMore) {
  const Peer analyst = AttachAnalyst();
  const auto made = Compute(), waiting = Compute();
  SendFailure(analyst, made->id, static_cast<uint32_t>(absl::StatusCode::kUnavailable), "lost");
  EXPECT_TRUE(absl::IsUnavailable(made->end()));
  EXPECT_THAT(Given(analyst), ElementsAre(made->id));
  scheduler_->Closed(analyst.session);
  EXPECT_THAT(Given(AttachAnalyst()), ElementsAre(waiting->id));
}

TEST_F(ComputationsTest, DoNotCountAmongSamples) {
  for (int i = 0; i < 40; ++i) Compute();
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(TryAsk(std::make_shared<Asked>()).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(TryAsk(std::make_shared<Asked>())));
  EXPECT_THAT(analyses().Computations(), SizeIs(40));
}

TEST_F(ComputationsTest, MayWriteOnlyWhileAWorkerHasThem) {
  const auto made = Compute();
  const auto samples = Ask();
  EXPECT_FALSE(analyses().MayWrite(made->id, ""));
  const Peer analyst = AttachAnalyst();
  EXPECT_FALSE(analyses().MayWrite(samples->id, "")) << "which leave nothing";
  SendResult(analyst, samples->id);
  EXPECT_TRUE(analyses().MayWrite(made->id, ""));
  EXPECT_FALSE(analyses().MayWrite(made->id, "gpu2"));
  const auto waiting = Compute(.2);
  EXPECT_FALSE(analyses().MayWrite(waiting->id, ""));
  clock_.Advance(absl::Seconds(1));
  Yield(analyst, made->id);
  EXPECT_FALSE(analyses().MayWrite(made->id, ""));
  EXPECT_TRUE(analyses().MayWrite(waiting->id, ""));
  SendResult(analyst, waiting->id);
  SendResult(analyst, made->id);
  EXPECT_FALSE(analyses().MayWrite(made->id, ""));
}

TEST_F(ComputationsTest, MayReadTheStateThatTheyGoOnFrom) {
  const Peer analyst = AttachAnalyst();
  const auto made = Compute();
  EXPECT_TRUE(absl::IsPermissionDenied(analyses().MayRead(made->id, "", "s-" + made->id)));
  Yield(analyst, made->id);
  EXPECT_TRUE(analyses().MayRead(made->id, "", "s-" + made->id).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(analyses().MayRead(made->id, "", "another")));
}

TEST_F(ComputationsTest, OneThatYieldsMayBeCancelled) {
  const Peer analyst = AttachAnalyst();
  const auto made = Compute(1), next = Compute(.2);
  PassWithHeartbeats(absl::Seconds(1), {analyst});
  ASSERT_THAT(Yielding(analyst), ElementsAre(made->id));
  analyses().Cancel(made->id);
  EXPECT_TRUE(absl::IsCancelled(made->end()));
  EXPECT_THAT(Withdrawn(analyst), ElementsAre(made->id));
  Yield(analyst, made->id);  // it had yielded already
  EXPECT_THAT(made->progress, IsEmpty());
  EXPECT_THAT(Given(analyst), ElementsAre(made->id, next->id));
  PassWithHeartbeats(absl::Seconds(15), {analyst});
  EXPECT_FALSE(analyst.drained());
  EXPECT_THAT(made->ends, SizeIs(1));
}

TEST_F(ComputationsTest, IgnoresWhatASessionSavesOfOnesThatItDoesNotHave) {
  const Peer analyst = AttachAnalyst("a");
  const auto made = Compute(), waiting = Compute();
  const Peer other = AttachAnalyst("b");
  ASSERT_THAT(Given(other), ElementsAre(waiting->id));
  Yield(other, made->id);
  EXPECT_THAT(made->progress, IsEmpty());
  EXPECT_TRUE(analyses().MayWrite(made->id, "")) << "it is where it was";
  EXPECT_TRUE(absl::IsPermissionDenied(analyses().MayRead(made->id, "", "s-" + made->id)));
  EXPECT_THAT(Given(other), SizeIs(1));
}

TEST_F(ComputationsTest, AreFreeToGoOnAtAnyWorker) {
  const Peer first = AttachAnalyst("a");
  const auto made = Compute();
  Yield(first, made->id);
  SendSaved(first, made->id, .75, "newer", true);
  scheduler_->Closed(first.session);
  const Peer second = AttachAnalyst("b");
  EXPECT_THAT(Given(first), SizeIs(3));
  EXPECT_THAT(Given(second), IsEmpty()) << "the first had it again";
  scheduler_->Exited({"a", true, "gone", true});
  EXPECT_TRUE(absl::IsUnavailable(made->end()));
}

// Tests of workers on the cores and on GPUs, each with a lane for each class.
class GpuAnalysesTest : public ComputationsTest {
 protected:
  Peer AttachCores() { return Attach(AnalystsHello("cpu-analysis", 3)); }
  Peer AttachGpu(const std::string& name = "cuda-0-analysis") {
    wire::FromWorker hello = AnalystsHello(name, 3);
    hello.mutable_hello()->set_device_kind("cuda");
    return Attach(hello);
  }
  std::shared_ptr<Made> ComputeLarge(double work = 1, const std::string& state = "",
                                     bool state_on_gpu = true) {
    return Compute(work, false, 0, [&](AnalysisRequest* request) {
      request->on_gpu = true;
      request->message.mutable_computation()->set_state_blob(state);
      request->state_on_gpu = state_on_gpu;
    });
  }
  void SendExhausted(const Peer& peer, const std::string& id) {
    SendFailure(peer, id, static_cast<uint32_t>(absl::StatusCode::kResourceExhausted),
                "out of memory");
  }
  std::shared_ptr<Asked> AskLarge() {
    auto asked = std::make_shared<Asked>();
    EXPECT_TRUE(TryAsk(asked, /*on_gpu=*/true).ok());
    return asked;
  }
};

TEST_F(GpuAnalysesTest, LargeOnesGoToTheGpuAndSmallOnesToTheCores) {
  const Peer cores = AttachCores(), gpu = AttachGpu();
  const auto large = ComputeLarge(), small = Compute();
  const auto large_samples = AskLarge(), small_samples = Ask();
  EXPECT_THAT(Given(gpu), ElementsAre(large->id, large_samples->id));
  EXPECT_THAT(Given(cores), ElementsAre(small->id, small_samples->id));
}

TEST_F(GpuAnalysesTest, LargeOnesWaitForABusyGpuAndHoldUpNobody) {
  const Peer cores = AttachCores(), gpu = AttachGpu();
  const auto first = ComputeLarge(kLongWork), second = ComputeLarge(kLongWork);
  const auto alone = Compute(kLongWork, true, 0, [](auto* request) { request->on_gpu = true; });
  const auto small = Compute(kLongWork);
  PassWithHeartbeats(absl::Minutes(5), {cores, gpu});
  EXPECT_THAT(Given(gpu), ElementsAre(first->id));
  EXPECT_THAT(Given(cores), ElementsAre(small->id)) << "nor does it yield to those that wait";
  EXPECT_THAT(Yielding(cores), IsEmpty());
  SendResult(gpu, first->id);
  EXPECT_THAT(Given(gpu), ElementsAre(first->id, second->id));
}

TEST_F(GpuAnalysesTest, SmallOnesWaitForBusyCores) {
  const Peer cores = AttachCores(), gpu = AttachGpu();
  const auto first = Ask(), second = Ask();
  EXPECT_THAT(Given(cores), ElementsAre(first->id));
  EXPECT_THAT(Given(gpu), IsEmpty());
}

TEST_F(GpuAnalysesTest, SeveralGpusShareThem) {
  const Peer first_gpu = AttachGpu(), second_gpu = AttachGpu("cuda-1-analysis");
  const auto first = ComputeLarge(kLongWork), second = ComputeLarge(kLongWork);
  EXPECT_THAT(Given(first_gpu), ElementsAre(first->id));
  EXPECT_THAT(Given(second_gpu), ElementsAre(second->id));
}

TEST_F(GpuAnalysesTest, ALongOneYieldsToAShorterOneOfTheSameDevice) {
  const Peer cores = AttachCores(), gpu = AttachGpu();
  const auto large = ComputeLarge(10 * kLongWork), small = Compute(10 * kLongWork);
  const auto shorter = ComputeLarge(kLongWork);
  PassWithHeartbeats(absl::Seconds(1), {cores, gpu});
  EXPECT_THAT(Yielding(gpu), ElementsAre(large->id));
  EXPECT_THAT(Yielding(cores), IsEmpty());
  Yield(gpu, large->id);
  EXPECT_THAT(Given(gpu), ElementsAre(large->id, shorter->id));
  SendResult(gpu, shorter->id);
  EXPECT_THAT(Given(gpu), ElementsAre(large->id, shorter->id, large->id)) << "not to the cores";
}

TEST_F(GpuAnalysesTest, GoToTheCoresWithoutAGpu) {
  const Peer cores = AttachCores();
  const auto large = ComputeLarge();
  const auto samples = AskLarge();
  EXPECT_THAT(Given(cores), ElementsAre(large->id, samples->id));
  const Peer gpu = AttachGpu();
  EXPECT_THAT(Given(gpu), IsEmpty()) << "one that has begun stays";
  Yield(cores, large->id);
  EXPECT_FALSE(large->on_gpu);
  EXPECT_THAT(Given(cores), ElementsAre(large->id, samples->id, large->id));
  EXPECT_EQ(LastState(cores), "s-" + large->id);
}

TEST_F(GpuAnalysesTest, ContinueOnTheCoresFromAStateOfTheCores) {
  const Peer gpu = AttachGpu();
  const auto resumed = ComputeLarge(kLongWork, "state", /*state_on_gpu=*/false);
  PassWithHeartbeats(absl::Seconds(20), {gpu});
  EXPECT_THAT(Given(gpu), IsEmpty()) << "the server has just started";
  const Peer cores = AttachCores();
  EXPECT_THAT(Given(cores), ElementsAre(resumed->id));
  EXPECT_EQ(LastState(cores), "state");
  EXPECT_EQ(resumed->restarted, 0);
}

TEST_F(GpuAnalysesTest, BeginAgainOnTheGpuIfTheCoresDoNotReturn) {
  const Peer gpu = AttachGpu();
  const auto resumed = ComputeLarge(kLongWork, "state", /*state_on_gpu=*/false);
  PassWithHeartbeats(absl::Minutes(9), {gpu});
  EXPECT_THAT(Given(gpu), IsEmpty()) << "it would lose its state";
  PassWithHeartbeats(absl::Seconds(61), {gpu});
  EXPECT_THAT(Given(gpu), ElementsAre(resumed->id));
  EXPECT_EQ(LastState(gpu), "");
  EXPECT_EQ(resumed->restarted, 1);
}

TEST_F(GpuAnalysesTest, GoToTheCoresWhenTheLastGpuLeaves) {
  const Peer cores = AttachCores(), gpu = AttachGpu(), other = AttachGpu("cuda-1-analysis");
  const auto first = ComputeLarge(kLongWork), second = ComputeLarge(kLongWork);
  const auto waiting = ComputeLarge(kLongWork);
  scheduler_->Closed(gpu.session);
  EXPECT_THAT(Given(cores), IsEmpty());
  scheduler_->Closed(other.session);
  EXPECT_THAT(Given(cores), ElementsAre(waiting->id));
  EXPECT_THAT(first->ends, IsEmpty()) << "the reason is on its way";
  scheduler_->Exited({"cuda-0-analysis", true, "exit code 4: the device is lost", true});
  EXPECT_THAT(std::string(first->end().message()), HasSubstr("the device is lost"));
}

TEST_F(GpuAnalysesTest, GoToTheCoresWhenTheGpuIsLost) {
  const Peer cores = AttachCores(), gpu = AttachGpu();
  const auto made = ComputeLarge(kLongWork), waiting = ComputeLarge(kLongWork);
  const auto resumed = ComputeLarge(kLongWork, "state");
  PassWithHeartbeats(absl::Minutes(1), {cores, gpu});
  SendFailure(gpu, made->id, static_cast<uint32_t>(absl::StatusCode::kUnavailable), "lost");
  EXPECT_THAT(Given(cores), ElementsAre(waiting->id));
  PassWithHeartbeats(absl::Seconds(5), {cores, gpu});
  scheduler_->Closed(gpu.session);
  EXPECT_THAT(Given(AttachGpu()), ElementsAre(resumed->id));
}

TEST_F(GpuAnalysesTest, BeginAgainOnTheCoresIfTheGpuHasTooLittleMemory) {
  const Peer gpu = AttachGpu();
  const auto made = ComputeLarge(kLongWork, "state");
  EXPECT_EQ(made->restarted, 0);
  SendExhausted(gpu, made->id);
  EXPECT_THAT(made->ends, IsEmpty());
  EXPECT_EQ(made->restarted, 1);
  PassWithHeartbeats(absl::Seconds(20), {gpu});
  EXPECT_THAT(Given(gpu), ElementsAre(made->id)) << "the cores' worker may start";
  const Peer cores = AttachCores();
  EXPECT_THAT(Given(cores), ElementsAre(made->id));
  EXPECT_EQ(LastState(cores), "");
  EXPECT_EQ(made->restarted, 1);
  SendExhausted(cores, made->id);
  EXPECT_TRUE(absl::IsResourceExhausted(made->end()));
}

TEST_F(GpuAnalysesTest, FailIfTheGpuHasTooLittleMemoryAndThereIsNothingElse) {
  const Peer gpu = AttachGpu();
  const auto made = ComputeLarge();
  SendExhausted(gpu, made->id);
  PassWithHeartbeats(absl::Seconds(31), {gpu});
  EXPECT_THAT(Given(gpu), ElementsAre(made->id, made->id)) << "runs may have freed memory";
  SendExhausted(gpu, made->id);
  EXPECT_TRUE(absl::IsResourceExhausted(made->end()));
}

TEST_F(GpuAnalysesTest, SamplesAreDrawnOnTheCoresIfTheGpuHasTooLittleMemory) {
  const Peer cores = AttachCores(), gpu = AttachGpu();
  const auto samples = AskLarge();
  SendExhausted(gpu, samples->id);
  EXPECT_THAT(samples->ends, IsEmpty());
  ASSERT_THAT(Given(cores), ElementsAre(samples->id));
  EXPECT_FALSE(cores.stream->received.back().analyze().has_computation());
  SendExhausted(cores, samples->id);
  EXPECT_TRUE(absl::IsResourceExhausted(samples->end())) << "once";
  EXPECT_THAT(Given(gpu), ElementsAre(samples->id));
}

TEST_F(GpuAnalysesTest, SamplesOfWhichAPartWasSentAreNotDrawnAgain) {
  const Peer cores = AttachCores(), gpu = AttachGpu();
  const auto samples = AskLarge();
  SendPart(gpu, samples->id, 0);
  SendExhausted(gpu, samples->id);
  EXPECT_TRUE(absl::IsResourceExhausted(samples->end()));
  EXPECT_THAT(Given(cores), IsEmpty());
}

TEST_F(GpuAnalysesTest, SamplesThatTheGpuCannotDrawFailWithoutCores) {
  const Peer gpu = AttachGpu();
  PassWithHeartbeats(absl::Seconds(31), {gpu});
  const auto samples = AskLarge();
  SendExhausted(gpu, samples->id);
  EXPECT_TRUE(absl::IsResourceExhausted(samples->end()));
}

// On the cores it would have to begin again.
TEST_F(GpuAnalysesTest, OneWithAStateWaitsAWhileForTheGpuToReturn) {
  const Peer cores = AttachCores();
  const auto resumed = ComputeLarge(kLongWork, "state");
  PassWithHeartbeats(absl::Seconds(20), {cores});
  EXPECT_THAT(Given(cores), IsEmpty()) << "the server has just started";
  const Peer gpu = AttachGpu();
  EXPECT_THAT(Given(gpu), ElementsAre(resumed->id));
  const auto waiting = ComputeLarge(kLongWork, "another state");
  PassWithHeartbeats(absl::Minutes(1), {cores, gpu});
  scheduler_->Closed(gpu.session);
  PassWithHeartbeats(absl::Minutes(9), {cores});
  EXPECT_THAT(Given(cores), IsEmpty());
  PassWithHeartbeats(absl::Seconds(61), {cores});
  EXPECT_THAT(Given(cores), ElementsAre(waiting->id));
  EXPECT_EQ(LastState(cores), "");
  EXPECT_EQ(waiting->restarted, 1);
  EXPECT_EQ(resumed->restarted, 0);
}

TEST_F(GpuAnalysesTest, SmallOnesGoToTheGpuIfTheCoresDoNotReturn) {
  const Peer gpu = AttachGpu();
  const auto samples = Ask();
  const auto small = Compute(kLongWork);
  PassWithHeartbeats(absl::Seconds(29), {gpu});
  EXPECT_THAT(Given(gpu), IsEmpty()) << "the server has just started";
  PassWithHeartbeats(absl::Seconds(2), {gpu});
  EXPECT_THAT(Given(gpu), ElementsAre(samples->id, small->id));
  EXPECT_EQ(small->restarted, 0);
  const auto later = Compute();
  EXPECT_THAT(Given(gpu), ElementsAre(samples->id, small->id, later->id)) << "at once";
  const Peer cores = AttachCores();
  EXPECT_THAT(Given(cores), IsEmpty());
  Yield(gpu, small->id);
  EXPECT_TRUE(small->on_gpu);
  EXPECT_EQ(LastState(gpu), "s-" + small->id) << "its state is from a GPU";
  EXPECT_THAT(Given(cores), IsEmpty());
  const auto next = Compute();
  EXPECT_THAT(Given(cores), ElementsAre(next->id));
}

TEST_F(GpuAnalysesTest, SmallOnesWaitWhileTheCoresRestart) {
  const Peer cores = AttachCores(), gpu = AttachGpu();
  PassWithHeartbeats(absl::Minutes(1), {cores, gpu});
  scheduler_->Closed(cores.session);
  const auto small = Compute();
  PassWithHeartbeats(absl::Seconds(5), {gpu});
  EXPECT_THAT(Given(gpu), IsEmpty());
  EXPECT_THAT(Given(AttachCores()), ElementsAre(small->id));
}

TEST_F(GpuAnalysesTest, SamplesTryTheGpuAgainIfTheCoresDoNotReturn) {
  const Peer cores = AttachCores(), gpu = AttachGpu();
  const auto running = Ask();  // the lane for samples is busy
  const auto samples = AskLarge();
  SendExhausted(gpu, samples->id);
  scheduler_->Closed(cores.session);
  PassWithHeartbeats(absl::Seconds(31), {gpu});
  EXPECT_THAT(Given(gpu), ElementsAre(samples->id, samples->id));
  SendExhausted(gpu, samples->id);
  EXPECT_TRUE(absl::IsResourceExhausted(samples->end()));
}

TEST_F(GpuAnalysesTest, ReplacesAStuckWorkerOnlyForThoseOfItsDevice) {
  const Peer cores = AttachCores(), gpu = AttachGpu();
  const auto other = ComputeLarge(kLongWork), stuck = ComputeLarge();
  analyses().Cancel(stuck->id);
  const auto first = Compute(), second = Compute();  // the second waits for the cores
  PassWithHeartbeats(absl::Seconds(61), {cores, gpu});
  EXPECT_FALSE(gpu.drained());
  const auto large = ComputeLarge();
  PassWithHeartbeats(absl::Seconds(1), {cores, gpu});
  EXPECT_TRUE(gpu.drained());
}

}  // namespace
}  // namespace ablate::schedule
