// Experiments that repeat or extend stored ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <string>
#include <vector>

#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RelatedTest : public ServiceTest {
 protected:
  v1::CreateExperimentRequest Request(const v1::ExperimentSpec& spec) {
    v1::CreateExperimentRequest request;
    request.set_request_id(absl::StrCat("related-", ++requests_));
    *request.mutable_spec() = spec;
    return request;
  }
  v1::CreateExperimentRequest Repeating(const v1::ExperimentSpec& spec) {
    v1::CreateExperimentRequest request = Request(spec);
    request.set_find_identical(true);
    return request;
  }
  v1::CreateExperimentRequest Extending(const std::string& name, const v1::ExperimentSpec& spec) {
    v1::CreateExperimentRequest request = Request(spec);
    request.set_extends(name);
    return request;
  }
  v1::CreateExperimentResponse Answer(const v1::CreateExperimentRequest& request) {
    return AnswerOf(*experiments_, &v1::Experiments::Stub::CreateExperiment, request);
  }
  // Returns the field and the message of an error.
  std::string Refusal(const v1::CreateExperimentRequest& request) {
    const grpc::Status status = TryCreate(request);
    EXPECT_FALSE(status.ok());
    return absl::StrCat(FieldOf(status), "| ", status.error_message());
  }
  size_t Experiments() { return store().ListExperiments(storage::kServer, {}, "", 1'000)->size(); }

 private:
  int requests_ = 0;
};

TEST_F(RelatedTest, CreatesNothingThatIsThere) {
  v1::CreateExperimentRequest tagged = Request(SmallSpec());
  tagged.add_tags("paper");
  tagged.set_note("figure 2");
  const std::string first = Answer(tagged).experiment().name();
  v1::CreateExperimentRequest request = Repeating(SmallSpec());
  request.set_validate_only(true);
  const v1::CreateExperimentResponse preview = Answer(request);
  EXPECT_EQ(preview.identical_to(), first);
  EXPECT_THAT(preview.experiment().tags(), ElementsAre("paper"));
  EXPECT_EQ(preview.experiment().note(), "figure 2");
  request.set_validate_only(false);
  const v1::CreateExperimentResponse answer = Answer(request);
  EXPECT_EQ(answer.identical_to(), first);
  EXPECT_EQ(answer.experiment().name(), first);
  EXPECT_EQ(answer.cells_size(), 2);
  EXPECT_EQ(answer.reused(), 2u);
  EXPECT_EQ(Experiments(), 1u);
  EXPECT_EQ(Answer(Request(SmallSpec())).identical_to(), "") << "the caller didn't ask";
  EXPECT_EQ(Experiments(), 2u);
}

TEST_F(RelatedTest, CreatesOneOfEqualSubmissionsAtOnce) {
  std::vector<v1::CreateExperimentRequest> requests;
  for (int i = 0; i < 8; ++i) requests.push_back(Repeating(SmallSpec()));
  std::vector<std::future<std::string>> names;
  for (const auto& request : requests) {
    names.push_back(
        std::async(std::launch::async, [&] { return Answer(request).experiment().name(); }));
  }
  std::set<std::string> distinct;
  for (auto& name : names) distinct.insert(name.get());
  EXPECT_EQ(distinct.size(), 1u);
  EXPECT_EQ(Experiments(), 1u);
}

TEST_F(RelatedTest, CreatesWhatDiffersInAnyField) {
  Create(SmallSpec());
  v1::ExperimentSpec asked = SmallSpec();
  asked.set_question("Is it so?");
  EXPECT_EQ(Answer(Repeating(asked)).identical_to(), "");
  EXPECT_EQ(Answer(Repeating(SmallSpec(2))).identical_to(), "");
  EXPECT_EQ(Answer(Repeating(SmallSpec(1, "other"))).identical_to(), "");
  v1::CreateExperimentRequest request = Repeating(SmallSpec());
  request.set_private_(true);
  EXPECT_EQ(Answer(request).identical_to(), "");
  EXPECT_EQ(Experiments(), 5u);
}

TEST_F(RelatedTest, CreatesAgainWhatWasCancelled) {
  const std::string first = Create(SmallSpec()).experiment().name();
  Cancel(first);
  EXPECT_EQ(Answer(Repeating(SmallSpec())).identical_to(), "");
}

TEST_F(RelatedTest, CreatesAgainWhatHasANewerGeneration) {
  Create(SmallSpec());
  const std::string fresh = Create(SmallSpec(), /*fresh=*/true).experiment().name();
  EXPECT_EQ(Answer(Repeating(SmallSpec())).identical_to(), fresh);
}

TEST_F(RelatedTest, ExtendsBySeedsSettingsAndSteps) {
  const auto worker = MakeWorker();
  const std::string first = Create(SmallSpec()).experiment().name();
  TrainAll(worker.get(), 2);
  v1::ExperimentSpec spec = SmallSpec(3, "small", 20);
  v1::Setting* none = spec.mutable_axes(0)->add_settings();
  none->set_label("none");
  (*none->mutable_set())["model.norm.placement"].set_string_value("none");
  const v1::CreateExperimentResponse extended = Answer(Extending(first, spec));
  EXPECT_EQ(extended.cells_size(), 9);
  EXPECT_EQ(extended.experiment().extends(), first);
  EXPECT_FALSE(extended.experiment().archived());
  EXPECT_TRUE(Get(first).archived());
  EXPECT_EQ(Get(first).counts().done(), 2u) << "the extended experiment keeps its results";
}

TEST_F(RelatedTest, ExtendsByMoreSeedsWithoutTrainingAnew) {
  const auto worker = MakeWorker();
  const v1::CreateExperimentResponse first = Create(SmallSpec());
  TrainAll(worker.get(), 2);
  const v1::CreateExperimentResponse extended =
      Answer(Extending(first.experiment().name(), SmallSpec(2)));
  EXPECT_EQ(extended.reused(), 2u);
  EXPECT_EQ(extended.cells(0).run(), first.cells(0).run());
}

TEST_F(RelatedTest, KeepsWhatBelongsToAnExtendedExperiment) {
  const auto worker = MakeWorker();
  const std::string first = Create(SmallSpec()).experiment().name();
  TrainAll(worker.get(), 2);
  v1::CreateAnalysisRequest asked =
      FromText<v1::CreateAnalysisRequest>("analysis { spectrum {} } label: 'mine' subjects {}");
  asked.mutable_subjects(0)->set_experiment(first);
  asked.mutable_subjects(0)->set_cell("pre-s0");
  AnswerOf(*analyses_, &v1::Analyses::Stub::CreateAnalysis, asked);
  v1::UpdateExperimentRequest update;
  update.set_name(first);
  update.add_add_tags("old");
  update.set_note("figure 2");
  AnswerOf(*experiments_, &v1::Experiments::Stub::UpdateExperiment, update);
  v1::CreateExperimentRequest request = Extending(first, SmallSpec(2));
  request.add_tags("new");
  const v1::Experiment extended = Answer(request).experiment();
  EXPECT_THAT(extended.tags(), ElementsAre("new", "old"));
  EXPECT_EQ(extended.note(), "figure 2");
  asked.mutable_subjects(0)->set_experiment(extended.name());
  asked.mutable_analysis()->mutable_hessian();
  EXPECT_THAT(StatusOf(*analyses_, &v1::Analyses::Stub::CreateAnalysis, asked).error_message(),
              HasSubstr("label"))
      << "it is the spectrum's, also here";
}

TEST_F(RelatedTest, RefusesExtensionsThatLoseOrChangeCells) {
  const std::string first = Create(SmallSpec(2)).experiment().name();
  const std::string id = first.substr(first.find('/') + 1);
  EXPECT_EQ(Refusal(Extending(first, SmallSpec(1))),
            "extends| extends: 2 cells of " + id +
                " would be lost: pre-s1 and post-s1; expected every cell of it, by labels and "
                "seed: the old seeds and settings with the new ones");
  v1::ExperimentSpec wider = SmallSpec(2);
  wider.mutable_base()->mutable_model()->set_width(2 * std::max(wider.base().model().width(), 16u));
  EXPECT_THAT(Refusal(Extending(first, wider)),
              HasSubstr("4 cells of " + id +
                        " would be another training: pre-s0, pre-s1 and 2 more "
                        "(model.attention.head_size 16 instead of 4, "
                        "model.feed_forward.hidden 128 instead of 32 and model.width 32 "));
  EXPECT_THAT(Refusal(Extending(first, SmallSpec(2, "small", 5))), HasSubstr("another training"))
      << "fewer steps";
  v1::CreateExperimentRequest hidden = Extending(first, SmallSpec(3));
  hidden.set_private_(true);
  EXPECT_THAT(Refusal(hidden), HasSubstr(id + " is public"));
  v1::CreateExperimentRequest fresh = Extending(first, SmallSpec(3));
  fresh.set_fresh(true);
  EXPECT_THAT(Refusal(fresh), HasSubstr("fresh| "));
  EXPECT_THAT(Refusal(Extending("experiments/nothing", SmallSpec(3))),
              HasSubstr("there is no experiment \"nothing\""));
  EXPECT_FALSE(Get(first).archived()) << "nothing was done";
  EXPECT_EQ(Experiments(), 1u);
}

TEST_F(RelatedTest, KeepsWhatWasWrittenAboutAnExperiment) {
  v1::CreateExperimentRequest request = Request(SmallSpec());
  for (const char* tag : {"lr", "paper", "lr"}) request.add_tags(tag);
  request.set_note("figure 2");
  request.add_changes("seeds=8");
  (*request.mutable_overrides())["training.steps"].set_number_value(20);
  (*request.mutable_overrides())["model.layers"].set_number_value(1);
  const v1::Experiment experiment = Get(Answer(request).experiment().name());
  EXPECT_THAT(experiment.tags(), ElementsAre("lr", "paper"));
  EXPECT_EQ(experiment.note(), "figure 2");
  EXPECT_THAT(experiment.changes(), ElementsAre("seeds=8", "model.layers=1", "training.steps=20"));
}

TEST_F(RelatedTest, RefusesBadTagsNotesAndChanges) {
  v1::CreateExperimentRequest request = Request(SmallSpec());
  request.add_tags("a b");
  request.set_note("bell\a");
  request.add_changes("two\nlines");
  request.set_fresh(true);
  request.set_find_identical(true);
  const std::string refusal = Refusal(request);
  EXPECT_THAT(refusal, HasSubstr("tags[0]: \"a b\" can't be a tag; expected letters, digits and"));
  EXPECT_THAT(refusal, HasSubstr("note: \"bell\\x07\" has control characters"));
  EXPECT_THAT(refusal, HasSubstr("changes[0]: "));
  EXPECT_THAT(refusal, HasSubstr("fresh: every cell would be trained again"));
  EXPECT_EQ(Experiments(), 0u);
}

TEST_F(RelatedTest, RefusesExtensionsThatChangeWhatWasDeclared) {
  v1::ExperimentSpec spec = SmallSpec(1);
  spec.add_analyses()->mutable_spectrum();
  const std::string first = Create(spec).experiment().name();
  v1::ExperimentSpec extended = SmallSpec(2);
  *extended.mutable_analyses() = spec.analyses();
  v1::ExperimentSpec other = extended;
  other.mutable_axes(0)->mutable_settings()->SwapElements(0, 1);
  EXPECT_THAT(Refusal(Extending(first, other)),
              HasSubstr("its axes and their baselines would be placement (post); expected "
                        "placement (pre); --again makes"));
  other = extended;
  other.mutable_report()->set_primary("train/loss");
  EXPECT_THAT(Refusal(Extending(first, other)),
              HasSubstr("primary: train/loss}; expected {primary: eval/loss}, as declared"));
  other = extended;
  other.clear_analyses();
  EXPECT_THAT(Refusal(Extending(first, other)), HasSubstr("it would lose the analysis {spectrum:"));
  const std::string second = Answer(Extending(first, extended)).experiment().name();
  EXPECT_THAT(Refusal(Extending(first, extended)),
              HasSubstr("is extended by " + second.substr(second.find('/') + 1)));
  v1::ExperimentSpec third_spec = SmallSpec(3);
  *third_spec.mutable_analyses() = spec.analyses();
  const std::string third = Answer(Extending(second, third_spec)).experiment().name();
  for (const std::string& name : {first, second, third}) Cancel(name);
  EXPECT_TRUE(TryDelete(second).ok());
  EXPECT_EQ(Get(third).extends(), first);
  EXPECT_TRUE(Get(first).archived());
  EXPECT_TRUE(TryDelete(third).ok());
  EXPECT_FALSE(Get(first).archived()) << "it is the newest again";
}

class UpdateTest : public RelatedTest {
 protected:
  v1::Experiment Update(const std::string& name, const std::string& changes) {
    return AnswerOf(*experiments_, &v1::Experiments::Stub::UpdateExperiment,
                    Changed(name, changes));
  }
  grpc::Status Try(const std::string& name, const std::string& changes) {
    return StatusOf(*experiments_, &v1::Experiments::Stub::UpdateExperiment,
                    Changed(name, changes));
  }
  // Returns the names of a list.
  std::vector<std::string> Listed(const std::string& request = "") {
    const auto list = AnswerOf(*experiments_, &v1::Experiments::Stub::ListExperiments,
                               FromText<v1::ListExperimentsRequest>(request));
    std::vector<std::string> names;
    for (const v1::Experiment& one : list.experiments()) names.push_back(one.name());
    return names;
  }

 private:
  static v1::UpdateExperimentRequest Changed(const std::string& name, const std::string& changes) {
    auto request = FromText<v1::UpdateExperimentRequest>(changes);
    request.set_name(name);
    return request;
  }
};

TEST_F(UpdateTest, TagsAndAnnotates) {
  const std::string name = Create(SmallSpec()).experiment().name();
  const std::string other = Create(SmallSpec(2)).experiment().name();
  EXPECT_THAT(Update(name, "add_tags: ['paper', 'lr'] note: 'two\\nlines'").tags(),
              ElementsAre("lr", "paper"));
  const v1::Experiment changed = Update(name, "remove_tags: ['lr', 'none'] add_tags: 'paper'");
  EXPECT_THAT(changed.tags(), ElementsAre("paper"));
  EXPECT_EQ(changed.note(), "two\nlines");
  EXPECT_THAT(Listed("tag: 'paper'"), ElementsAre(name));
  EXPECT_THAT(Listed("tag: 'pap'"), IsEmpty()) << "a part of a tag";
  EXPECT_EQ(Update(name, "note: ''").note(), "");
}

TEST_F(UpdateTest, ArchivesAndRestores) {
  const std::string name = Create(SmallSpec()).experiment().name();
  const std::string other = Create(SmallSpec(2)).experiment().name();
  EXPECT_TRUE(Update(name, "archived: true").archived());
  EXPECT_THAT(Listed(), ElementsAre(other, name)) << "it is active";
  Cancel(name);
  EXPECT_THAT(Listed(), ElementsAre(other));
  EXPECT_THAT(Listed("archived: true"), ElementsAre(other, name));
  v1::ListRunsRequest all;
  all.set_experiment("experiments/-");
  const auto rows = [&] { return AnswerOf(*runs_, &v1::Runs::Stub::ListRuns, all).rows_size(); };
  EXPECT_EQ(rows(), 4);
  all.set_archived(true);
  EXPECT_EQ(rows(), 6);
  EXPECT_EQ(Rows(name).size(), 2u) << "a list of one";
  EXPECT_FALSE(Update(name, "archived: false").archived());
  EXPECT_THAT(Listed(), ElementsAre(other, name));
}

TEST_F(UpdateTest, RenamesButKeepsTheId) {
  const std::string name = Create(SmallSpec()).experiment().name();
  EXPECT_EQ(Update(name, "new_name: 'baseline'").spec().name(), "baseline");
  EXPECT_EQ(Get("baseline").name(), name);
  EXPECT_EQ(Get(name).spec().name(), "baseline");
  EXPECT_EQ(Get("small").name(), name) << "the ID begins with it";
  const std::string newer = Create(SmallSpec(2)).experiment().name();
  EXPECT_EQ(Get("small").name(), newer) << "the only one of that name";
}

TEST_F(UpdateTest, RefusesWhatIsInvalid) {
  const std::string name = Create(SmallSpec()).experiment().name();
  const auto message = [&](const std::string& changes) {
    return Try(name, changes).error_message();
  };
  EXPECT_THAT(message(""), HasSubstr("nothing is to be changed; expected new_name, add_tags,"));
  EXPECT_THAT(message("new_name: 'A b'"), HasSubstr("new_name: \"A b\" isn't a valid name"));
  EXPECT_THAT(message("add_tags: ''"), HasSubstr("add_tags[0]: missing"));
  EXPECT_EQ(message("add_tags: '--force'"),
            "add_tags[0]: \"--force\" begins with '-', as options do; expected a tag that begins "
            "with another character");
  EXPECT_EQ(message("remove_tags: '--force'"), "") << "an older server accepted it";
  EXPECT_THAT(message("note: '\\a'"), HasSubstr("note: "));
  std::string tags;
  for (int i = 0; i < 20; ++i) absl::StrAppend(&tags, "add_tags: 't", i, "' ");
  EXPECT_EQ(Update(name, tags).tags_size(), 20);
  EXPECT_THAT(message("add_tags: 'more'"), HasSubstr("21 tags; expected at most 20"));
  EXPECT_THAT(message("note: '" + std::string(2001, 'a') + "'"), HasSubstr("2,001 bytes"));
  EXPECT_EQ(Try("experiments/nothing", "archived: true").error_code(), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace ablate::service
