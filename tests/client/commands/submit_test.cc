// Tests `ablate submit` against a server of the test's own.
#include <algorithm>
#include <filesystem>

#include "base/sha256.h"
#include "client/context.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

constexpr char kSeen[] =
    " as a data set that only you see until an experiment uses it, and everybody from then on; it "
    "is deleted after an hour if none does";

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kFile = R"(name: small
base:
  task: {legacy_recall: {}}
  model: {width: 30, heads: 4}
axes:
  - {field: training.batch, values: [1, 2]}
seeds: {first: 1, count: 3}
)";

class SubmitTest : public ClientTest {
 protected:
  SubmitTest() {
    answers_.create = [this](const v1::CreateExperimentRequest& request,
                             v1::CreateExperimentResponse* response) {
      requests_.push_back(request);
      *response->mutable_experiment()->mutable_spec() = request.spec();
      if (!request.validate_only())
        response->mutable_experiment()->set_name("experiments/small-1a2b");
      for (int i = 0; i < 6; ++i) response->add_cells()->set_run("runs/" + std::to_string(i));
      response->mutable_estimate()->mutable_wall_time()->set_seconds(7);
      response->mutable_estimate()->set_measured(true);
      return absl::OkStatus();
    };
    answers_.dataset = [](const v1::GetDatasetRequest&, v1::Dataset*) {
      return absl::NotFoundError("no such data set");
    };
    answers_.upload = [](const std::vector<v1::UploadDatasetRequest>&, v1::Dataset*) {
      return absl::ResourceExhaustedError("the disk is full");
    };
    StartServer();
  }

  // Lets the server find these, by their fields, in whatever it is sent.
  void FindProblems(const std::vector<std::pair<std::string, std::string>>& messages) {
    answers_.create = [this, messages](const v1::CreateExperimentRequest& request,
                                       v1::CreateExperimentResponse* response) {
      requests_.push_back(request);
      for (const auto& [field, message] : messages) {
        v1::Problem* problem = response->add_problems();
        problem->set_field(field);
        problem->set_message(message);
      }
      return absl::OkStatus();
    };
  }

  // The path of an experiment that reads the data set.
  std::string Reading(const std::string& dataset, const std::string& file = "e.yaml") {
    return Write(file, "name: e\nbase:\n  task: {documents: {dataset: " + dataset + "}}\n");
  }

  std::vector<v1::CreateExperimentRequest> requests_;
};

TEST_F(SubmitTest, PrintsOneLineAndNotes) {
  const auto create = answers_.create;
  answers_.create = [create](const v1::CreateExperimentRequest& request,
                             v1::CreateExperimentResponse* response) {
    response->add_notes("post also changes model.norm.final");
    response->add_differs_only_in_evaluation("1-s1");
    return create(request, response);
  };
  const Outcome outcome = Run({"submit", Write("small.yaml", kFile)});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.out, "small-1a2b   2 batch × 3 seeds = 6 runs (0 reused)   about 7 s, 0 B\n");
  EXPECT_EQ(outcome.err,
            "note: post also changes model.norm.final\n"
            "note: 1 cell would be trained again only for another evaluation or other checkpoints: "
            "1-s1\n");
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(requests_[0].request_id().size(), 32u);
}

