// Tests `ablate analyze`: the request, waiting, numbers, arrays, exit codes.
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "client/context.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The cell, or the run without its prefix.
std::string ModelOf(const v1::AnalysisSubject& subject) {
  return subject.cell().empty() ? subject.run().substr(5) : subject.cell();
}

class AnalyzeTest : public ClientTest {
 protected:
  using Write = std::function<bool(const v1::Analysis&)>;

  AnalyzeTest() {
    answers_.get = [](const v1::GetExperimentRequest&, v1::Experiment* experiment) {
      experiment->set_name("experiments/small-1a2b");
      return absl::OkStatus();
    };
    answers_.runs = [](const v1::ListRunsRequest&, v1::ListRunsResponse* response) {
      for (const char* cell : {"pre-s1", "post-s1"}) {
        v1::RunRow* row = response->add_rows();
        row->set_cell(cell);
        row->set_run(absl::StrCat("runs/", cell));
      }
      return absl::OkStatus();
    };
    answers_.create_analysis = [this](const v1::CreateAnalysisRequest& request,
                                      v1::CreateAnalysisResponse* response) {
      requests_.push_back(request);
      if (const absl::Status refused = refuse_(request); !refused.ok()) return refused;
      v1::Analysis* analysis = response->mutable_analysis();
      *analysis->mutable_analysis() = request.analysis();
      *analysis->mutable_subjects() = request.subjects();
      analysis->set_name("analyses/none");
      if (!request.subjects().empty()) {
        analysis->set_name(absl::StrCat("analyses/", ModelOf(request.subjects(0))));
      }
      analysis->set_state(state_);
      for (const std::string& name : unlabelled_) response->add_unlabelled(name);
      response->set_label(label_);
      return absl::OkStatus();
    };
    answers_.watch_analysis = [this](const v1::WatchAnalysisRequest& request, const Write& write) {
      watched_.push_back(request.name());
      return watch_(request, write);
    };
    StartServer();
  }

  v1::Analysis Ended(const std::string& name) const {
    v1::Analysis analysis;
    analysis.set_name(name);
    analysis.mutable_analysis()->mutable_spectrum();
    for (const v1::CreateAnalysisRequest& request : requests_) {
      const auto& asked = request.subjects();
      if (asked.empty() || ModelOf(asked[0]) != name.substr(9)) continue;
      analysis.clear_subjects();
      for (const v1::AnalysisSubject& one : asked) {
        v1::AnalysisSubject* subject = analysis.add_subjects();
        subject->set_run(absl::StrCat("runs/", ModelOf(one)));
        subject->set_step(1000);
      }
    }
    const auto end = ends_.find(name);
    analysis.set_state(end == ends_.end() ? v1::AnalysisState::DONE : end->second);
    analysis.set_progress(1);
    if (analysis.state() == v1::AnalysisState::FAILED) analysis.set_failure("the worker died");
    if (analysis.state() != v1::AnalysisState::DONE) return analysis;
    (*analysis.mutable_numbers())["stable_rank"].set_value(2.5);
    (*analysis.mutable_numbers())["isoscore"].set_undefined(v1::UndefinedNumber::ZERO_VARIANCE);
    analysis.add_notes("of 100 tokens in 16 features");
    analysis.mutable_device_time()->set_seconds(absl::ToInt64Seconds(took_));
    analysis.mutable_device_time()->set_nanos(
        static_cast<int32_t>(absl::ToInt64Nanoseconds(took_ % absl::Seconds(1))));
    if (!arrays_.empty()) {
      v1::AnalysisArrayInfo* array = analysis.add_arrays();
      array->set_name("singular_values");
      analysis.set_artifact(Sha256Hex(arrays_));
      analysis.set_artifact_bytes(arrays_.size());
    }
    return analysis;
  }

  // A file of arrays as the engine writes it.
  static std::string Arrays() {
    const std::string header = R"({"__metadata__":{"axes.x":"direction"},"x":{}})";
    return absl::StrCat(std::string("\x40\0\0\0\0\0\0\0", 8), header, std::string(3000, 'v'));
  }

