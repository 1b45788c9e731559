// Tests lists of runs by filter, order and columns, over all experiments.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/sqlite/connection.h"
#include "tests/service/sharing_fixture.h"

namespace ablate::service {
namespace {

using storage::Role;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

v1::ListRunsRequest RunsBy(const std::string& filter, const std::string& order = "",
                           const std::string& experiment = "experiments/-") {
  v1::ListRunsRequest request;
  request.set_experiment(experiment);
  request.set_filter(filter);
  request.set_order_by(order);
  return request;
}

// Experiments "one" and "two" of four cells each: pre and post × two seeds, at 10 and 20 steps.
// Cells of "one" have the eval/loss 1, 2, 3 and 4; those of "two" have none.
class RunFiltersTest : public ServiceTest {
 protected:
  RunFiltersTest() {
    one_ = Create(SmallSpec(2, "one", 10)).experiment().name();
    {
      const auto worker = MakeWorker();
      for (int i = 0; i < 4; ++i) {
        const FakeWorker::Leased run = worker->NextRun();
        worker->Started(run);
        const double loss =
            run.run.spec().seed() + 1. +
            (run.run.spec().spec().model().norm().placement() == v1::NormPlacement::post ? 2 : 0);
        worker->Points(run, {{"eval/loss", {0, 10}, {9, loss}}, {"eval/accuracy", {10}, {loss}}},
                       10);
        worker->Finished(run, 10);
        worker->Settle();
      }
    }
    two_ = Create(SmallSpec(2, "two", 20)).experiment().name();
  }

  v1::ListRunsResponse List(const v1::ListRunsRequest& request) {
    return AnswerOf(*runs_, &v1::Runs::Stub::ListRuns, request);
  }
  // Returns the cells of a list as one/pre-s0.
  std::vector<std::string> Cells(const std::string& filter, const std::string& order = "",
                                 const std::string& experiment = "experiments/-") {
    std::vector<std::string> cells;
    const v1::ListRunsResponse runs = List(RunsBy(filter, order, experiment));
    for (const v1::RunRow& row : runs.rows()) {
      cells.push_back(absl::StrCat(row.experiment() == one_ ? "one/" : "two/", row.cell()));
    }
    return cells;
  }
  // Returns the message and the field of an error.
  std::string Refusal(const v1::ListRunsRequest& request) {
    const grpc::Status status = StatusOf(*runs_, &v1::Runs::Stub::ListRuns, request);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << request.DebugString();
    return absl::StrCat(FieldOf(status), "| ", status.error_message());
  }
  std::string Refusal(const std::string& filter) { return Refusal(RunsBy(filter)); }