TEST_F(SubmitTest, ShortensAFileAndNotesWhatItLeavesOut) {
  const std::string file = R"(name: a
base:
  task: {legacy_recall: {}}
  training: {steps: 200, warmup: 20, checkpoints: [0, 50, -1]}
analyses:
  - {weights: {}, name: late, at: [50, 100]}
  - {gradient_flow: {}, at: [0, 50, -1]}
)";
  FindProblems({{"analyses[0].at[0]", "E"}, {"base.training.steps", "base.training.steps: S"}});
  const Outcome outcome = Run({"submit", "-", "--steps", "3", "--dry-run"}, file);
  EXPECT_EQ(outcome.err,
            "note: --steps 3 leaves out warmup beyond step 3, checkpoint 50, step 50 of late, step "
            "100 of late, analysis late, step 50 of gradient_flow\n"
            "<stdin>:7:30: E\n--steps: S\nerror: 2 problems; nothing was created\n");
  ASSERT_EQ(requests_.size(), 1u);
  const v1::ExperimentSpec& spec = requests_[0].spec();
  EXPECT_EQ(spec.base().training().steps(), 3u);
  EXPECT_THAT(spec.base().training().checkpoints(), ElementsAre(0, -1));
  ASSERT_EQ(spec.analyses_size(), 1);
  EXPECT_THAT(spec.analyses(0).at(), ElementsAre(0, -1));
  EXPECT_THAT(requests_[0].changes(), ElementsAre("steps=3"));
}

TEST_F(SubmitTest, RefusesStepsThatItCannotSet) {
  const Outcome set = Run({"submit", "-", "--steps", "3", "--set", "training.steps=4"}, kFile);
  EXPECT_EQ(set.code, kUsage);
  EXPECT_EQ(set.err, "error: --steps: training.steps is set by --set, too; remove one of them\n");
  const Outcome axis = Run({"submit", "-", "--steps", "3", "--axis", "training.steps=4,5"}, kFile);
  EXPECT_THAT(axis.err, HasSubstr("--steps: axis training.steps varies training.steps; expected an "
                                  "experiment of one length. Use --axis or --set\n"));
  const Outcome program = Run({"submit", "-", "--steps", "3"},
                              "name: a\nbase: {program: {command: [a]}, settings: {steps: 9}}\n");
  EXPECT_THAT(program.err, HasSubstr("--steps: the number of a program's steps is one of its "
                                     "settings; expected an experiment of models. Use --set "
                                     "settings.NAME=N\n"));
  EXPECT_THAT(Run({"submit", "--extend", "a", "--steps", "3"}).err,
              HasSubstr("--extend keeps the trained cells; remove --steps"));
}

TEST_F(SubmitTest, BreaksNotesBetweenWordsOnATerminal) {
  answers_.create = [](const v1::CreateExperimentRequest&, v1::CreateExperimentResponse* response) {
    response->add_notes("one two three four `ablate data add` five six");
    return absl::OkStatus();
  };
  console_.err_is_terminal = true;
  console_.width = 24;
  EXPECT_THAT(Run({"submit", "-", "--dry-run"}, kFile).err,
              HasSubstr("note: one two three four\n      `ablate data add`\n      five six\n"));
}

TEST_F(SubmitTest, PassesSetSeedsAndFreshOn) {
  const Outcome outcome = Run({"submit", "-", "--set", "training.steps=5", "--set",
                               "training.betas=[0.1,0.2]", "--seeds", "4,9", "--fresh"},
                              kFile);
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(requests_[0].overrides().at("training.steps").number_value(), 5);
  EXPECT_EQ(requests_[0].overrides().at("training.betas").list_value().values_size(), 2);
  EXPECT_THAT(requests_[0].spec().seeds().list(), ElementsAre(4, 9));
  EXPECT_TRUE(requests_[0].fresh());
}

TEST_F(SubmitTest, PrintsTheResponseAsJson) {
  const Outcome outcome = Run({"submit", "-", "--json"}, kFile);
  v1::CreateExperimentResponse response;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(outcome.out, &response).ok());
  EXPECT_EQ(response.experiment().name(), "experiments/small-1a2b");
  EXPECT_EQ(response.cells_size(), 6);
  EXPECT_THAT(outcome.out, HasSubstr("\"differs_only_in_evaluation\": []"));
}