  // Serves `arrays_`, at most `most` bytes a call.
  void ServeArrays(size_t most) {
    answers_.read_arrays = [this, most](
                               const v1::ReadAnalysisArraysRequest& request,
                               const std::function<bool(const v1::AnalysisArraysChunk&)>& write) {
      reads_.push_back(absl::StrCat(request.name(), "@", request.offset()));
      v1::AnalysisArraysChunk chunk;
      chunk.set_data(arrays_.substr(request.offset(), most));
      write(chunk);
      return request.offset() + most < arrays_.size() ? absl::UnavailableError("broken")
                                                      : absl::OkStatus();
    };
  }

  std::string arrays_;
  std::vector<std::string> unlabelled_;
  std::string label_;
  absl::Duration took_ = absl::Seconds(3);
  v1::AnalysisState::Value state_ = v1::AnalysisState::QUEUED;
  std::map<std::string, v1::AnalysisState::Value> ends_;  // of those that are not DONE
  std::function<absl::Status(const v1::CreateAnalysisRequest&)> refuse_ =
      [](const v1::CreateAnalysisRequest&) { return absl::OkStatus(); };
  std::function<absl::Status(const v1::WatchAnalysisRequest&, const Write&)> watch_ =
      [this](const v1::WatchAnalysisRequest& request, const Write& write) {
        write(Ended(request.name()));
        return absl::OkStatus();
      };
  std::vector<v1::CreateAnalysisRequest> requests_;
  std::vector<std::string> watched_;
  std::vector<std::string> reads_;
};

TEST_F(AnalyzeTest, SaysWhichLabelTheNumbersGot) {
  label_ = "spectrum-2";
  EXPECT_THAT(Run({"analyze", "spectrum", "small/pre"}).err,
              HasSubstr("note: the numbers are spectrum-2/…, because another analysis is spectrum; "
                        "--label gives a name of your own\n"));
  EXPECT_EQ(requests_[0].subjects(0).cell(), "pre-s1") << "the cell of a setting";
  EXPECT_THAT(Run({"analyze", "spectrum", "small/pre", "--label", "spectrum-2"}).err,
              Not(HasSubstr("another analysis")));
  label_ = "spectrum";
  EXPECT_THAT(Run({"analyze", "spectrum", "small/pre"}).err, Not(HasSubstr("another analysis")));
}

