// Tests requests of analyses before a worker gets them: every invalid request names its problem and
// changes nothing.
#include <string>
#include <vector>

#include "tests/service/analysis_fixture.h"

namespace ablate::service {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class AnalysisRequestTest : public AnalysisTest {
 protected:
  // Expects a refusal with exactly this error, and no change.
  void ExpectRefused(const v1::CreateAnalysisRequest& request, const std::string& field,
                     const std::string& message,
                     grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT) {
    const uint64_t before = store().change_number();
    const grpc::Status status = Try(request);
    EXPECT_EQ(status.error_code(), code) << request.ShortDebugString();
    EXPECT_EQ(status.error_message(), message);
    if (code == grpc::StatusCode::INVALID_ARGUMENT) {
      EXPECT_EQ(FieldOf(status), field);
    }
    EXPECT_EQ(store().change_number(), before);
    EXPECT_THAT(*store().ListAnalyses(storage::kServer, "", 10), SizeIs(0));
  }
  void ExpectRefused(const std::string& analysis, const std::string& field,
                     const std::string& message) {
    ExpectRefused(Request(analysis), field, message);
  }
};

TEST_F(AnalysisRequestTest, SaysWhatWouldBeMadeAndWhatItCosts) {
  v1::CreateAnalysisRequest request = Request("spectrum {}");
  request.set_validate_only(true);
  const uint64_t before = store().change_number();
  const v1::CreateAnalysisResponse response = Ask(request);
  EXPECT_EQ(response.analysis().name(), "");
  EXPECT_EQ(response.analysis().inputs().tokens(), 20'000u);
  ASSERT_EQ(response.analysis().subjects_size(), 1);
  EXPECT_EQ(response.analysis().subjects(0).run(), run_);
  EXPECT_EQ(response.analysis().subjects(0).step(), 10);
  EXPECT_FALSE(response.reused());
  EXPECT_THAT(response.problems(), SizeIs(0));
  EXPECT_EQ(response.cost().forwards(), 1);
  EXPECT_EQ(response.cost().state_bytes(), 8u * 8 * 8) << "of width 8";
  EXPECT_EQ(response.cost().array_bytes(), 16u * 8);
  EXPECT_GT(response.cost().device_time().nanos(), 0);
  EXPECT_FALSE(response.cost().measured()) << "none was made here";
  EXPECT_EQ(store().change_number(), before);
  EXPECT_THAT(List(""), SizeIs(0));
}

TEST_F(AnalysisRequestTest, SaysWithoutMakingItThatItIsStored) {
  const std::string name = Queue();
  v1::CreateAnalysisRequest request = Request("spectrum {}");
  request.set_validate_only(true);
  v1::CreateAnalysisResponse response = Ask(request);
  EXPECT_TRUE(response.reused());
  EXPECT_EQ(response.analysis().name(), name);
  CancelAnalysis(name);
  response = Ask(request);
  EXPECT_FALSE(response.reused()) << "it would be queued again";
  EXPECT_EQ(response.analysis().name(), name);
  EXPECT_EQ(GetAnalysis(name).state(), v1::AnalysisState::CANCELLED);
}

TEST_F(AnalysisRequestTest, ReadsEveryCheckpointOfOneRunTogether) {
  ExpectRefused("trajectory {}", "subjects", "subjects: 1 given; expected 3 to 64 for trajectory");
  v1::CreateAnalysisRequest request = Request("trajectory {}");
  request.mutable_subjects(0)->set_step(10);
  *request.add_subjects() = request.subjects(0);
  request.mutable_subjects(1)->set_step(-1);
  ExpectRefused(request, "subjects",
                "subjects: step 10 is repeated; expected each checkpoint once");
  request.mutable_subjects(1)->set_run(other_);
  ExpectRefused(
      request, "subjects",
      "subjects: they are checkpoints of 2 runs; expected checkpoints of one run for trajectory");
}

TEST_F(AnalysisRequestTest, ListsEveryProblemAtOnce) {
  v1::CreateAnalysisRequest request = RequestOf(R"(
    analysis { hessian { top: 21 iterations: 1 } }
    inputs { tokens: 0 }
    subjects { run: "runs/a" experiment: "experiments/b" step: -2 }
    validate_only: true)");
  const v1::CreateAnalysisResponse response = Ask(request);
  std::vector<std::string> fields;
  for (const v1::Problem& problem : response.problems()) fields.push_back(problem.field());
  EXPECT_THAT(fields, ElementsAre("analysis.hessian.top", "analysis.hessian.iterations",
                                  "inputs.tokens", "subjects[0].run", "subjects[0].step"));
  request.set_validate_only(false);
  const grpc::Status status = Try(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("5 problems: analysis.hessian.top: 21 is out of "));
}

TEST_F(AnalysisRequestTest, AnotherOptionInputSeedOrSubjectIsAnotherAnalysis) {
  v1::CreateAnalysisRequest seed = Request("spectrum {}"), tokens = seed, other = seed, step = seed;
  seed.set_seed(1);
  tokens.mutable_inputs()->set_tokens(100);
  other.mutable_subjects(0)->set_run(other_);
  step.mutable_subjects(0)->set_step(10);  // the last
  v1::CreateAnalysisRequest cell = RequestOf("analysis { spectrum {} } subjects {}");
  cell.mutable_subjects(0)->set_experiment(experiment_);
  cell.mutable_subjects(0)->set_cell(Rows(experiment_)[0].cell());
  const std::string name = Queue();
  for (const v1::CreateAnalysisRequest& same : {step, cell}) {
    EXPECT_TRUE(Ask(same).reused());
    EXPECT_EQ(Ask(same).analysis().name(), name);
  }
  for (const v1::CreateAnalysisRequest& one :
       {seed, tokens, other, Request("spectrum { site: \"embedding\" }")}) {
    EXPECT_FALSE(Ask(one).reused()) << one.ShortDebugString();
  }
  EXPECT_THAT(List(""), SizeIs(5));
}

TEST_F(AnalysisRequestTest, RefusesMorePointsThanAPlaneMayHave) {
  ExpectRefused("loss_landscape { dims: 2 points: 102 }", "analysis.loss_landscape.points",
                "analysis.loss_landscape.points: 102 is too many; expected 2 to 101 where dims is "
                "2");
}

TEST_F(AnalysisRequestTest, RefusesSitesThatCanNotBe) {
  const grpc::Status unknown = Try(Request("spectrum { site: \"block.7.output\" }"));
  EXPECT_EQ(FieldOf(unknown), "analysis.spectrum.site");
  EXPECT_THAT(unknown.error_message(),
              HasSubstr("the model has no site \"block.7.output\" of this kind; expected "));
  ExpectRefused("spectrum { site: \"" + std::string(201, 's') + "\" }", "analysis.spectrum.site",
                "analysis.spectrum.site: it has 201 bytes; expected at most 200");
  ExpectRefused("capture {}", "analysis.capture.sites",
                "analysis.capture.sites: there is none; expected at least one site of the model");
}

TEST_F(AnalysisRequestTest, RefusesInputsThatCanNotBe) {
  v1::CreateAnalysisRequest request = Request("spectrum {}");
  request.mutable_inputs()->set_prompt("abc");
  ExpectRefused(request, "inputs.prompt",
                "inputs.prompt: the tokens of legacy_recall are numbers, not text; expected a "
                "documents or text task");
  request.mutable_inputs()->set_prompt(std::string(513, 'a'));
  ExpectRefused(request, "inputs.prompt", "inputs.prompt: 513 characters; expected at most 512");
}

constexpr char kWords[] = "a\nbé\ncab\nabba\nabcde\n";

TEST_F(AnalysisRequestTest, RefusesAPromptThatIsLongerThanTheContext) {
  const std::string run = TrainOn("words", kWords);
  v1::CreateAnalysisRequest request =
      RequestOn({run}, "attention { maps: heads }", "prompt: 'éééééééé'");
  ExpectRefused(request, "inputs.prompt",
                "inputs.prompt: 8 characters; expected at most 7, one less than the model's "
                "context");
  request.mutable_inputs()->set_prompt("ééééééé");  // characters count, not bytes
  EXPECT_EQ(Ask(request).analysis().inputs().prompt(), "ééééééé");
}

// A dry run reports it, too: no worker is needed to find it.
TEST_F(AnalysisRequestTest, RefusesWhatItsDataShowsToBeImpossible) {
  const std::string run = TrainOn("words", kWords, 2), seed = TrainOn("words", kWords, 2, 1);
  const auto refused = [&](const v1::CreateAnalysisRequest& request, const std::string& field,
                           const std::string& message) {
    ExpectRefused(request, field, field + ": " + message);
    v1::CreateAnalysisRequest dry = request;
    dry.set_validate_only(true);
    const v1::CreateAnalysisResponse response = Ask(dry);
    ASSERT_EQ(response.problems_size(), 1) << message;
    EXPECT_EQ(response.problems(0).field(), field);
  };
  refused(RequestOn({run}, "spectrum {}", "prompt: 'abz'"), "inputs.prompt",
          "character 3, \"z\" U+007A, is not in the run's data; expected its 6 characters");
  refused(RequestOn({TrainOn("zs", "z\nza\n"), run}, "cka {}", "prompt: 'z'"), "inputs.prompt",
          "character 1, \"z\" U+007A, is not in the run's data (subjects[1]); expected its 6 "
          "characters");
  refused(RequestOn({run}, "cka { sites: 'embedding' }", ""), "analysis.cka.sites",
          "there is one only; expected two or more, or several subjects");
  refused(RequestOn({run, seed}, "cka {}", ""), "subjects[1]",
          "it reads other sequences than the ones before; expected models that are held to the "
          "same sequences");
  refused(
      RequestOn({run, seed, seed}, "cka {}", ""), "subjects[1]",
      "it reads other sequences than the ones before (so does 1 more); expected models that are "
      "held to the same sequences");
  v1::CreateAnalysisRequest request =
      RequestOn({run}, "capture { sites: 'block.0.attention.weights' }", "");
  EXPECT_EQ(FieldOf(Try(request)), "analysis.capture.sites[0]");
  request.mutable_inputs()->set_documents(1);
  EXPECT_TRUE(Try(request).ok()) << "one has one length";
  request = RequestOn({run}, "attention { maps: heads }", "");
  const grpc::Status maps = Try(request);
  EXPECT_EQ(FieldOf(maps), "analysis.attention.maps");
  EXPECT_THAT(maps.error_message(),
              HasSubstr("they are of one sequence of at most 512 tokens, and 2 of up to "));
  request.mutable_inputs()->set_prompt("ab");
  EXPECT_TRUE(Try(request).ok());
  const grpc::Status recall = Try(Request("attention { maps: model }"));
  EXPECT_EQ(FieldOf(recall), "analysis.attention.maps");
}

// The prompts of patch are options, and are read like one of the inputs.
TEST_F(AnalysisRequestTest, RefusesPairsOfPromptsThatItsDataShowsToBeImpossible) {
  const std::string run = TrainOn("words", kWords);
  const auto patch = [&](const std::string& clean, const std::string& corrupt,
                         const std::string& right) {
    return RequestOn({run},
                     absl::StrCat("patch { clean: '", clean, "' corrupt: '", corrupt, "' right: '",
                                  right, "' wrong: 'b' }"),
                     "");
  };
  EXPECT_TRUE(Try(patch("ab", "cb", "a")).ok());
  const auto refused = [&](const v1::CreateAnalysisRequest& request, const std::string& message) {
    EXPECT_EQ(Try(request).error_message(), message);
  };
  refused(patch("abz", "cba", "a"),
          "analysis.patch.clean[0]: character 3, \"z\" U+007A, is not in the run's data; expected "
          "its 6 characters");
  refused(patch("ab", "cb", "ab"),
          "analysis.patch.right[0]: it has 2 tokens; expected text of one token");
  refused(patch("ab", "c", "a"),
          "analysis.patch.corrupt[0]: it has 2 tokens, and clean[0] has 3; expected as many tokens "
          "in both prompts of a pair");
  refused(patch(std::string(513, 'a'), "cb", "a"),
          "analysis.patch.clean[0]: it has 513 characters; expected at most 512");
  v1::CreateAnalysisRequest prompt = patch("ab", "cb", "a");
  prompt.mutable_inputs()->set_prompt("ab");
  refused(prompt, "inputs.prompt: patch takes no inputs; expected none");
  refused(Request("patch { clean: 'ab' corrupt: 'cb' right: 'a' wrong: 'b' }"),
          "analysis.patch.clean: the tokens of legacy_recall are numbers, not text; expected a run "
          "of a documents or text task");
}

TEST_F(AnalysisRequestTest, TakesEqualTextsInSeveralPairs) {
  ExpectRefused("capture { sites: 'embedding' sites: 'embedding' }", "analysis.capture.sites[1]",
                "analysis.capture.sites[1]: repeated; expected each once");
  const std::string pairs =
      "patch { clean: 'ab' clean: 'ab' corrupt: 'cb' corrupt: 'ac' right: 'a' right: 'a' wrong: "
      "'b' wrong: 'b' }";
  EXPECT_TRUE(Try(RequestOn({TrainOn("words", kWords)}, pairs, "")).ok());
}

TEST_F(AnalysisRequestTest, FindsTheDataSetThatItIsToRead) {
  const std::string run = TrainOn("words", kWords);
  const v1::Dataset other = Upload("other.txt", "ab\nba\n");
  v1::CreateAnalysisRequest request =
      RequestOn({run}, "spectrum {}", "dataset: 'other.txt' documents: 2");
  const v1::Analysis asked = Ask(request).analysis();
  EXPECT_EQ(asked.inputs().dataset(), other.name());
  EXPECT_EQ(asked.inputs().dataset_sha256(), other.sha256());
  EXPECT_EQ(asked.inputs().documents(), 2u);
  EXPECT_FALSE(asked.inputs().has_tokens());
  for (const std::string& name : {other.name(), other.name().substr(9)}) {
    request.mutable_inputs()->set_dataset(name);
    EXPECT_EQ(Ask(request).analysis().name(), asked.name());
  }
  request.mutable_inputs()->set_documents(1);
  EXPECT_FALSE(Ask(request).reused());
  request.mutable_inputs()->set_dataset(Upload("third", "ab\nba\na\n").name());
  EXPECT_FALSE(Ask(request).reused()) << "other bytes";
}

TEST_F(AnalysisRequestTest, RefusesDataSetsThatCanNotBeRead) {
  const std::string run = TrainOn("words", kWords);
  v1::CreateAnalysisRequest request = RequestOn({run}, "spectrum {}", "dataset: 'wrods'");
  const std::string allowed = "; expected the ID of a stored data set, or the name of one";
  ExpectRefused(request, "inputs.dataset",
                "inputs.dataset: there is no data set \"wrods\"; did you mean words?" + allowed);
  request.mutable_inputs()->set_dataset("a/b/c");
  EXPECT_EQ(FieldOf(Try(request)), "inputs.dataset");
  Upload("twice", "ab\n");
  Upload("twice", "ba\n");
  request.mutable_inputs()->set_dataset("twice");
  EXPECT_THAT(Try(request).error_message(),
              HasSubstr("inputs.dataset: several data sets are named 'twice': "));
  Upload("other", "ab\n\nbaß\n");
  request.mutable_inputs()->set_dataset("other");
  ExpectRefused(request, "inputs.dataset",
                "inputs.dataset: document 2 has as character 3 \"ß\" U+00DF, which is not in the "
                "run's data; expected its 6 characters");
  v1::CreateAnalysisRequest recall = Request("spectrum {}");
  recall.mutable_inputs()->set_dataset("words");
  ExpectRefused(recall, "inputs.dataset",
                "inputs.dataset: the tokens of legacy_recall are numbers, not text; expected a "
                "documents or text task");
  request.mutable_inputs()->set_documents(1);
  EXPECT_TRUE(Try(request).ok()) << "the second document is not read";
}

TEST_F(AnalysisRequestTest, RefusesUntaggedDataForProbesBeforeItIsRead) {
  const std::string run = TrainOn("words", kWords);
  const std::string needs =
      "inputs.dataset: probe needs tagged sentences; expected a data set in CoNLL-U, whose words "
      "have labels";
  ExpectRefused(RequestOn({run}, "probe {}", ""), "inputs.dataset", needs);
  ExpectRefused(RequestOn({run}, "probe {}", "prompt: 'ab'"), "inputs.dataset", needs);
  // Data of that size isn't looked at.
  std::string large;
  while (large.size() <= size_t{8} << 20) large += "ab\n";
  Upload("large", large);
  ExpectRefused(RequestOn({run}, "probe {}", "dataset: 'large'"), "inputs.dataset", needs);
  const std::string word = "1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n\n";
  Upload("tagged", word + word);
  EXPECT_TRUE(Try(RequestOn({run}, "probe {}", "dataset: 'tagged'")).ok());
}

TEST_F(AnalysisRequestTest, RefusesTooFewAndTooManySubjects) {
  v1::CreateAnalysisRequest request = Request("spectrum {}");
  request.add_subjects()->set_run(other_);
  ExpectRefused(request, "subjects", "subjects: 2 given; expected 1 for spectrum");
  ExpectRefused("norm_response {}", "subjects",
                "subjects: 1 given; expected none for norm_response");
  request = Request("cka {}");
  for (int i = 0; i < 64; ++i) request.add_subjects()->set_run(run_);
  ExpectRefused(request, "subjects", "subjects: 65 given; expected at most 64");
  request.clear_subjects();
  ExpectRefused(request, "subjects", "subjects: 0 given; expected 1 to 64 for cka");
}

TEST_F(AnalysisRequestTest, RefusesSubjectsThatCanNotBe) {
  const std::string either = "; expected either run, or experiment and cell";
  v1::CreateAnalysisRequest request = RequestOf("analysis { spectrum {} } subjects {}");
  v1::AnalysisSubject& subject = *request.mutable_subjects(0);
  ExpectRefused(request, "subjects[0].run",
                "subjects[0].run: neither run nor experiment is given" + either);
  subject.set_run(run_);
  subject.set_cell("pre-s0");
  ExpectRefused(request, "subjects[0].cell",
                "subjects[0].cell: run and cell are both given" + either);
  subject.set_experiment(experiment_);
  ExpectRefused(request, "subjects[0].run",
                "subjects[0].run: run and experiment are both given" + either);
  subject.clear_run();
  subject.clear_cell();
  ExpectRefused(request, "subjects[0].cell",
                "subjects[0].cell: missing; expected a cell of the experiment, such as "
                "pre-lr0.01-s42");
  subject.set_step(-2);
  ExpectRefused(request, "subjects[0].step",
                "subjects[0].step: -2 is out of range; expected 0 or more, or -1 for the last "
                "checkpoint");
}

TEST_F(AnalysisRequestTest, RefusesSubjectsThatAreNotThere) {
  constexpr auto kNotFound = grpc::StatusCode::NOT_FOUND;
  v1::CreateAnalysisRequest request = RequestOf("analysis { spectrum {} } subjects {}");
  v1::AnalysisSubject& subject = *request.mutable_subjects(0);
  subject.set_run(run_);
  subject.set_step(4);
  ExpectRefused(
      request, "",
      absl::StrCat("run ", run_.substr(5), " has no checkpoint of step 4; it has steps 10"),
      kNotFound);
  subject.clear_run();
  subject.set_experiment(experiment_);
  subject.set_cell("nothing");
  EXPECT_EQ(ReasonOf(Try(request)), "CELL_NOT_FOUND");
  const std::string untrained = Create(SmallSpec(1, "later", 20)).experiment().name();
  subject.Clear();
  subject.set_run(Rows(untrained)[0].run());
  const grpc::Status status = Try(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonOf(status), "NO_CHECKPOINT");
}

TEST_F(AnalysisRequestTest, RefusesWhatTakesTooMuchMemory) {
  v1::CreateAnalysisRequest request = Request(
      "capture { sites: \"embedding\" sites: \"logits\" sites: \"head.input\""
      " sites: \"block.0.output\" sites: \"block.0.attention.output\""
      " sites: \"block.0.feed_forward.output\" }");
  request.mutable_inputs()->set_tokens(1'000'000);
  const grpc::Status status = Try(request);
  EXPECT_EQ(FieldOf(status), "analysis.capture");
  EXPECT_THAT(status.error_message(), HasSubstr("at most 200,000,000. Read fewer tokens"));
  EXPECT_THAT(List(""), SizeIs(0));
}

}  // namespace
}  // namespace ablate::service