  std::string one_, two_;
};

TEST_F(RunFiltersTest, FindsThePartsOfAnExperiment) {
  v1::ListRunsRequest request;
  request.set_experiment("one");
  const auto cells = [&](const std::string& part) {
    request.set_part(part);
    std::vector<std::string> found;
    request.clear_page_token();
    do {
      const v1::ListRunsResponse runs = List(request);
      for (const v1::RunRow& row : runs.rows()) found.push_back(row.cell());
      request.set_page_token(runs.next_page_token());
    } while (!request.page_token().empty());
    return found;
  };
  EXPECT_THAT(cells("post-s1"), ElementsAre("post-s1"));
  EXPECT_THAT(cells("post"), ElementsAre("post-s0", "post-s1"));
  EXPECT_THAT(cells("@best"), ElementsAre("pre-s0")) << "the lowest eval/loss";
  EXPECT_THAT(cells("@chosen"), ElementsAre("pre-s0", "pre-s1", "post-s0", "post-s1"))
      << "nothing is tuned";
  request.set_page_size(1);
  EXPECT_THAT(cells("post"), ElementsAre("post-s0", "post-s1")) << "page by page";
}

TEST_F(RunFiltersTest, RefusesPartsThatAreNotThere) {
  v1::ListRunsRequest request;
  request.set_experiment("one");
  request.set_part("pots");
  EXPECT_THAT(Refusal(request),
              AllOf(HasSubstr("part| "), HasSubstr("\"pots\" isn't a cell or setting of "),
                    HasSubstr("did you mean post?"), HasSubstr("a cell, or one of pre and post")));
  request.set_part("@bets");
  EXPECT_THAT(Refusal(request), HasSubstr("expected @best or @chosen, or a cell or a setting"));
  request.set_part("post");
  request.set_filter("seed = 1");
  EXPECT_THAT(Refusal(request), HasSubstr("has no filter, order or columns"));
  request.clear_filter();
  request.set_experiment("experiments/-");
  EXPECT_THAT(Refusal(request), HasSubstr("expected one experiment"));
  request.set_experiment("two");
  request.set_part("@best");
  const grpc::Status none = StatusOf(*runs_, &v1::Runs::Stub::ListRuns, request);
  EXPECT_EQ(none.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(none.error_message(), HasSubstr("is done and has eval/loss"));
}

TEST_F(RunFiltersTest, FindsCellsOfAllExperiments) {
  EXPECT_THAT(Cells(""), SizeIs(8));
  EXPECT_THAT(Cells("seed = 1"),
              ElementsAre("two/pre-s1", "two/post-s1", "one/pre-s1", "one/post-s1"))
      << "the newest experiment is first";
  EXPECT_THAT(Cells("model.norm.placement = post AND training.steps <= 10"),
              ElementsAre("one/post-s0", "one/post-s1"));
  EXPECT_THAT(Cells("model.bias = true AND seed = 0"), SizeIs(4)) << "a default";
  EXPECT_THAT(Cells("training.learning_rate:* AND seed = 0"), SizeIs(4));
  EXPECT_THAT(Cells("placement = pre AND experiment = two"),
              ElementsAre("two/pre-s0", "two/pre-s1"));
  EXPECT_THAT(Cells(absl::StrCat("experiment = ", one_, " AND seed = 0")),
              ElementsAre("one/pre-s0", "one/post-s0"));
  EXPECT_THAT(Cells("axis(placement):OST AND NOT state = DONE"),
              ElementsAre("two/post-s0", "two/post-s1"));
  EXPECT_THAT(Cells("eval/loss < 2.5"), ElementsAre("one/pre-s0", "one/pre-s1"));
  EXPECT_THAT(Cells("max(eval/loss) = 9 AND min(eval/loss) > 3"), ElementsAre("one/post-s1"));
  EXPECT_THAT(Cells("best(eval/accuracy) >= 4 OR best(eval/loss) <= 1"),
              ElementsAre("one/pre-s0", "one/post-s1"));
  EXPECT_THAT(Cells("NOT eval/loss:* AND seed = 0"), ElementsAre("two/pre-s0", "two/post-s0"));
  EXPECT_THAT(Cells("ended > -1h AND created > 2020-01-01 AND seed = 0"),
              ElementsAre("one/pre-s0", "one/post-s0"));
  EXPECT_THAT(Cells("created < 2020-01-01T00:00:00Z"), IsEmpty());
  EXPECT_THAT(Cells("owner != nobody AND parameters > 1 AND seed = 1 AND placement = pre"),
              SizeIs(2));
  EXPECT_THAT(Cells("seed = 0", "", two_), ElementsAre("two/pre-s0", "two/post-s0"));
}

TEST_F(RunFiltersTest, FindsTags) {
  v1::UpdateExperimentRequest update;
  update.set_name(one_);
  update.add_add_tags("paper");
  update.add_add_tags("lr");
  AnswerOf(*experiments_, &v1::Experiments::Stub::UpdateExperiment, update);
  EXPECT_THAT(Cells("tags:paper AND seed = 0"), ElementsAre("one/pre-s0", "one/post-s0"));
  EXPECT_THAT(Cells("tags:pap"), IsEmpty()) << "a part of a tag";
  EXPECT_THAT(Cells("tags:* AND seed = 0"), ElementsAre("one/pre-s0", "one/post-s0"));
  EXPECT_THAT(Cells("NOT tags:lr AND seed = 0"), ElementsAre("two/pre-s0", "two/post-s0"));
  EXPECT_THAT(Refusal("tags = paper"), HasSubstr("expected ':', as in tags:paper"));
  v1::ListRunsRequest request = RunsBy("seed = 0");
  request.add_columns("tags");
  const v1::ListRunsResponse runs = List(request);
  EXPECT_EQ(runs.rows(3).values(0).string_value(), "lr paper");
  EXPECT_EQ(runs.rows(0).values(0).kind_case(), google::protobuf::Value::kNullValue);
}

TEST_F(RunFiltersTest, ComparesLabelsThatArentNumbersAsTexts) {
  v1::ExperimentSpec spec = SmallSpec(1, "three", 30);
  v1::Axis& clip = *spec.mutable_axes(0);
  clip.set_name("clip");
  clip.mutable_settings(0)->set_label("1e5");
  clip.mutable_settings(1)->set_label("inf");
  v1::Setting& third = *clip.add_settings();
  third.set_label("no");
  (*third.mutable_set())["model.layers"].set_number_value(2);
  Create(spec);
  EXPECT_THAT(Cells("clip != 1e5"), ElementsAre("two/inf-s0", "two/no-s0"));
  EXPECT_THAT(Cells("clip = 100000"), ElementsAre("two/1e5-s0"));
  EXPECT_THAT(Cells("clip = inf"), ElementsAre("two/inf-s0"));
  EXPECT_THAT(Cells("clip != inf"), ElementsAre("two/1e5-s0", "two/no-s0"));
}

TEST_F(RunFiltersTest, SortsWithMissingValuesLast) {
  EXPECT_THAT(Cells("seed = 0 OR eval/loss = 4", "-eval/loss"),
              ElementsAre("one/post-s1", "one/post-s0", "one/pre-s0", "two/pre-s0", "two/post-s0"));
  EXPECT_THAT(Cells("seed = 0", "eval/loss"),
              ElementsAre("one/pre-s0", "one/post-s0", "two/pre-s0", "two/post-s0"));
  EXPECT_THAT(Cells("experiment = one AND seed = 0", "eval/accuracy best"),
              ElementsAre("one/post-s0", "one/pre-s0"));
  EXPECT_THAT(Cells("seed = 0", "placement desc"),
              ElementsAre("two/pre-s0", "one/pre-s0", "two/post-s0", "one/post-s0"));
}

TEST_F(RunFiltersTest, ShowsColumns) {
  v1::ListRunsRequest request = RunsBy("placement = pre AND seed = 1", "eval/loss");
  for (const char* name : {"training.steps", "model.norm.placement", "eval/loss", "min(eval/loss)",
                           "state", "ended", "experiment", "training.betas"}) {
    request.add_columns(name);
  }
  const v1::ListRunsResponse runs = List(request);
  ASSERT_THAT(runs.rows(), SizeIs(2));
  const v1::RunRow& done = runs.rows(0);
  ASSERT_THAT(done.values(), SizeIs(8));
  EXPECT_EQ(done.values(0).number_value(), 10);
  EXPECT_EQ(done.values(1).string_value(), "pre");
  EXPECT_EQ(done.values(2).number_value(), 2);
  EXPECT_EQ(done.values(3).number_value(), 2);
  EXPECT_EQ(done.values(4).string_value(), "DONE");
  EXPECT_THAT(done.values(5).string_value(), HasSubstr("T"));
  EXPECT_EQ(done.values(6).string_value(), "one");
  EXPECT_THAT(done.values(7).string_value(), HasSubstr(", "));
  EXPECT_TRUE(runs.rows(1).values(2).has_null_value());
  EXPECT_TRUE(runs.rows(1).values(5).has_null_value());
}

TEST_F(RunFiltersTest, PagesInOrder) {
  v1::ListRunsRequest request = RunsBy("seed >= 0 AND created > -1d", "eval/loss");
  request.set_page_size(3);
  std::vector<std::string> cells;
  do {
    const v1::ListRunsResponse page = List(request);
    EXPECT_LE(page.rows_size(), 3);
    for (const v1::RunRow& row : page.rows()) {
      cells.push_back(absl::StrCat(row.experiment() == one_ ? "one/" : "two/", row.cell()));
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(cells, Cells("", "eval/loss"));
  request.set_page_token("");
  const std::string token = List(request).next_page_token();
  request.set_page_token(token);
  request.set_filter("seed >= 1");
  EXPECT_THAT(Refusal(request), HasSubstr("page_token| ")) << "of another filter";
  request.set_filter("seed >= 0 AND created > -1d");
  request.set_page_token(token.substr(0, token.size() / 2));
  EXPECT_THAT(Refusal(request), HasSubstr("page_token| "));
}

TEST_F(RunFiltersTest, FindsDataSetsByFileNameAndId) {
  const std::string first = Upload("names.txt", "ann\nbob\n").name();
  const std::string second = Upload("names.txt", "cid\ndan\n").name();
  const std::string other = Upload("towns.txt", "rom\nulm\n").name();
  for (const std::string& dataset : {first, second, other}) Create(DocumentsSpec(dataset, 4));
  const auto found = [this](const std::string& filter) { return Cells(filter).size(); };
  EXPECT_EQ(found("task.documents.dataset = names.txt"), 2u);
  EXPECT_EQ(found("task.documents.dataset = datasets/names.txt"), 2u);
  EXPECT_EQ(found("task.documents.dataset != names.txt"), 1u);
  EXPECT_EQ(found("NOT task.documents.dataset = names.txt"), 9u) << "with other tasks";
  EXPECT_EQ(found("task.documents.dataset = " + first.substr(9)), 1u);
  EXPECT_EQ(found("task.documents.dataset = " + first), 1u);
  EXPECT_EQ(found("task.documents.dataset = nobody.txt"), 0u);
  EXPECT_EQ(found("task.documents.dataset:names"), 2u);
}

TEST_F(RunFiltersTest, ExplainsWhatIsWrongWithAName) {
  EXPECT_THAT(Refusal("seed = 1 AND"),
              HasSubstr("filter| filter: column 13: the text ends too early; expected a name"));
  EXPECT_THAT(Refusal("model.norm.placment = pre"),
              HasSubstr("column 1: unknown name \"model.norm.placment\"; did you mean "
                        "model.norm.placement?"));
  EXPECT_THAT(Refusal("a = 1 AND placemen = pre"), HasSubstr("column 1: unknown name \"a\""));
  EXPECT_THAT(Refusal("placemen = pre"), HasSubstr("did you mean placement?"));
  EXPECT_THAT(Refusal("stat = done"), HasSubstr("did you mean state?"));
  EXPECT_THAT(Refusal("training.lr = 1"), HasSubstr("did you mean training.learning_rate?"));
  EXPECT_THAT(Refusal("n_layer = 1"), HasSubstr("did you mean model.layers?"));
  EXPECT_THAT(Refusal("eps = 1"), HasSubstr("did you mean model.norm.eps or training.eps?"));
  EXPECT_THAT(Refusal("norm = rms"), Not(HasSubstr("mean model.norm?"))) << "has no value";
  EXPECT_THAT(Refusal("eval/los < 1"),
              HasSubstr("no run has the metric \"eval/los\"; did you mean eval/loss?"));
  EXPECT_THAT(Refusal("evalloss < 3"),
              HasSubstr("unknown name \"evalloss\"; did you mean eval/loss?"));
  EXPECT_THAT(Refusal("eval/loss < 1e-400"), HasSubstr("\"1e-400\" isn't a number"));
  EXPECT_THAT(Refusal("mean(eval/loss) < 1"),
              HasSubstr("\"mean\" isn't a function; expected axis, last, min, max or best"));
  EXPECT_THAT(Refusal("axis(lr) = 1"), HasSubstr("no experiment has the axis \"lr\""));
  EXPECT_THAT(Refusal("best(train/gradient_norm) < 1"),
              HasSubstr("neither direction of \"train/gradient_norm\" is better"));
}

TEST_F(RunFiltersTest, ExplainsWhatIsWrongWithAValue) {
  EXPECT_THAT(Refusal("training.steps = many"),
              HasSubstr("column 18: \"many\" isn't a number; expected a number for "
                        "training.steps"));
  EXPECT_THAT(Refusal("eval/loss < nan"), HasSubstr("\"nan\" isn't a number"));
  EXPECT_THAT(Refusal("seed = 1e999"), HasSubstr("isn't a number"));
  EXPECT_THAT(Refusal("eval/loss:1"), HasSubstr("':' looks for a part of a text"));
  EXPECT_THAT(Refusal("model.norm.placement = prex"),
              HasSubstr("\"prex\" isn't a value of model.norm.placement; did you mean pre?"));
  EXPECT_THAT(Refusal("model.norm.placement > pre"),
              HasSubstr("'>' needs a number or a time, which model.norm.placement isn't"));
  EXPECT_THAT(Refusal("placement = pots"),
              HasSubstr("column 13: \"pots\" isn't a value of placement; did you mean post?; "
                        "expected post or pre"));
  EXPECT_THAT(Cells("placement:pots"), IsEmpty()) << "a part of a label";
  EXPECT_THAT(Refusal("model.bias = yes"), HasSubstr("expected true or false"));
  EXPECT_THAT(Refusal("state = don"), HasSubstr("\"don\" isn't a state; did you mean DONE?"));
  EXPECT_THAT(Refusal("state < done"), HasSubstr("'<' needs a number"));
  EXPECT_THAT(Refusal("placement < pre"), HasSubstr("\"pre\" isn't a number"));
  EXPECT_THAT(
      Refusal("owner > a"),
      HasSubstr("column 7: '>' needs a number or a time, which owner isn't; expected =, != or :"));
  EXPECT_THAT(Refusal("created > yesterday"), HasSubstr("isn't a time; expected 2026-11-26"));
  EXPECT_THAT(Refusal("created = 2026-11-26"),
              HasSubstr("column 9: '=' would compare created with one microsecond; expected < <= > "
                        "or >="));
  EXPECT_THAT(Refusal("ended:2026"), HasSubstr("expected * after ':', or < <= > or >="));
  EXPECT_THAT(Refusal("created > -2y"), HasSubstr("isn't a time"));
  EXPECT_THAT(Refusal("created > -99999999999d"), HasSubstr("isn't a time"));
  EXPECT_THAT(Refusal(RunsBy("", "eval/loss, seed")), HasSubstr("order_by| order_by: column 10"));
  EXPECT_THAT(Refusal(RunsBy("", "training.betas")), HasSubstr("training.betas is a list"));
  EXPECT_THAT(Refusal(RunsBy("", "seed best")), HasSubstr("neither direction of seed is better"));
  EXPECT_THAT(Cells("seed = 0 AND state = done AND owner:* AND placement = pre AND eval/loss < 2 "
                    "AND min(eval/loss) < 2 AND max(eval/loss) > 2 AND ended:* AND seed < 1"),
              ElementsAre("one/pre-s0"));
  EXPECT_THAT(Refusal("seed = 0 AND state = done AND owner:* AND placement = pre AND eval/loss < 2 "
                      "AND min(eval/loss) < 2 AND max(eval/loss) > 2 AND ended:* AND started:*"),
              HasSubstr("filter| filter: it has 9 different names; expected at most 8"));
  v1::ListRunsRequest request = RunsBy("");
  request.add_columns("seed");
  request.add_columns("sed");
  EXPECT_THAT(Refusal(request), HasSubstr("columns[1]| "));
  for (int i = 0; i < 50; ++i) request.add_columns("seed");
  EXPECT_THAT(Refusal(request), HasSubstr("columns| "));
}

TEST_F(RunFiltersTest, FindsRunsOfAnOlderStoreByTheirFields) {
  StopServer();
  {
    auto db = storage::Connection::OpenFile(folder() + "/ablate.db",
                                            storage::Connection::Access::kReadWrite);
    ASSERT_TRUE(db.ok());
    (*db)->Execute(
        "DELETE FROM cell_fields; DELETE FROM final_values; UPDATE cells SET variant = 0; UPDATE "
        "experiments SET described = 0");
    ASSERT_TRUE((*db)->error().ok());
  }
  Restart();
  while (!store().UndescribedExperiments()->empty()) std::this_thread::yield();
  EXPECT_THAT(Cells("model.norm.placement = post AND eval/loss = 3"), ElementsAre("one/post-s0"));
  EXPECT_THAT(Cells("placement = pre AND training.steps = 20"),
              ElementsAre("two/pre-s0", "two/pre-s1"));
}

class PrivateFiltersTest : public SharingTest {};

TEST_F(PrivateFiltersTest, NeitherFindNorSuggestWhatIsPrivateToOthers) {
  const std::string mia = SecretOf("mia", Role::kMember), bob = SecretOf("bob", Role::kMember);
  v1::CreateExperimentRequest create;
  *create.mutable_spec() = SmallSpec(1, "hidden");
  create.mutable_spec()->mutable_axes(0)->set_name("secretaxis");
  create.set_request_id("r");
  create.set_private_(true);
  ASSERT_TRUE(CallAs(mia, &v1::Experiments::Stub::CreateExperiment, create).ok());
  const auto list = [&](const std::string& as, const std::string& filter,
                        v1::ListRunsResponse* runs) {
    return CallAs(as, &v1::Runs::Stub::ListRuns, RunsBy(filter), runs);
  };
  v1::ListRunsResponse mias, bobs, all;
  ASSERT_TRUE(list(mia, "secretaxis = pre", &mias).ok());
  EXPECT_THAT(mias.rows(), SizeIs(1));
  ASSERT_TRUE(list(bob, "seed >= 0", &bobs).ok());
  EXPECT_THAT(bobs.rows(), IsEmpty());
  const grpc::Status unknown = list(bob, "secretaxi = pre", &bobs);
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(unknown.error_message(), testing::Not(HasSubstr("secretaxis")));
  EXPECT_EQ(list(bob, "secretaxis = pre", &bobs).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  ASSERT_TRUE(list(root_.token(), "secretaxis = pre", &all).ok()) << "an admin sees it";
  EXPECT_THAT(all.rows(), SizeIs(1));
}

}  // namespace
}  // namespace ablate::service
