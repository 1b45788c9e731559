// Tests `edit`, and what `ls` and `show` print of it, against a server of the test's own.
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class EditTest : public ClientTest {
 protected:
  EditTest() {
    answers_.get = [](const v1::GetExperimentRequest& request, v1::Experiment* experiment) {
      if (request.name() == "experiments/x") return absl::NotFoundError("no experiment \"x\"");
      *experiment = Annotated(request.name() + "-1a2b");
      return absl::OkStatus();
    };
    answers_.update = [this](const v1::UpdateExperimentRequest& request,
                             v1::Experiment* experiment) {
      requests_.push_back(request);
      experiment->set_name(request.name());
      return absl::OkStatus();
    };
    answers_.list = [this](const v1::ListExperimentsRequest& request,
                           v1::ListExperimentsResponse* response) {
      listed_ = request;
      *response->add_experiments() = Annotated("experiments/small-1a2b");
      return absl::OkStatus();
    };
    answers_.runs = [](const v1::ListRunsRequest&, v1::ListRunsResponse*) {
      return absl::OkStatus();
    };
    StartServer();
  }

  static v1::Experiment Annotated(const std::string& name) {
    v1::Experiment experiment;
    experiment.set_name(name);
    experiment.mutable_spec()->set_name("baseline");
    experiment.add_tags("lr");
    experiment.add_tags("paper");
    experiment.set_note("figure 2\x1b[2J");
    experiment.set_archived(true);
    experiment.set_extends("experiments/small-0000");
    experiment.add_changes("seeds=8");
    return experiment;
  }

  std::vector<v1::UpdateExperimentRequest> requests_;
  v1::ListExperimentsRequest listed_;
};

TEST_F(EditTest, PassesChangesOn) {
  const Outcome outcome = Run({"edit", "small", "--rename", "old", "--tag", "a", "--tag", "b",
                               "--untag", "lr", "--note", "text", "--archive"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(outcome.err, "changed small-1a2b\n");
  ASSERT_EQ(requests_.size(), 1u);
  const v1::UpdateExperimentRequest& request = requests_[0];
  EXPECT_EQ(request.name(), "experiments/small-1a2b");
  EXPECT_EQ(request.new_name(), "old");
  EXPECT_THAT(request.add_tags(), ElementsAre("a", "b"));
  EXPECT_THAT(request.remove_tags(), ElementsAre("lr"));
  EXPECT_EQ(request.note(), "text");
  EXPECT_TRUE(request.archived());
}

TEST_F(EditTest, LeavesTheRestAsItIs) {
  EXPECT_EQ(Run({"edit", "a", "b", "--restore"}).code, kSuccess);
  EXPECT_EQ(Run({"edit", "a", "--no-note"}).code, kSuccess);
  ASSERT_EQ(requests_.size(), 3u);
  EXPECT_TRUE(requests_[0].has_archived());
  EXPECT_FALSE(requests_[0].archived());
  EXPECT_FALSE(requests_[0].has_note());
  EXPECT_EQ(requests_[1].name(), "experiments/b-1a2b");
  EXPECT_TRUE(requests_[2].has_note());
  EXPECT_EQ(requests_[2].note(), "");
  EXPECT_FALSE(requests_[2].has_archived());
}

TEST_F(EditTest, ChangesNothingIfOneIsMissing) {
  const Outcome outcome = Run({"edit", "b", "x", "--tag", "t"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_THAT(outcome.err, HasSubstr("no experiment \"x\""));
  EXPECT_THAT(requests_, IsEmpty());
}

TEST_F(EditTest, AddsNoTagThatIsAnOption) {
  const Outcome outcome = Run({"edit", "small", "--tag=--archive"});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--tag: \"--archive\" begins with '-', as options do"));
  EXPECT_EQ(Run({"edit", "small", "--tag", "a-b"}).code, kSuccess);
}

TEST_F(EditTest, ChangesNothingWhenATagToRemoveIsMissing) {
  const Outcome outcome = Run({"edit", "b", "--tag", "t", "--untag", "papr"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err,
            "error: --untag: b-1a2b has no tag \"papr\"; did you mean paper?; expected lr or "
            "paper\n");
  EXPECT_THAT(requests_, IsEmpty());
}

TEST_F(EditTest, RefusesWhatDoesntGoTogether) {
  const auto error = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "edit");
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, kUsage);
    return outcome.err;
  };
  EXPECT_THAT(error({"a"}), HasSubstr("ablate edit: nothing is to be changed; give --rename,"));
  EXPECT_THAT(error({"a", "--archive", "--restore"}), HasSubstr("exclude each other"));
  EXPECT_THAT(error({"a", "--note", "t", "--no-note"}), HasSubstr("exclude each other"));
  EXPECT_THAT(error({"a", "b", "--rename", "c"}),
              HasSubstr("--rename takes one experiment; 2 are"));
  EXPECT_THAT(requests_, IsEmpty());
}

