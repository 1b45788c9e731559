// Messages as JSON: what scripts rely on.
#include "client/json.h"

#include <cmath>
#include <limits>

#include "ablate/v1/experiment.pb.h"
#include "ablate/v1/metric.pb.h"
#include "gtest/gtest.h"

namespace ablate::client {
namespace {

TEST(ToJsonTest, HasSnakeCaseNamesAndDefaults) {
  v1::RunRow row;
  row.set_cell("pre-s1");
  row.set_state(v1::RunState::DONE);
  v1::Summary* summary = row.add_summaries();
  summary->set_key("eval/loss");
  summary->set_last(2.5);
  summary->set_count(3);
  EXPECT_EQ(ToJson(row), R"({
 "cell": "pre-s1",
 "labels": {},
 "seed": 0,
 "run": "",
 "state": "DONE",
 "step": 0,
 "steps": 0,
 "summaries": [
  {
   "key": "eval/loss",
   "count": "3",
   "nonfinite": "0",
   "last": 2.5
  }
 ],
 "failure": ""
}
)");
}

TEST(ToJsonTest, HasEmptyListsAndEnumNames) {
  EXPECT_EQ(ToJson(v1::ListExperimentsResponse()),
            "{\n \"experiments\": [],\n \"next_page_token\": \"\"\n}\n");
}

TEST(ToJsonLineTest, IsOneLineAndSpellsNonFiniteNumbers) {
  v1::Series series;
  series.set_key("train/loss");
  series.add_steps(0);
  series.add_values(std::nan(""));
  series.add_values(-std::numeric_limits<double>::infinity());
  series.add_values(0.1);
  EXPECT_EQ(ToJsonLine(series),
            "{\"cell\":\"\",\"run\":\"\",\"key\":\"train/loss\",\"steps\":[0],"
            "\"values\":[\"NaN\",\"-Infinity\",0.1]}\n");
}

TEST(ToJsonTest, EscapesControlCharacters) {
  v1::RunRow row;
  row.set_failure("a\x1b[31m\n");
  EXPECT_NE(ToJson(row).find("a\\u001b[31m\\n"), std::string::npos);
}

}  // namespace
}  // namespace ablate::client