TEST_F(SubmitTest, PassesTagsNoteAndChangesOn) {
  const Outcome outcome = Run({"submit", "-", "--tag", "paper", "--tag", "lr", "--note", "figure 2",
                               "--seeds", "0..7", "--axis", "training.batch=1,4"},
                              kFile);
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_THAT(requests_[0].tags(), ElementsAre("paper", "lr"));
  EXPECT_EQ(requests_[0].note(), "figure 2");
  EXPECT_THAT(requests_[0].changes(), ElementsAre("seeds=0..7", "training.batch=1,4"));
  EXPECT_TRUE(requests_[0].find_identical());
}

TEST_F(SubmitTest, ShowsTheExperimentThatIsIdentical) {
  const auto create = answers_.create;
  answers_.create = [create](const v1::CreateExperimentRequest& request,
                             v1::CreateExperimentResponse* response) {
    response->set_identical_to("experiments/small-1a2b");
    response->mutable_experiment()->add_tags("lr");
    return create(request, response);
  };
  answers_.runs = [](const v1::ListRunsRequest&, v1::ListRunsResponse*) {
    return absl::OkStatus();
  };
  const Outcome outcome = Run({"submit", "-"}, kFile);
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_THAT(outcome.err, StartsWith("identical to small-1a2b: nothing was created; --fresh "
                                      "trains its cells again\nsmall-1a2b   "));
  EXPECT_THAT(outcome.err, Not(HasSubstr("ablate edit")));
  for (const char* option : {"--json", "--dry-run"}) {
    EXPECT_THAT(
        Run({"submit", "-", "--tag", "t", "--tag", "lr", "--note", "a b", option}, kFile).err,
        HasSubstr("note: --tag and --note don't change an experiment that exists; to apply them: "
                  "`ablate edit small-1a2b --tag t --note TEXT`\n"));
  }
  EXPECT_THAT(Run({"submit", "-", "--tag", "lr"}, kFile).err, Not(HasSubstr("ablate edit")));
  EXPECT_THAT(outcome.out, AllOf(StartsWith("small-1a2b   "), EndsWith("\n")));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
  const Outcome json = Run({"submit", "-", "--json"}, kFile);
  EXPECT_THAT(json.out, HasSubstr("\"identical_to\": \"experiments/small-1a2b\""));
  const Outcome planned = Run({"submit", "-", "--dry-run"}, kFile);
  EXPECT_THAT(planned.err,
              HasSubstr("note: identical to small-1a2b: submit would create nothing\n"));
}

class AgainTest : public SubmitTest {
 protected:
  AgainTest() {
    answers_.get = [this](const v1::GetExperimentRequest& request, v1::Experiment* experiment) {
      if (request.name() != "experiments/small") return absl::NotFoundError("there is none");
      *experiment = stored_;
      return absl::OkStatus();
    };
    stored_.set_name("experiments/small-9z9z");
    stored_.mutable_spec()->set_name("small");
    stored_.mutable_spec()->mutable_base()->mutable_task()->mutable_legacy_recall();
    stored_.add_changes("training.steps=5");
  }

  v1::Experiment stored_;
};

