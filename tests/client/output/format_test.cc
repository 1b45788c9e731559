// Tests numbers, times and messages as people and programs read them.
#include "client/output/format.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "ablate/v1/experiment.pb.h"
#include "ablate/v1/metric.pb.h"
#include "ablate/v1/run.pb.h"
#include "gtest/gtest.h"

namespace ablate::client {
namespace {

TEST(ExactTest, ReadsBackAsTheSameDouble) {
  uint64_t state = 88172645463325252u;
  for (int i = 0; i < 100'000; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    double value = 0;
    static_assert(sizeof(value) == sizeof(state));
    memcpy(&value, &state, sizeof(value));
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(std::strtod(Exact(value).c_str(), nullptr), value) << Exact(value);
  }
}

TEST(ExactTest, IsShort) {
  EXPECT_EQ(Exact(0.1), "0.1");
  EXPECT_EQ(Exact(2), "2");
  EXPECT_EQ(Exact(static_cast<double>(0.1f)), "0.10000000149011612");
  EXPECT_EQ(Exact(1e-300), "1e-300");
  EXPECT_EQ(Exact(std::nan("")), "nan");
  EXPECT_EQ(Exact(-std::nan("")), "nan");
  EXPECT_EQ(Exact(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(Exact(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(ShortAlignedTest, KeepsZerosAtTheEnd) {
  EXPECT_EQ(ShortAligned(2.4), "2.400");
  EXPECT_EQ(ShortAligned(2.43678), "2.437");
  EXPECT_EQ(ShortAligned(0), "0.000");
  EXPECT_EQ(ShortAligned(1234), "1234");
  EXPECT_EQ(ShortAligned(0.000012), "1.200e-05");
  EXPECT_EQ(ShortAligned(std::nan("")), "nan");
}

TEST(ShortTest, HasFourDigits) {
  EXPECT_EQ(Short(2.43678), "2.437");
  EXPECT_EQ(Short(0.000012345), "1.234e-05");
  EXPECT_EQ(Short(0), "0");
  EXPECT_EQ(Short(std::nan("")), "nan");
}

TEST(StepTextTest, LeavesOutAnUnknownNumberOfSteps) {
  EXPECT_EQ(StepText(12, 1000), "12/1,000");
  EXPECT_EQ(StepText(1200, 0), "1,200");
  EXPECT_EQ(StepText(0, 0), "0");
}

TEST(BytesTest, UsesPowersOfThousand) {
  EXPECT_EQ(Bytes(0), "0 B");
  EXPECT_EQ(Bytes(999), "999 B");
  EXPECT_EQ(Bytes(1000), "1.0 kB");
  EXPECT_EQ(Bytes(9949), "9.9 kB");
  EXPECT_EQ(Bytes(40'123'456), "40 MB");
  EXPECT_EQ(Bytes(999'600), "1.0 MB");
  EXPECT_EQ(Bytes(std::numeric_limits<uint64_t>::max()), "18 EB");
}

TEST(DurationTest, UsesTwoUnits) {
  EXPECT_EQ(Duration(absl::ZeroDuration()), "0 s");
  EXPECT_EQ(Duration(absl::Milliseconds(20)), "1 s");
  EXPECT_EQ(Duration(absl::Seconds(59.4)), "59 s");
  EXPECT_EQ(Duration(absl::Seconds(59.6)), "1 min");
  EXPECT_EQ(Duration(absl::Seconds(200)), "3 min 20 s");
  EXPECT_EQ(Duration(absl::Minutes(125)), "2 h 5 min");
  EXPECT_EQ(Duration(absl::Hours(76)), "3 d 4 h");
  EXPECT_EQ(Duration(absl::InfiniteDuration()), "forever");
}

TEST(AgoTest, UsesTheLargestUnit) {
  google::protobuf::Timestamp time;
  time.set_seconds(1'000'000);
  const absl::Time then = absl::FromUnixSeconds(1'000'000);
  EXPECT_EQ(Ago(time, then - absl::Seconds(5)), "just now");
  EXPECT_EQ(Ago(time, then + absl::Seconds(5)), "5 s ago");
  EXPECT_EQ(Ago(time, then + absl::Minutes(90)), "1 h ago");
  EXPECT_EQ(Ago(time, then + absl::Hours(50)), "2 d ago");
}

TEST(CountTest, UsesThePlural) {
  EXPECT_EQ(Count(0, "run"), "0 runs");
  EXPECT_EQ(Count(1, "run"), "1 run");
  EXPECT_EQ(Count(1200, "run"), "1,200 runs");
}

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
 "failure": "",
 "continued_from": "",
 "continued_step": 0,
 "experiment": "",
 "values": []
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
