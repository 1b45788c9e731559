#include "server/analysis/subjects.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "ablate/v1/analysis.pb.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/engine/analysis.h"
#include "server/experiment/analysis.h"
#include "server/experiment/analysis_time.h"
#include "tests/results/stored_grid.h"
#include "tests/test_folder.h"

namespace ablate::analysis {
namespace {

using results::SmallGrid;
using results::StoredGrid;

// Returns a stored analysis, the spectrum of the finished run of seed 1.
storage::AnalysisRecord RecordFor(StoredGrid& stored, const std::string& prompt,
                                  const std::string& private_to = "") {
  v1::Analysis asked;
  asked.mutable_analysis()->mutable_spectrum();
  spec::Problems problems;
  EXPECT_TRUE(spec::ResolveAnalysis(asked.mutable_analysis(), "analysis", &problems));
  asked.mutable_inputs()->set_prompt(prompt);
  storage::AnalysisRecord record;
  record.request = asked.SerializeAsString();
  record.subjects = {{stored.cell("s1").run, stored.cell("s1").steps}};
  record.private_to = private_to;
  return record;
}

schedule::AnalysisRequest RequestFor(StoredGrid& stored, const std::string& prompt,
                                     const std::string& private_to = "") {
  auto request = PrepareComputation(stored.store(), RecordFor(stored, prompt, private_to));
  EXPECT_TRUE(request.ok()) << request.status();
  return request.ok() ? *std::move(request) : schedule::AnalysisRequest();
}
double WorkOf(StoredGrid& stored, const std::string& prompt) {
  return RequestFor(stored, prompt).work;
}

TEST(SubjectsTest, CountsAPromptInCharacters) {
  const TestFolder folder;
  StoredGrid stored(SmallGrid(1), folder.path());
  stored.Finish("s1", {{"eval/loss", {{10, 2}}}});
  EXPECT_GT(WorkOf(stored, "aaaa"), 0);
  EXPECT_EQ(WorkOf(stored, "\u00e4\u00f6\u00fc\u20ac"), WorkOf(stored, "aaaa"));
  EXPECT_GT(WorkOf(stored, "aaaaaaaa"), WorkOf(stored, "aaaa"));
}

TEST(SubjectsTest, CountsItsStateAsAShareOfTheMost) {
  const TestFolder folder;
  StoredGrid stored(SmallGrid(1), folder.path());
  stored.Finish("s1", {{"eval/loss", {{10, 2}}}});
  const double width = 8;
  EXPECT_EQ(RequestFor(stored, "aaaa").state, 8 * width * width / spec::kMaxStateBytes);
}

TEST(SubjectsTest, ContinuesFromItsStateOnTheDeviceThatSavedIt) {
  const TestFolder folder;
  StoredGrid stored(SmallGrid(1), folder.path());
  stored.Finish("s1", {{"eval/loss", {{10, 2}}}});
  storage::AnalysisRecord record = RecordFor(stored, "aaaa");
  record.state_blob = "state";
  for (const bool on_gpu : {true, false}) {
    record.state_on_gpu = on_gpu;
    const auto request = PrepareComputation(stored.store(), record);
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_EQ(request->message.computation().state_blob(), "state");
    EXPECT_EQ(request->state_on_gpu, on_gpu);
  }
}

// Returns the group of RequestFor's analysis.
std::string GroupOf(StoredGrid& stored) {
  const engine::SpectrumOptions options;
  const auto model = ModelOfRun(stored.store(), stored.cell("s1").run);
  EXPECT_TRUE(model.ok()) << model.status();
  const engine::AnalysisKind& kind = engine::KindOf(options);
  const engine::AnalysisCost cost = kind.cost(options, model->config, 4, 1);
  return spec::GuessAnalysisTime(kind, cost, {}, model->config).group;
}

TEST(SubjectsTest, WantsAGpuForALargeModel) {
  // 12 · layers · width² parameters, and few others.
  for (const auto& [width, large] : {std::pair(640, false), std::pair(660, true)}) {
    const TestFolder folder;
    StoredGrid stored(
        absl::StrReplaceAll(SmallGrid(1),
                            {{"layers: 1 width: 8", absl::StrCat("layers: 2 width: ", width)}}),
        folder.path());
    stored.Finish("s1", {{"eval/loss", {{10, 2}}}});
    const uint64_t parameters = stored.store()->GetRun(stored.cell("s1").run)->parameters;
    EXPECT_EQ(parameters >= 10'000'000, large) << parameters;
    EXPECT_EQ(RequestFor(stored, "aaaa").on_gpu, large) << parameters;
    EXPECT_EQ(absl::EndsWith(GroupOf(stored), "/large"), large);
  }
}

TEST(SubjectsTest, TakesTheTimeThatItsGroupTookHereOnceAFewWereMade) {
  const TestFolder folder;
  StoredGrid stored(SmallGrid(1), folder.path());
  stored.Finish("s1", {{"eval/loss", {{10, 2}}}});
  const double guess = WorkOf(stored, "aaaa");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(WorkOf(stored, "aaaa"), guess);
    storage::NewAnalysis analysis;
    analysis.id = absl::StrCat("x", i);
    analysis.subjects = {{stored.cell("s1").run, stored.cell("s1").steps}};
    analysis.time_group = GroupOf(stored);
    analysis.guessed_time = 1000;
    ASSERT_TRUE(stored.store()->CreateAnalysis(analysis, 100).ok());
    storage::AnalysisEnd end;
    end.result = "{}";
    end.device_time = 7000;
    ASSERT_TRUE(stored.store()->EndAnalysis(analysis.id, end).ok());
  }
  EXPECT_DOUBLE_EQ(WorkOf(stored, "aaaa"), 7 * guess);
  EXPECT_EQ(RequestFor(stored, "aaaa", "mia").work, guess) << "a private one learns of its owner's";
}

}  // namespace
}  // namespace ablate::analysis