TEST_F(AnalyzeTest, PrintsTheNumbersOfACell) {
  const Outcome outcome = Run({"analyze", "spectrum", "small/pre-s1"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(outcome.out,
            "number                   value\n"
            "isoscore     — (zero variance)\n"
            "stable_rank                2.5\n");
  EXPECT_EQ(outcome.err,
            "1 to compute; Ctrl-C doesn't stop the server: `ablate analyses` lists them, and the "
            "same command shows them again\n"
            "spectrum  small/pre-s1  DONE 100 %\n"
            "note: of 100 tokens in 16 features\n"
            "analyses/pre-s1: spectrum at step 1,000, took 3 s\n");
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_TRUE(requests_[0].analysis().has_spectrum());
  ASSERT_EQ(requests_[0].subjects_size(), 1);
  EXPECT_EQ(requests_[0].subjects(0).experiment(), "experiments/small");
  EXPECT_EQ(requests_[0].subjects(0).cell(), "pre-s1");
  EXPECT_FALSE(requests_[0].subjects(0).has_step() || requests_[0].has_inputs() ||
               requests_[0].has_seed() || requests_[0].validate_only())
      << "defaults are the server's";
}

TEST_F(AnalyzeTest, PassesEveryOptionOn) {
  const Outcome outcome =
      Run({"analyze", "cka", "runs/r", "--set", "sites=[block.0.output,embedding]", "--set",
           "estimator=biased", "--at", "100", "--tokens", "5000", "--seed", "7"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_THAT(requests_[0].analysis().cka().sites(), ElementsAre("block.0.output", "embedding"));
  EXPECT_EQ(requests_[0].analysis().cka().estimator(), v1::CkaEstimator::biased);
  EXPECT_EQ(requests_[0].subjects(0).run(), "runs/r");
  EXPECT_EQ(requests_[0].subjects(0).step(), 100);
  EXPECT_EQ(requests_[0].inputs().tokens(), 5000u);
  EXPECT_EQ(requests_[0].seed(), 7u);
  EXPECT_EQ(Run({"analyze", "spectrum", "runs/r", "--at", "-1"}).code, kSuccess);
  EXPECT_EQ(requests_.back().subjects(0).step(), -1);
  EXPECT_EQ(Run({"analyze", "attention", "runs/r", "--prompt", "an"}).code, kSuccess);
  EXPECT_EQ(requests_.back().inputs().prompt(), "an");
  EXPECT_FALSE(requests_.back().inputs().has_documents());
  EXPECT_EQ(Run({"analyze", "spectrum", "runs/r", "--documents", "64", "--dataset", "names"}).code,
            kSuccess);
  EXPECT_EQ(requests_.back().inputs().documents(), 64u);
  EXPECT_EQ(requests_.back().inputs().dataset(), "names");
  EXPECT_FALSE(requests_.back().inputs().has_tokens());
}

TEST_F(AnalyzeTest, TakesEveryCellOfAnExperiment) {
  const Outcome outcome = Run({"analyze", "spectrum", "small"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("number "));
  EXPECT_THAT(outcome.out, HasSubstr("pre-s1"));
  EXPECT_THAT(outcome.out, HasSubstr("post-s1\n"));
  EXPECT_THAT(outcome.err, HasSubstr("spectrum  1/2 ended   pre-s1  DONE 100 %\n"
                                     "spectrum  2/2 ended   post-s1  DONE 100 %\n"));
  EXPECT_THAT(outcome.err, HasSubstr("note: pre-s1, post-s1: of 100 tokens in 16 features\n"));
  EXPECT_THAT(watched_, ElementsAre("analyses/pre-s1", "analyses/post-s1"));
}

TEST_F(AnalyzeTest, TakesACellOnceThatIsNamedTwice) {
  Run({"analyze", "spectrum", "small/post-s1", "small", "small/post-s1", "runs/a", "runs/a"});
  ASSERT_EQ(requests_.size(), 3u);
  EXPECT_EQ(requests_[0].subjects(0).cell(), "post-s1");
  EXPECT_EQ(requests_[1].subjects(0).cell(), "pre-s1");
  EXPECT_EQ(requests_[2].subjects(0).run(), "runs/a");
}

TEST_F(AnalyzeTest, MakesOneTrajectoryOfEachRun) {
  const Outcome all = Run({"analyze", "trajectory", "small/pre-s1"});
  EXPECT_EQ(all.code, kSuccess) << all.err;
  ASSERT_EQ(requests_.size(), 1u);
  ASSERT_EQ(requests_[0].subjects_size(), 1);
  EXPECT_FALSE(requests_[0].subjects(0).has_step()) << "every checkpoint";
  EXPECT_EQ(Run({"analyze", "trajectory", "small", "--at", "0,100,-1"}).code, kSuccess);
  ASSERT_EQ(requests_.size(), 3u);
  for (const size_t i : {1, 2}) {
    ASSERT_EQ(requests_[i].subjects_size(), 3);
    EXPECT_EQ(requests_[i].subjects(1).step(), 100);
    EXPECT_EQ(requests_[i].subjects(2).step(), -1);
    EXPECT_EQ(requests_[i].subjects(0).cell(), i == 1 ? "pre-s1" : "post-s1");
  }
}

TEST_F(AnalyzeTest, TakesSeveralStepsOfAModel) {
  const Outcome each = Run({"analyze", "spectrum", "small/pre-s1", "--at", "0,100", "--json"});
  EXPECT_EQ(each.code, kSuccess) << each.err;
  ASSERT_EQ(requests_.size(), 2u);
  EXPECT_EQ(requests_[0].subjects(0).step(), 0);
  EXPECT_EQ(requests_[1].subjects(0).step(), 100);
  EXPECT_THAT(each.out, StartsWith("["));
  EXPECT_EQ(Run({"analyze", "cka", "small/pre-s1", "--at", "0,-1"}).code, kSuccess);
  ASSERT_EQ(requests_.size(), 3u);
  EXPECT_EQ(requests_[2].subjects_size(), 2) << "one of both";
  EXPECT_THAT(Run({"analyze", "spectrum", "small/pre-s1", "--at", "0,-1"}).out,
              AllOf(HasSubstr(" step 0 "), HasSubstr(" last step\n")));
  EXPECT_THAT(Run({"analyze", "spectrum", "small", "--at", "0,-1"}).out,
              AllOf(HasSubstr(" pre-s1@0 "), HasSubstr(" post-s1@last\n")));
}

TEST_F(AnalyzeTest, MakesOneCkaOfAllTargetsAndSaysWhichNumberIsWhichModel) {
  const Outcome outcome = Run({"analyze", "cka", "small/pre-s1", "small/post-s1"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(requests_[0].subjects_size(), 2);
  EXPECT_THAT(outcome.out, EndsWith("\n\n"
                                    "subject    model\n"
                                    "subject.0  pre-s1@1000\n"
                                    "subject.1  post-s1@1000\n"));
  EXPECT_THAT(Run({"analyze", "cka", "small/pre-s1"}).out, Not(HasSubstr("subject.0")));
  EXPECT_THAT(Run({"analyze", "cka", "small/pre-s1", "small/post-s1", "--json"}).out,
              StartsWith("{"));
}

TEST_F(AnalyzeTest, SaysHowLongItReallyTook) {
  took_ = absl::Milliseconds(83);
  EXPECT_THAT(Run({"analyze", "spectrum", "small/pre-s1"}).err, HasSubstr("took 0.083 s\n"));
  took_ = absl::Microseconds(20);
  EXPECT_THAT(Run({"analyze", "spectrum", "small/pre-s1"}).err,
              HasSubstr("took less than 0.001 s\n"));
  took_ = absl::Seconds(200);
  EXPECT_THAT(Run({"analyze", "spectrum", "small/pre-s1"}).err, HasSubstr("took 3 min 20 s\n"));
}

TEST_F(AnalyzeTest, GathersCellsThatLackTheCheckpoint) {
  refuse_ = [](const v1::CreateAnalysisRequest& request) {
    return absl::NotFoundError(absl::StrCat("run ", request.subjects(0).cell(),
                                            "x has no checkpoint of step 5; it has steps 0, 10"));
  };
  EXPECT_EQ(Run({"analyze", "spectrum", "small", "--at", "5"}).err,
            "error: pre-s1, post-s1: it has no checkpoint of step 5; it has steps 0, 10\n");
  EXPECT_EQ(Run({"analyze", "spectrum", "small/pre-s1", "--at", "5"}).err,
            "error: run pre-s1x has no checkpoint of step 5; it has steps 0, 10\n");
}

TEST_F(AnalyzeTest, SaysOnceWhichExperimentGetsNoMetrics) {
  unlabelled_ = {"experiments/small-1a2b"};
  const Outcome outcome = Run({"analyze", "spectrum", "small"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_THAT(outcome.err, HasSubstr("the numbers don't become metrics of small-1a2b: only the "
                                     "experiment's owner or an admin labels them\n"));
}

TEST_F(AnalyzeTest, TakesNoTargetForNormResponse) {
  const Outcome outcome = Run({"analyze", "norm_response", "--set", "mean=2"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_TRUE(requests_[0].subjects().empty());
  EXPECT_EQ(requests_[0].analysis().norm_response().mean(), 2);
  EXPECT_EQ(Run({"analyze", "norm_response", "small"}).err,
            "error: ablate analyze: EXP: norm_response reads no model; remove it\n");
}

TEST_F(AnalyzeTest, DoesNotWaitForWhatIsStored) {
  state_ = v1::AnalysisState::DONE;
  const Outcome outcome = Run({"analyze", "spectrum", "small/pre-s1"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_TRUE(watched_.empty());
  EXPECT_THAT(outcome.err, Not(HasSubstr("Ctrl-C")));
}

TEST_F(AnalyzeTest, ExitsByHowTheyEnded) {
  ends_["analyses/pre-s1"] = v1::AnalysisState::CANCELLED;
  const Outcome cancelled = Run({"analyze", "spectrum", "small"});
  EXPECT_EQ(cancelled.code, kCancelled);
  EXPECT_THAT(cancelled.err, EndsWith("error: pre-s1: it was cancelled\n"));
  EXPECT_THAT(cancelled.out, HasSubstr("2.5")) << "of the other one";
  ends_["analyses/post-s1"] = v1::AnalysisState::FAILED;
  const Outcome failed = Run({"analyze", "spectrum", "small"});
  EXPECT_EQ(failed.code, kFailure);
  EXPECT_THAT(failed.err, HasSubstr("error: post-s1: the worker died\n"));
  EXPECT_EQ(failed.out, "");
}

TEST_F(AnalyzeTest, MakesTheOthersWhereTheServerRefusesSome) {
  refuse_ = [](const v1::CreateAnalysisRequest& request) {
    const bool post = request.subjects(0).cell() == "post-s1";
    return post ? absl::FailedPreconditionError("it has no checkpoint yet") : absl::OkStatus();
  };
  const Outcome outcome = Run({"analyze", "spectrum", "small"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_THAT(outcome.err, StartsWith("error: post-s1: it has no checkpoint yet\n"));
  EXPECT_THAT(outcome.out, HasSubstr("2.5"));
}

TEST_F(AnalyzeTest, SaysOnceWhatTheServerRefusesOfAll) {
  refuse_ = [](const v1::CreateAnalysisRequest&) {
    return absl::InvalidArgumentError("site: \"x\" is no site");
  };
  const Outcome outcome = Run({"analyze", "spectrum", "small", "--set", "site=x"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err, "error: pre-s1, post-s1: site: \"x\" is no site\n");
  EXPECT_EQ(Run({"analyze", "spectrum", "small/pre-s1"}).err, "error: site: \"x\" is no site\n");
  EXPECT_TRUE(watched_.empty());
}

TEST_F(AnalyzeTest, WaitsThroughARestart) {
  watch_ = [this](const v1::WatchAnalysisRequest& request, const Write& write) {
    v1::Analysis running;
    running.set_name(request.name());
    running.set_state(v1::AnalysisState::RUNNING);
    write(watched_.size() < 3 ? running : Ended(request.name()));
    return watched_.size() == 1 ? absl::UnavailableError("going down") : absl::OkStatus();
  };
  const Outcome outcome = Run({"analyze", "spectrum", "small/pre-s1"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(watched_.size(), 3u) << "after the restart, and after a watch that ended early";
}

TEST_F(AnalyzeTest, EstimatesTheTimeLeftWhenAnAnalysisGetsOn) {
  console_.err_is_terminal = true;
  watch_ = [this](const v1::WatchAnalysisRequest& request, const Write& write) {
    v1::Analysis running;
    running.set_name(request.name());
    running.set_state(v1::AnalysisState::RUNNING);
    running.set_progress(watched_.size() == 1 ? .2 : .3);
    write(watched_.size() < 3 ? running : Ended(request.name()));
    return absl::OkStatus();  // too early: half a second later there is another watch
  };
  const Outcome outcome = Run({"analyze", "spectrum", "small/pre-s1"});
  EXPECT_THAT(outcome.err, HasSubstr("small/pre-s1  RUNNING 20 %\r"));
  EXPECT_THAT(outcome.err, HasSubstr("small/pre-s1  RUNNING 30 %  ETA 4 s\r"));
  EXPECT_THAT(outcome.err, HasSubstr("small/pre-s1  DONE 100 %\n"));
}

TEST_F(AnalyzeTest, SaysThatWaitingFailed) {
  watch_ = [](const v1::WatchAnalysisRequest&, const Write&) {
    return absl::NotFoundError("it was removed");
  };
  const Outcome removed = Run({"analyze", "spectrum", "small/pre-s1"});
  EXPECT_EQ(removed.code, kWaitFailed);
  EXPECT_THAT(removed.err, EndsWith("error: it was removed\n"));
  watch_ = [](const v1::WatchAnalysisRequest&, const Write&) {
    return absl::UnavailableError("away");
  };
  EXPECT_EQ(Run({"analyze", "spectrum", "small/pre-s1"}).code, kNoServer);
  EXPECT_GE(slept_, absl::Seconds(59));
}

TEST_F(AnalyzeTest, RewritesALineOnATerminal) {
  console_.err_is_terminal = true;
  const Outcome outcome = Run({"analyze", "spectrum", "small/pre-s1"});
  EXPECT_THAT(outcome.err, HasSubstr("\r\x1b[Kspectrum  small/pre-s1  DONE 100 %\n"));
}

TEST_F(AnalyzeTest, PrintsOneMessageOrAnArray) {
  v1::Analysis analysis;
  const Outcome one = Run({"analyze", "spectrum", "small/pre-s1", "--json"});
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(one.out, &analysis).ok()) << one.out;
  EXPECT_EQ(analysis.numbers().at("stable_rank").value(), 2.5);
  const Outcome several = Run({"analyze", "spectrum", "small", "--json"});
  v1::ListAnalysesResponse list;
  const std::string as_list = absl::StrCat("{\"analyses\": ", several.out, "}");
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(as_list, &list).ok()) << several.out;
  EXPECT_EQ(list.analyses_size(), 2);
}

TEST_F(AnalyzeTest, QueuesWithoutWaiting) {
  const Outcome outcome = Run({"analyze", "spectrum", "small", "--no-wait"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.out,
            "analysis  model    state   progress\n"
            "pre-s1    pre-s1   QUEUED       0 %\n"
            "post-s1   post-s1  QUEUED       0 %\n");
  EXPECT_TRUE(watched_.empty());
}

TEST_F(AnalyzeTest, SaysWhatItWouldTake) {
  const Outcome outcome = Run({"analyze", "spectrum", "small/pre-s1", "--dry-run"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_TRUE(requests_[0].validate_only());
  EXPECT_EQ(outcome.out,
            "model                                time  forwards  memory  arrays  stored\n"
            "small/pre-s1  less than 0.001 s (a guess)         0     0 B     0 B  no\n");
  const auto create = answers_.create_analysis;
  answers_.create_analysis = [&](const v1::CreateAnalysisRequest& request,
                                 v1::CreateAnalysisResponse* response) {
    response->add_problems()->set_message("seed: too large");
    return create(request, response);
  };
  const Outcome problems = Run({"analyze", "spectrum", "small", "--dry-run"});
  EXPECT_EQ(problems.code, kFailure);
  EXPECT_EQ(problems.out, "");
  EXPECT_EQ(problems.err, "error: pre-s1, post-s1: seed: too large\n");
  EXPECT_THAT(Run({"analyze", "spectrum", "small/pre-s1", "--dry-run", "--json"}).out,
              HasSubstr("\"message\": \"seed: too large\""));
}

TEST_F(AnalyzeTest, WritesArraysThroughBrokenStreams) {
  arrays_ = Arrays();
  ServeArrays(2000);
  const std::string path = folder_ + "/arrays.safetensors";
  const Outcome outcome = Run({"analyze", "spectrum", "small/pre-s1", "-o", path});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(Read(path), arrays_);
  EXPECT_THAT(reads_, ElementsAre("analyses/pre-s1@0", "analyses/pre-s1@2000"));
  EXPECT_THAT(outcome.err, EndsWith(path + ": 1 array, 3.1 kB\n"));
}

TEST_F(AnalyzeTest, RefusesAFileThatExistsBeforeAnythingIsMade) {
  arrays_ = Arrays();
  ServeArrays(10'000);
  const std::string path = ClientTest::Write("checkpoint.safetensors", "mine");
  const Outcome refused = Run({"analyze", "spectrum", "small/pre-s1", "-o", path});
  EXPECT_EQ(refused.code, kFailure);
  EXPECT_EQ(refused.err, "error: " + path + " exists already: --force replaces it\n");
  EXPECT_TRUE(requests_.empty());
  EXPECT_EQ(Run({"analyze", "spectrum", "small/pre-s1", "-o", path, "--force"}).code, kSuccess);
  EXPECT_EQ(Read(path), arrays_);
}

TEST_F(AnalyzeTest, WritesTheArraysOfOneOnly) {
  const std::string path = folder_ + "/arrays.safetensors";
  const Outcome several = Run({"analyze", "spectrum", "small", "-o", path});
  EXPECT_EQ(several.code, kFailure);
  EXPECT_EQ(several.err,
            "error: --output: 2 analyses are named; expected one. Name a single cell.\n");
  EXPECT_TRUE(requests_.empty());
  EXPECT_THAT(Run({"analyze", "spectrum", "small/pre-s1", "-o", path}).err,
              EndsWith("error: --output: analyses/pre-s1 has no arrays\n"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(AnalyzeTest, RefusesWhatMakesNoSense) {
  for (const auto& [arguments, what] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"spectra", "small"}, "did you mean spectrum?"},
           {{"spectrum"},
            "EXP is missing; expected an experiment, EXP/SETTING, EXP/CELL or runs/ID"},
           {{"spectrum", "a", "--set", "sit=x"}, "--set sit: "},
           {{"spectrum", "a", "--at", "3000000000"},
            "is not a step; expected a whole number from 0 on, or -1 for the last"},
           {{"spectrum", "a", "--at", "-2"}, "--at: \"-2\" is not a step"},
           {{"spectrum", "a", "--at", "1,,2"}, "--at: \"\" is not a step"},
           {{"spectrum", "a", "--at", "1,2,1"}, "--at: 1 is given twice"},
           {{"norm_response", "--at", "5"}, "--at, --label: norm_response reads no model"},
           {{"norm_response", "--label", "x"}, "--at, --label: norm_response reads no model"},
           {{"spectrum", "a", "--tokens", "5", "--prompt", "an"},
            "--tokens: can't be combined with --prompt; remove one of them\n"},
           {{"spectrum", "a", "--documents", "5", "--prompt", "a"},
            "--documents: can't be combined with --tokens or --prompt; give one of them\n"},
           {{"spectrum", "a", "--documents", "5", "--tokens", "5"},
            "--documents: can't be combined with --tokens or --prompt; give one of them\n"},
           {{"spectrum", "a", "--dataset", "names", "--prompt", "a"},
            "--dataset: can't be combined with --prompt; remove one of them\n"},
           {{"spectrum", "a", "-o", "f", "--no-wait"},
            "can't be combined with --dry-run or --no-wait"}}) {
    const Outcome outcome = Run(With({"analyze"}, arguments));
    EXPECT_EQ(outcome.code, kUsage) << what;
    EXPECT_THAT(outcome.err, StartsWith("error: ablate analyze: "));
    EXPECT_THAT(outcome.err, HasSubstr(what));
  }
  EXPECT_TRUE(requests_.empty());
}

TEST_F(AnalyzeTest, HasHelpOfAllKindsAndOfOne) {
  const Outcome all = Run({"analyze", "--help"});
  EXPECT_EQ(all.code, kSuccess);
  EXPECT_THAT(all.out, HasSubstr("\n  hessian             Curvature of the loss at a solution\n"));
  const Outcome one = Run({"analyze", "gradient_flow", "--help"});
  EXPECT_EQ(one.code, kSuccess);
  EXPECT_THAT(
      one.out,
      HasSubstr("\n  signal  exact or rule [exact]\n          Gradient to measure: exact, "));
  EXPECT_THAT(one.out, Not(HasSubstr("Kinds:")));
}

}  // namespace
}  // namespace ablate::client