TEST_F(EditTest, NamesOptionsInErrorsOfTheServer) {
  const std::pair<const char*, const char*> cases[] = {
      {"new_name: \"A b\" isn't valid; expected letters",
       "--rename: \"A b\" isn't valid; expected letters"},
      {"2 problems: remove_tags[10]: \"new_name: \" can't be a tag; expected x; note: too long",
       "2 problems: --untag: \"new_name: \" can't be a tag; expected x; --note: too long"},
      {"add_tags: 21 tags; expected at most 20", "--tag: 21 tags; expected at most 20"},
      {"the request is malformed", "the request is malformed"}};
  for (const auto& [message, shown] : cases) {
    answers_.update = [text = std::string(message)](const v1::UpdateExperimentRequest&,
                                                    v1::Experiment*) {
      return absl::InvalidArgumentError(text);
    };
    const Outcome outcome = Run({"edit", "a", "--tag", "b"});
    EXPECT_EQ(outcome.code, kFailure);
    EXPECT_EQ(outcome.err, absl::StrCat("error: ", shown, "\n"));
  }
}

TEST_F(EditTest, IsListed) {
  const Outcome outcome = Run({"ls", "--tag", "lr", "--archived"});
  EXPECT_EQ(listed_.tag(), "lr");
  EXPECT_TRUE(listed_.archived());
  EXPECT_THAT(outcome.out, HasSubstr("small-1a2b = baseline (archived)"));
  EXPECT_THAT(outcome.out, HasSubstr("lr, paper  seeds=8"));
}

TEST_F(EditTest, IsListedByAllOfSeveralTags) {
  answers_.list = [this](const v1::ListExperimentsRequest& request,
                         v1::ListExperimentsResponse* response) {
    listed_ = request;
    for (const char* id : {"a", "b", "c"}) {
      *response->add_experiments() = Annotated(absl::StrCat("experiments/", id, "-1"));
    }
    response->mutable_experiments(1)->clear_tags();
    return absl::OkStatus();
  };
  const Outcome both = Run({"ls", "--tag", "paper", "--tag", "lr"});
  EXPECT_EQ(listed_.tag(), "paper");
  EXPECT_THAT(both.out, AllOf(HasSubstr("a-1"), HasSubstr("c-1"), Not(HasSubstr("b-1"))));
  EXPECT_EQ(both.err, "");
  const Outcome one = Run({"ls", "--tag", "paper", "--tag", "lr", "-n", "1"});
  EXPECT_THAT(one.out, AllOf(HasSubstr("a-1"), Not(HasSubstr("c-1"))));
  EXPECT_EQ(one.err, "note: more experiments exist; --limit 0 lists all\n");
  EXPECT_EQ(Run({"ls", "--tag", "paper", "--tag", "x"}).err,
            "no experiment has the tag paper and the tag x; --archived lists archived ones, too\n");
  EXPECT_EQ(Run({"ls", "--tag", "x", "--tag", "y", "--archived"}).err,
            "no experiment has the tag x and the tag y\n");
}

TEST_F(EditTest, IsShown) {
  const Outcome outcome = Run({"show", "small"});
  EXPECT_THAT(outcome.out, HasSubstr("name: baseline\nextends: small-0000\nchanged: seeds=8\n"
                                     "tags: lr, paper\nnote: figure 2"));
  EXPECT_THAT(outcome.out, HasSubstr("archived: yes\n"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("extended by")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b")));
}

TEST_F(EditTest, ShowsTheExtensionOfAnArchivedExperiment) {
  answers_.sql = [this](const v1::SqlRequest& request,
                        const std::function<bool(const v1::SqlRows&)>& write) {
    asked_.push_back(request.statement());
    v1::SqlRows rows;
    rows.add_rows()->add_values()->set_text("small-9z9z");
    write(rows);
    return absl::OkStatus();
  };
  EXPECT_THAT(Run({"show", "small"}).out,
              HasSubstr("extends: small-0000\nextended by: small-9z9z\n"));
  EXPECT_THAT(asked_, ElementsAre("SELECT experiment FROM experiments WHERE extends = "
                                  "'small-1a2b'"));
}

}  // namespace
}  // namespace ablate::client
