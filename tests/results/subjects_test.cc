#include "server/results/subjects.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "ablate/v1/analysis.pb.h"
#include "server/spec/analysis.h"
#include "tests/results/stored_grid.h"
#include "tests/test_folder.h"

namespace ablate::results {
namespace {

// A request for the spectrum of the finished run of seed 1.
schedule::AnalysisRequest RequestFor(StoredGrid& stored, const std::string& prompt) {
  v1::Analysis asked;
  asked.mutable_analysis()->mutable_spectrum();
  spec::Problems problems;
  EXPECT_TRUE(spec::ResolveAnalysis(asked.mutable_analysis(), "analysis", &problems));
  asked.mutable_inputs()->set_prompt(prompt);
  storage::AnalysisRecord record;
  record.request = asked.SerializeAsString();
  record.subjects = {{stored.cell("s1").run, stored.cell("s1").steps}};
  auto request = PrepareComputation(stored.store(), record);
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

}  // namespace
}  // namespace ablate::results
