// Tests experiments that are submitted as texts: shorthands, data sets by path, and problems with
// their places.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/lookup/limits.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kText[] = R"(name: texts
base:
  task: {documents: {dataset: data/names.txt, held_out: 1}}
  model: {layers: 1, width: 8, heads: 2, context: 8}
  training: {steps: 10, batch: 1}
axes:
  - {field: training.learning_rate, values: {log: [1e-3, 1e-1], count: 3}}
seeds: 4..5
)";

class TextTest : public ServiceTest {
 protected:
  v1::CreateExperimentRequest Request(const std::string& text) {
    v1::CreateExperimentRequest request;
    request.set_request_id(std::to_string(++requests_));
    request.set_text(text);
    (*request.mutable_files())["data/names.txt"] = names_;
    return request;
  }

  v1::CreateExperimentResponse Validate(v1::CreateExperimentRequest request) {
    request.set_validate_only(true);
    v1::CreateExperimentResponse response;
    const grpc::Status status = TryCreate(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  // Returns the problems as LINE:COLUMN FIELD.
  std::vector<std::string> Problems(const v1::CreateExperimentRequest& request) {
    std::vector<std::string> problems;
    const v1::CreateExperimentResponse checked = Validate(request);
    for (const v1::Problem& problem : checked.problems()) {
      problems.push_back(absl::StrCat(problem.line(), ":", problem.column(), " ", problem.field()));
    }
    return problems;
  }

  const std::string names_ = Upload("names.txt", "anna\nbert\ncleo\n").name();

 private:
  int requests_ = 0;
};

TEST_F(TextTest, StandsForTheSpec) {
  v1::CreateExperimentRequest request = Request(kText);
  v1::CreateExperimentResponse created;
  ASSERT_TRUE(TryCreate(request, &created).ok());
  EXPECT_THAT(created.cells(), SizeIs(6));
  EXPECT_EQ(created.cells(2).name(), "learning_rate0.01-s4");
  const v1::ExperimentSpec& spec = created.experiment().spec();
  EXPECT_EQ(spec.base().task().documents().dataset(), names_);
  EXPECT_EQ(spec.seeds().first(), 4u);

  v1::CreateExperimentResponse again;
  ASSERT_TRUE(TryCreate(request, &again).ok());
  EXPECT_EQ(again.experiment().name(), created.experiment().name());

  v1::CreateExperimentRequest as_spec;
  as_spec.set_request_id("as spec");
  as_spec.set_find_identical(true);
  *as_spec.mutable_spec() = spec;
  v1::CreateExperimentResponse identical;
  ASSERT_TRUE(TryCreate(as_spec, &identical).ok());
  EXPECT_EQ(identical.identical_to(), created.experiment().name());
}

TEST_F(TextTest, TakesSeedsAndNameOfTheRequest) {
  v1::CreateExperimentRequest request = Request(kText);
  request.set_name("renamed");
  request.mutable_seeds()->add_list(9);
  v1::CreateExperimentResponse created;
  ASSERT_TRUE(TryCreate(request, &created).ok());
  EXPECT_EQ(created.experiment().spec().name(), "renamed");
  ASSERT_THAT(created.cells(), SizeIs(3));
  EXPECT_EQ(created.cells(0).seed(), 9u);
  request.mutable_seeds()->add_list(9);
  request.set_name("Not A Name");
  EXPECT_THAT(Problems(request), ElementsAre("0:0 name", "0:0 seeds.list[1]"));
}

TEST_F(TextTest, NamesTheFilesThatItNeeds) {
  v1::CreateExperimentRequest request = Request(kText);
  request.clear_files();
  (*request.mutable_overrides())["task.documents.tokenizer"].set_string_value("./bpe");
  const uint64_t before = store().change_number();
  const v1::CreateExperimentResponse checked = Validate(request);
  EXPECT_THAT(checked.problems(), SizeIs(0));
  ASSERT_THAT(checked.files(), SizeIs(2));
  EXPECT_EQ(checked.files(0).path(), "data/names.txt");
  EXPECT_EQ(checked.files(0).field(), "base.task.documents.dataset");
  EXPECT_TRUE(checked.files(0).in_text());
  EXPECT_EQ(checked.files(1).path(), "./bpe");
  EXPECT_EQ(checked.files(1).field(), "overrides[\"task.documents.tokenizer\"]");
  EXPECT_FALSE(checked.files(1).in_text());
  const grpc::Status refused = TryCreate(request);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("\"data/names.txt\" is a path; expected"));
  EXPECT_EQ(store().change_number(), before);
}

TEST_F(TextTest, ReplacesPathsThatAreLabelsByTheirIds) {
  const std::string text = absl::StrCat(kText, "exclude: [{where: {dataset: data/names.txt}}]\n");
  std::string axis = text;
  axis.replace(axis.find("  - {field"), 0,
               "  - {field: task.documents.dataset, values: [data/names.txt, ./b.txt]}\n");
  v1::CreateExperimentRequest request = Request(axis);
  (*request.mutable_files())["./b.txt"] = Upload("b.txt", "dora\nemil\nfred\n").name();
  const v1::CreateExperimentResponse checked = Validate(request);
  EXPECT_THAT(checked.problems(), SizeIs(0)) << checked.ShortDebugString();
  EXPECT_THAT(checked.cells(), SizeIs(6));
  EXPECT_THAT(checked.cells(0).name(), testing::StartsWith("b-"));
}

TEST_F(TextTest, TakesValuesPerLabelOfAnotherAxis) {
  std::string text = kText;
  const std::string values = "values: {log: [1e-3, 1e-1], count: 3}";
  text.replace(text.find(values), values.size(),
               "name: lr, by: width, values: {8: [1e-3, 1e-2], 16: [1e-2, 1e-1]}");
  text.insert(text.find("seeds"), "  - {field: model.width, values: [8, 16]}\n");
  std::vector<std::string> cells;
  const v1::CreateExperimentResponse checked = Validate(Request(text));
  for (const auto& cell : checked.cells()) {
    if (cell.seed() == 4) cells.push_back(cell.name());
  }
  EXPECT_THAT(cells, ElementsAre("lr0.001-width8-s4", "lr0.01-width8-s4", "lr0.01-width16-s4",
                                 "lr0.1-width16-s4"));
  text.replace(text.find("16: ["), 2, "17");
  EXPECT_THAT(Problems(Request(text)),
              testing::IsSupersetOf({"7:58 axes[0].values", "7:84 axes[0].values[\"17\"]"}));
}

TEST_F(TextTest, ReadsShorthandsOfProgramsInOverrides) {
  v1::CreateExperimentRequest request =
      Request("name: a\nbase: {program: {command: [a]}, settings: {lr: 1}}\n");
  (*request.mutable_overrides())["program.limits.time"].set_string_value("90m");
  (*request.mutable_overrides())["program.command"].set_string_value("a | b");
  EXPECT_THAT(Problems(request), ElementsAre("2:8 base.program.environment"));
}

TEST_F(TextTest, SaysWhereProblemsAre) {
  std::string text = kText;
  text.replace(text.find("width: 8"), 8, "widht: 8");
  EXPECT_THAT(Problems(Request(text)), ElementsAre("4:22 base.model.widht"));
  text = kText;
  text.replace(text.find("heads: 2"), 8, "heads: 3");
  EXPECT_THAT(Problems(Request(text)), ElementsAre("4:32 base.model.heads"));
  EXPECT_THAT(Problems(Request("a: !!int 3\n")), ElementsAre("1:1 a", "1:4 text"));
  const grpc::Status refused = TryCreate(Request("name: [a\n"));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("line 2, column 1: the file ends, but a '{' or"));
  v1::CreateExperimentRequest request = Request(kText);
  (*request.mutable_overrides())["model.heads"].set_number_value(3);
  EXPECT_THAT(Problems(request), ElementsAre("0:0 overrides[\"model.heads\"]"));
}

TEST_F(TextTest, RefusesWhatBelongsToNoText) {
  v1::CreateExperimentRequest both = Request(kText);
  *both.mutable_spec() = SmallSpec();
  EXPECT_THAT(Problems(both), testing::Contains("0:0 text"));
  v1::CreateExperimentRequest none = Request("");
  EXPECT_THAT(Problems(none), ElementsAre("0:0 spec", "0:0 text"));
  v1::CreateExperimentRequest large =
      Request(absl::StrCat(kText, "#", std::string(lookup::kMaxTextBytes, ' ')));
  EXPECT_THAT(Problems(large), ElementsAre("0:0 text"));
  EXPECT_THAT(TryCreate(large).error_message(), HasSubstr("expected at most 262,144"));
  std::string many;
  for (int i = 0; i < 5000; ++i) absl::StrAppend(&many, "k", i, ": 1\n");
  EXPECT_THAT(Problems(Request(many)), SizeIs(1000));
}

}  // namespace
}  // namespace ablate::service