TEST_F(AgainTest, SubmitsAStoredExperiment) {
  const Outcome outcome = Run({"submit", "--again", "small", "--seeds", "8"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(Run({"submit", "--again", "small", "--name", "other"}).code, kSuccess);
  ASSERT_EQ(requests_.size(), 2u);
  EXPECT_EQ(requests_[0].spec().name(), "small");
  EXPECT_EQ(requests_[1].spec().name(), "other");
  EXPECT_TRUE(requests_[0].spec().base().task().has_legacy_recall());
  EXPECT_EQ(requests_[0].spec().seeds().count(), 8u);
  EXPECT_THAT(requests_[0].changes(), ElementsAre("training.steps=5", "seeds=8"));
  EXPECT_EQ(requests_[0].extends(), "");
  EXPECT_FALSE(requests_[0].private_());
}

TEST_F(AgainTest, ExtendsAStoredExperimentByItsSpecOrAFile) {
  stored_.set_private_(true);
  const Outcome outcome = Run({"submit", "--extend", "small", "--seeds", "8"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_THAT(outcome.err, HasSubstr("note: it extends small-9z9z, which is archived\n"));
  EXPECT_EQ(Run({"submit", "-", "--extend", "small"}, kFile).code, kSuccess);
  ASSERT_EQ(requests_.size(), 2u);
  EXPECT_EQ(requests_[0].extends(), "experiments/small-9z9z");
  EXPECT_TRUE(requests_[0].private_()) << "as the stored one";
  EXPECT_EQ(requests_[0].spec().axes_size(), 0);
  EXPECT_EQ(requests_[1].extends(), "experiments/small-9z9z");
  EXPECT_EQ(requests_[1].spec().axes_size(), 1) << "of the file";
  EXPECT_EQ(requests_[1].spec().name(), "small");
  EXPECT_THAT(requests_[1].changes(), IsEmpty());
}

TEST_F(AgainTest, RefusesWhatDoesntGoTogether) {
  const auto error = [&](const std::vector<std::string>& arguments) {
    const Outcome outcome = Run(arguments, kFile);
    EXPECT_EQ(outcome.code, kUsage);
    return outcome.err;
  };
  EXPECT_THAT(error({"submit"}), HasSubstr("FILE is missing; give a file, --again EXP or"));
  EXPECT_THAT(error({"submit", "-", "--again", "small"}), HasSubstr("remove FILE"));
  EXPECT_THAT(error({"submit", "--extend", "small", "--again", "small"}),
              HasSubstr("exclude each other"));
  EXPECT_THAT(error({"submit", "--extend", "small", "--fresh"}), HasSubstr("remove --fresh"));
  EXPECT_THAT(requests_, IsEmpty());
  const Outcome missing = Run({"submit", "--again", "other"});
  EXPECT_EQ(missing.code, kFailure);
  EXPECT_THAT(missing.err, HasSubstr("there is none"));
}

TEST_F(SubmitTest, ReportsProblemsOfTheFileBesideTheServers) {
  FindProblems({{"base.task", "base.task: by the server"},
                {"base.training.steps", "base.training.steps: by the server"},
                {"overrides[\"training.steps\"]", "overrides[\"training.steps\"]: by the server"},
                {"base.training.batch", "base.training.batch: by the server"},
                {"overrides[\"model.wdth\"]", "overrides[\"model.wdth\"]: by the server"},
                {"name", "name: by the server"}});
  const std::string path =
      Write("bad.yaml", "name: a\nbase:\n  tsk: {}\n  training: {steps: many, batch: 0}\n");
  const Outcome outcome = Run({"submit", path, "--set", "model.wdth=1"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(
      outcome.err,
      AllOf(StartsWith(path + ":1:1: name: by the server\n" + path +
                       ":3:3: base.tsk: unknown field (did you mean task?); expected "),
            HasSubstr(path + ":4:14: base.training.steps: \"many\" is not a whole number; "),
            HasSubstr(path + ":4:27: base.training.batch: by the server\n"),
            HasSubstr("\n--set model.wdth: unknown field \"wdth\" (did you mean width?)"),
            HasSubstr("\n--set model.wdth: by the server\n"),
            Not(HasSubstr("steps: by the server")), Not(HasSubstr("base.task: by the server")),
            EndsWith("error: 6 problems; nothing was created\n")));
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_TRUE(requests_[0].validate_only());
  EXPECT_EQ(requests_[0].request_id(), "");
  EXPECT_EQ(requests_[0].spec().name(), "a");
  EXPECT_TRUE(requests_[0].overrides().contains("training.steps")) << "no default stands in for it";
  EXPECT_EQ(requests_[0].overrides().at("model.wdth").number_value(), 1);
}

TEST_F(SubmitTest, SaysOnceWhatTheServerFindsAgain) {
  FindProblems({{"axes[0].values[1]",
                 "axes[0].values[1]: \"x\" is not a whole number; expected a whole number"}});
  EXPECT_EQ(Run({"submit", "-"}, "name: a\naxes: [{field: model.width, values: [16, x]}]\n").err,
            "<stdin>:2:42: axes[0].values[1]: \"x\" is not a whole number; expected a whole "
            "number\nerror: 1 problem; nothing was created\n");
}

TEST_F(SubmitTest, UploadsNothingOfAFileWithProblems) {
  Write("names.txt", "anna\n");
  const std::string text = "name: 5\nbase: {task: {documents: {dataset: names.txt}}}\n";
  bool stored = false;
  answers_.dataset = [&stored](const v1::GetDatasetRequest&, v1::Dataset* dataset) {
    dataset->set_name("datasets/names-1a2b3c");
    return stored ? absl::OkStatus() : absl::NotFoundError("no such data set");
  };
  answers_.upload = [](const std::vector<v1::UploadDatasetRequest>&, v1::Dataset*) {
    ADD_FAILURE();
    return absl::OkStatus();
  };
  const std::string path = Write("e.yaml", text);
  FindProblems({{"base.task.documents.dataset", "by the server"}});
  EXPECT_THAT(Run({"submit", path, "--dry-run"}).err, HasSubstr("error: 1 problem;"));
  stored = true;
  EXPECT_THAT(Run({"submit", path}).err, HasSubstr("error: 2 problems;"));
  ASSERT_EQ(requests_.size(), 2u);
  EXPECT_EQ(requests_[1].spec().base().task().documents().dataset(), "datasets/names-1a2b3c");
}

TEST_F(SubmitTest, ReportsProblemsOfTheFileWithoutAServer) {
  answers_.create = [](const v1::CreateExperimentRequest&, v1::CreateExperimentResponse*) {
    return absl::PermissionDeniedError("not you");
  };
  EXPECT_THAT(Run({"submit", "-"}, "name: a\nsedes: {}\n").err,
              AllOf(StartsWith("note: the server could not be asked for further problems: not you"),
                    HasSubstr("<stdin>:2:1: sedes: "),
                    EndsWith("error: 1 problem; nothing was created\n")));
  environment_["ABLATE_SERVER"] = "nonsense://x";
  const Outcome outcome = Run({"submit", "-"}, "name: a\nsedes: {}\n");
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_THAT(outcome.err, HasSubstr("<stdin>:2:1: sedes: "));
}

TEST_F(SubmitTest, LeavesASyntaxErrorAlone) {
  EXPECT_THAT(Run({"submit", "-"}, "name: [\n").err, EndsWith("1 problem; nothing was created\n"));
  EXPECT_TRUE(requests_.empty());
}

TEST_F(SubmitTest, AsksForAllProblemsWhenTheServerRefuses) {
  FindProblems(
      {{"base.training.steps", "base.training.steps is 10000001; expected 0 to 10,000,000"},
       {"base.model.heads", "base.model.heads is 4; \x1b[31mexpected a divisor of width"}});
  const auto find = answers_.create;
  answers_.create = [find](const v1::CreateExperimentRequest& request,
                           v1::CreateExperimentResponse* response) {
    const absl::Status found = find(request, response);
    return request.validate_only() ? found : absl::InvalidArgumentError("2 problems");
  };
  const Outcome outcome = Run({"submit", "-", "--set", "training.steps=0"}, kFile);
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err,
            "<stdin>:4:22: base.model.heads is 4; \\x1b[31mexpected a divisor of width\n"
            "--set training.steps: base.training.steps is 10000001; expected 0 to 10,000,000\n"
            "error: 2 problems; nothing was created\n");
  ASSERT_EQ(requests_.size(), 2u);
  EXPECT_EQ(requests_[1].request_id(), "");
}

TEST_F(SubmitTest, PassesOtherRefusalsOn) {
  answers_.create = [](const v1::CreateExperimentRequest&, v1::CreateExperimentResponse*) {
    return absl::ResourceExhaustedError("the disk is full");
  };
  const Outcome outcome = Run({"submit", "-"}, kFile);
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err, "error: the disk is full\n");
}

TEST_F(SubmitTest, CreatesNothingInADryRun) {
  const auto create = answers_.create;
  answers_.create = [create](const v1::CreateExperimentRequest& request,
                             v1::CreateExperimentResponse* response) {
    for (const char* batch : {"1", "2"}) {
      v1::SettingParameters* setting = response->add_parameters();
      (*setting->mutable_labels())["batch"] = batch;
      setting->set_parameters(1234);
    }
    response->add_trainers()->set_trainer("native");
    response->mutable_trainers(0)->set_runs(6);
    return create(request, response);
  };
  const Outcome outcome = Run({"submit", "-", "--dry-run", "--wait"}, kFile);
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.out,
            "small   2 batch × 3 seeds = 6 runs (0 reused)   about 7 s, 0 B\n"
            "trainer: native 6 runs\n"
            "\n"
            "batch  parameters  cells  reused\n"
            "1           1,234      0       0\n"
            "2           1,234      0       0\n");
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_TRUE(requests_[0].validate_only());
  EXPECT_EQ(requests_[0].request_id(), "");
}

TEST_F(SubmitTest, FailsADryRunThatFindsProblems) {
  FindProblems({{"name", "name is \"small\"; expected larger"}});
  const auto find = answers_.create;
  answers_.create = [find](const v1::CreateExperimentRequest& request,
                           v1::CreateExperimentResponse* response) {
    response->add_notes("post also changes model.norm.final");
    return find(request, response);
  };
  const Outcome text = Run({"submit", "-", "--dry-run"}, kFile);
  EXPECT_EQ(text.code, kFailure);
  EXPECT_EQ(text.out, "");
  EXPECT_EQ(text.err,
            "<stdin>:1:1: name is \"small\"; expected larger\n"
            "error: 1 problem; nothing was created\n");
  const Outcome json = Run({"submit", "-", "--dry-run", "--json"}, kFile);
  EXPECT_EQ(json.code, kFailure);
  EXPECT_THAT(json.out, HasSubstr("\"field\": \"name\""));
}

TEST_F(SubmitTest, UploadsDataSetsTheServerLacks) {
  const std::string text = "anna\nbert\n" + std::string(600'000, 'x') + "\n";
  Write("data/my names.txt", text);
  const std::string path = Reading("data/my names.txt");
  const std::string sha256 = Sha256Hex(text);
  std::vector<std::string> looked_for;
  std::string received;
  bool stored = false;
  answers_.dataset = [&](const v1::GetDatasetRequest& request, v1::Dataset* dataset) {
    looked_for.push_back(request.sha256());
    if (!stored) return absl::NotFoundError("no such data set");
    dataset->set_name("datasets/my-names-" + sha256.substr(0, 6));
    dataset->set_sha256(sha256);
    return absl::OkStatus();
  };
  answers_.upload = [&](const std::vector<v1::UploadDatasetRequest>& messages,
                        v1::Dataset* dataset) {
    EXPECT_EQ(messages[0].display_name(), "my-names.txt");
    EXPECT_EQ(messages[0].sha256(), sha256);
    for (const auto& message : messages) received += message.data();
    stored = true;
    dataset->set_name("datasets/my-names-" + sha256.substr(0, 6));
    dataset->set_bytes(text.size());
    return absl::OkStatus();
  };
  const Outcome first = Run({"submit", path});
  EXPECT_EQ(first.code, kSuccess) << first.err;
  EXPECT_EQ(received, text);
  EXPECT_EQ(first.err, "note: uploading " + folder_ + "/data/my names.txt (600 kB)" + kSeen + "\n");
  EXPECT_EQ(requests_[0].spec().base().task().documents().dataset(),
            "datasets/my-names-" + sha256.substr(0, 6));
  EXPECT_THAT(looked_for, ElementsAre(sha256, sha256));

  received.clear();
  const Outcome second = Run({"submit", path});
  EXPECT_EQ(second.code, kSuccess);
  EXPECT_EQ(second.err, "");
  EXPECT_EQ(received, "");
}

TEST_F(SubmitTest, SaysWhatIsUploadedAndHowLargeItIsBefore) {
  const std::string names = Write("names.txt", "anna\n");
  const Outcome outcome = Run({"submit", Reading("names.txt"), "--dry-run"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err, "note: uploading " + names + " (5 B)" + kSeen + "\n" + "error: " + names +
                             ": the disk is full\n");
  std::filesystem::create_symlink(names, folder_ + "/link.txt");
  EXPECT_THAT(Run({"submit", Reading("link.txt")}).err,
              StartsWith("note: uploading " + folder_ + "/link.txt -> " +
                         std::filesystem::canonical(names).string() + " (5 B)" + kSeen + "\n"));
}

TEST_F(SubmitTest, UploadsNoFileOutsideTheExperimentFilesFolder) {
  const std::string secret = Write("secret.txt", "key\n");
  std::filesystem::create_directories(folder_ + "/mail");
  std::filesystem::create_symlink(secret, folder_ + "/mail/link.txt");
  int asked = 0;
  answers_.dataset = [&](const v1::GetDatasetRequest&, v1::Dataset* dataset) {
    ++asked;
    dataset->set_name("datasets/secret");
    return absl::OkStatus();
  };
  for (const std::string& data : {secret, std::string("../secret.txt"), std::string("link.txt")}) {
    const std::string path = Reading(data, "mail/e.yaml");
    const Outcome outcome = Run({"submit", path, "--dry-run"});
    EXPECT_EQ(outcome.code, kFailure) << data;
    EXPECT_THAT(outcome.err, StartsWith(path + ":3:22: base.task.documents.dataset: " + secret +
                                        " is outside the experiment file's folder"));
    EXPECT_EQ(asked, 0) << "not even its hash is sent";
    EXPECT_EQ(Run({"submit", path, "--data", secret}).code, kSuccess) << data;
    EXPECT_EQ(Run({"submit", path, "--data", folder_}).code, kSuccess) << data;
    EXPECT_EQ(Run({"submit", path, "--set", "task.documents.dataset=" + secret}).code, kSuccess);
    asked = 0;
  }
}

TEST_F(SubmitTest, FollowsNoLinkOutOfATokenizersFolder) {
  answers_.dataset = [](const v1::GetDatasetRequest&, v1::Dataset* dataset) {
    dataset->set_name("datasets/tokenizer");
    return absl::OkStatus();
  };
  const std::string tokenizer = folder_ + "/tokenizer";
  std::filesystem::copy(absl::StrCat(ABLATE_EXAMPLES_DATA, "/shakespeare-bpe"), tokenizer);
  const std::string set = "task.documents.tokenizer=" + tokenizer;
  const std::string path = Reading("datasets/names");
  EXPECT_EQ(Run({"submit", path, "--set", set}).code, kSuccess);
  std::filesystem::rename(tokenizer + "/vocab.json", folder_ + "/secret");
  std::filesystem::create_symlink(folder_ + "/secret", tokenizer + "/vocab.json");
  const Outcome outcome = Run({"submit", path, "--set", set});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_THAT(outcome.err, HasSubstr("--set task.documents.tokenizer: " + folder_ +
                                     "/secret is outside the folder"));
  EXPECT_EQ(Run({"submit", path, "--set", set, "--data", folder_}).code, kSuccess);
}

TEST_F(SubmitTest, ShowsATerminalWhatItMustNotObey) {
  answers_.create = [](const v1::CreateExperimentRequest&, v1::CreateExperimentResponse* response) {
    response->mutable_experiment()->set_name("experiments/small\x1b[2J\u202e");
    return absl::OkStatus();
  };
  for (const bool terminal : {false, true}) {
    console_.out_is_terminal = terminal;
    EXPECT_THAT(Run({"submit", "-"}, kFile).out, StartsWith("small\\x1b[2J\\u202e   "));
  }
}

TEST_F(SubmitTest, RefusesATagThatIsAnOption) {
  const Outcome outcome = Run({"submit", "-", "--tag=--fresh"}, kFile);
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_EQ(outcome.err,
            "error: ablate submit: --tag: \"--fresh\" begins with '-', as options do; expected a "
            "tag that begins with another character\n");
}

TEST_F(SubmitTest, UploadsPrivateDataForAPrivateExperiment) {
  Write("names.txt", "anna\n");
  const std::string path = Reading("./names.txt");
  std::vector<bool> privacy;
  answers_.dataset = [&](const v1::GetDatasetRequest& request, v1::Dataset*) {
    privacy.push_back(request.private_());
    return absl::NotFoundError("no such data set");
  };
  answers_.upload = [&](const std::vector<v1::UploadDatasetRequest>& messages,
                        v1::Dataset* dataset) {
    privacy.push_back(messages[0].private_());
    dataset->set_name("datasets/names-p12345");
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"submit", path, "--private"}).code, kSuccess);
  EXPECT_EQ(Run({"submit", path, "--dry-run"}).code, kSuccess);
  EXPECT_THAT(privacy, ElementsAre(true, true, false, true, false));
  ASSERT_EQ(requests_.size(), 2u);
  EXPECT_TRUE(requests_[0].private_());
  EXPECT_FALSE(requests_[1].private_());
}

TEST_F(SubmitTest, PublishesNoDataThatIsPrivate) {
  Write("names.txt", "anna\n");
  const std::string path = Reading("./names.txt");
  answers_.dataset = [&](const v1::GetDatasetRequest& request, v1::Dataset* dataset) {
    if (!request.private_()) return absl::NotFoundError("no such data set");
    dataset->set_name("datasets/names-p12345");
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"submit", path}).code, kSuccess) << "which our server refuses";
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(requests_[0].spec().base().task().documents().dataset(), "datasets/names-p12345");
}

TEST_F(SubmitTest, PutsAMissingDataSetAtItsLine) {
  Write("names.txt", "a\n");
  const std::string path = Reading("nmes.txt");
  const Outcome outcome = Run({"submit", path});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err, path + ":3:22: base.task.documents.dataset: no file " + folder_ +
                             "/nmes.txt; did you mean names.txt?\n"
                             "error: 1 problem; nothing was created\n");
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_TRUE(requests_[0].validate_only());
}

TEST_F(SubmitTest, PutsWhatTheServerFindsBesideADataSetThatCantBeRead) {
  FindProblems({{"base.task.documents.dataset", "dataset: by the server"},
                {"report.primary", "report.primary: by the server"}});
  const Outcome outcome = Run({"submit", "-"},
                              "name: small\nbase:\n  task: {documents: {dataset: ./none.txt}}\n"
                              "report: {primary: eval/los}\n");
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("none.txt"), HasSubstr("report.primary: by the server"),
                                 Not(HasSubstr("dataset: by the server")),
                                 HasSubstr("2 problems; nothing was created")));
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_TRUE(requests_[0].validate_only());
  EXPECT_EQ(requests_[0].request_id(), "");
}

TEST_F(SubmitTest, RefusesAFolderAsADataSet) {
  const std::string path = Reading("./");
  EXPECT_THAT(Run({"submit", path}).err, StartsWith(path + ":3:22: base.task.documents.dataset: " +
                                                    folder_ + "/ is a folder without vocab.json"));
}

}  // namespace
}  // namespace ablate::client
