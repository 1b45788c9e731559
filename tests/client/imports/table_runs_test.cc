#include "client/imports/table_runs.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::client {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

absl::StatusOr<TableRuns> FromCsv(const std::string& text, const TableOptions& options = {}) {
  const auto table = ReadCsv("a.csv", text);
  return table.ok() ? RunsOf(*table, options) : table.status();
}

std::string Refusal(const std::string& text, const TableOptions& options = {}) {
  const auto runs = FromCsv(text, options);
  EXPECT_FALSE(runs.ok()) << text;
  return std::string(runs.status().message());
}

const google::protobuf::Value& Setting(const v1::ImportedRun& run, const std::string& key) {
  return run.settings().at(key);
}

TEST(TableTest, ReadsQuotedCellsAndOtherSeparators) {
  const auto table = ReadCsv("a.csv",
                             "\xEF\xBB\xBF"
                             "a;b\r\n\"x;\"\"y\"\"\nz\";2\r\n\r\n;3");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->columns[0].cells, ElementsAre("x;\"y\"\nz", ""));
  EXPECT_THAT(table->columns[1].cells, ElementsAre("2", "3"));
  EXPECT_TRUE(table->columns[1].numeric);
  EXPECT_THAT(table->lines, ElementsAre(2u, 5u));
}

TEST(TableTest, NamesTheLineOfAProblem) {
  EXPECT_THAT(Refusal("a,b\n1,2\n1\n"), HasSubstr("a.csv: line 3: 1 cells; expected 2"));
  EXPECT_THAT(Refusal("a,b\n1,\"x\n"), HasSubstr("line 2: a quoted cell has no closing quote"));
  EXPECT_THAT(Refusal("a,b\n1,\"x\"y\n"), HasSubstr("line 2: text after a closing quote"));
  EXPECT_THAT(Refusal("a,a\n"), HasSubstr("column \"a\" is repeated"));
  EXPECT_THAT(Refusal(",\n"), HasSubstr("no column has a name"));
  EXPECT_THAT(Refusal(""), HasSubstr("no column has a name"));
  EXPECT_THAT(Refusal("a\n\xFF\n"), HasSubstr("isn't UTF-8"));
}

TEST(TableTest, ReadsJsonLinesWithNestedObjectsAndNonFiniteNumbers) {
  const auto table = ReadJsonLines(
      "a.jsonl", "{\"m\": {\"lr\": 0.1}, \"loss\": NaN, \"s\": \"a \\\"NaN\"}\n\n{\"loss\": 2}\n");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_THAT(table->columns, SizeIs(3));
  EXPECT_THAT(table->Find("m.lr")->cells, ElementsAre("0.1", ""));
  EXPECT_THAT(table->Find("loss")->cells, ElementsAre("NaN", "2"));
  EXPECT_THAT(table->Find("s")->cells, ElementsAre("a \"NaN", ""));
  EXPECT_TRUE(table->Find("loss")->numeric);
  for (const char* bad : {"[1]", "{", "{\"a\": 1} x", "nope"}) {
    EXPECT_THAT(std::string(ReadJsonLines("a.jsonl", bad).status().message()),
                HasSubstr("a.jsonl: line 1: isn't a JSON object"));
  }
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "{\"a\":";
  EXPECT_FALSE(ReadJsonLines("a.jsonl", deep).ok());
  deep += "1" + std::string(10'000, '}');
  EXPECT_THAT(std::string(ReadJsonLines("a.jsonl", deep).status().message()),
              HasSubstr("nested too deeply"));
}

TEST(TableRunsTest, ReadsALongTable) {
  const auto runs = FromCsv(
      "norm,seed,key,step,value\npre,0,loss,10,2\npre,0,loss,0,3\npre,0,acc,10,0.5\n"
      "post,0,loss,10,nan\n");
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_THAT(runs->runs, SizeIs(2));
  EXPECT_EQ(Setting(runs->runs[0], "norm").string_value(), "pre");
  EXPECT_EQ(Setting(runs->runs[0], "seed").number_value(), 0);
  ASSERT_THAT(runs->runs[0].series(), SizeIs(2));
  EXPECT_THAT(runs->runs[0].series(0).steps(), ElementsAre(0u, 10u)) << "sorted";
  EXPECT_THAT(runs->runs[0].series(0).values(), ElementsAre(3, 2));
  EXPECT_TRUE(std::isnan(runs->runs[1].series(0).values(0)));
}

TEST(TableRunsTest, ReadsAWideTableWithOneMetric) {
  const auto runs = FromCsv("norm,seed,loss\npre,0,2\npost,0,1\n");
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_THAT(runs->runs, SizeIs(2));
  EXPECT_EQ(runs->runs[1].name(), "line 3");
  EXPECT_EQ(runs->runs[1].series(0).key(), "loss");
}

TEST(TableRunsTest, AsksIfColumnsMayBeSettingsOrMetrics) {
  const std::string csv = "norm,seed,lr,loss,acc\npre,0,0.1,2,0.5\npost,0,0.2,1,0.6\n";
  EXPECT_THAT(Refusal(csv), AllOf(HasSubstr("--metric: a.csv has columns of numbers that may be "
                                            "settings or metrics: lr, loss, acc"),
                                  HasSubstr("--metric KEY")));
  EXPECT_THAT(Refusal(csv, {.metric = "loss"}), HasSubstr("--setting: a.csv has columns of numbers "
                                                          "that may be settings or metrics: lr, "
                                                          "acc"));
  const auto runs = FromCsv(csv, {.settings = {"lr"}});
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_THAT(runs->runs[0].series(), SizeIs(2));
  EXPECT_THAT(runs->runs[0].settings(), SizeIs(2)) << "lr and seed";
  EXPECT_THAT(runs->notes, ElementsAre("left out, because they weren't named as settings: norm"));
}

TEST(TableRunsTest, LeavesOutColumnsWithoutANameAndNotesACutFile) {
  const auto runs = FromCsv(",norm,seed,loss\n0,pre,0,2\n1,post,0,1.");
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_THAT(runs->runs[0].settings(), SizeIs(2));
  EXPECT_THAT(runs->notes, ElementsAre("left out: columns without a name",
                                       "a.csv may be cut: its last line has no line break"));
}

TEST(TableRunsTest, TakesAConstantColumnAsTheMetricIfItIsTheOnlyOne) {
  EXPECT_EQ(FromCsv("norm,seed,acc\npre,0,1\npost,0,1\n")->runs[0].series(0).key(), "acc");
  EXPECT_THAT(Refusal("norm,seed,acc,width\npre,0,1,8\npost,0,1,8\n"), HasSubstr("acc, width"));
}

TEST(TableRunsTest, TakesNamesThatRepeatAsSettings) {
  const auto runs = FromCsv("name,seed,loss\npre,0,2\npre,1,2\npost,0,1\n");
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_EQ(Setting(runs->runs[2], "name").string_value(), "post");
}

TEST(TableRunsTest, TakesWholeNumbersAsSteps) {
  const auto runs = FromCsv("epoch,step,key,value\n0.5,10,loss,2\n1,20,loss,1\n");
  EXPECT_THAT(runs->runs[0].series(0).steps(), ElementsAre(10u, 20u));
  EXPECT_THAT(FromCsv("iteration,epoch,loss\n0.5,1,2\n0.7,2,1\n")->runs[0].series(0).steps(),
              ElementsAre(1u, 2u));
}

TEST(TableRunsTest, ReadsItemsAndTheirGroups) {
  const auto runs = FromCsv("model,doc,topic,acc\na,1,x,1\na,2,y,0\nb,1,x,1\n",
                            {.settings = {"model"}, .item = "doc", .group = "topic"});
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_THAT(runs->runs, SizeIs(2));
  EXPECT_THAT(runs->runs[0].series(0).items(), ElementsAre("1", "2"));
  EXPECT_THAT(runs->runs[0].series(0).groups(), ElementsAre("x", "y"));
  EXPECT_THAT(runs->runs[0].series(0).steps(), IsEmpty());
}

TEST(TableRunsTest, ReadsStatesAndRefusesUnknownOnes) {
  const auto runs = FromCsv("norm,state,loss\npre,Finished,1\npost,crashed,2\n");
  EXPECT_EQ(runs->runs[0].state(), v1::ImportedState::finished);
  EXPECT_EQ(runs->runs[1].state(), v1::ImportedState::failed);
  EXPECT_THAT(Refusal("norm,state,loss\npre,odd,1\n"), HasSubstr("line 2: state \"odd\""));
}

TEST(TableRunsTest, RefusesValuesAndStepsThatAreNoNumbers) {
  EXPECT_THAT(Refusal("key,step,value\nloss,0,x\n"), HasSubstr("\"x\" in column value"));
  for (const char* step : {"-1", "1.5", "4294967296", "x", ""}) {
    EXPECT_THAT(Refusal(std::string("key,step,value\nloss,") + step + ",1\n"),
                HasSubstr("line 2: step"));
  }
  EXPECT_THAT(Refusal("key,step,value\nloss,1,1\nloss,1,2\n"), HasSubstr("twice at step 1"));
  EXPECT_THAT(Refusal("norm,state\na,finished\n"), HasSubstr("no column has the values"));
  EXPECT_THAT(Refusal("norm,loss\na,1\na,2\nb,NA\n"),
              HasSubstr("line 4: \"NA\" in column loss isn't a number"));
  EXPECT_THAT(Refusal("norm,loss\n" + std::string(2000, 'x') + ",1\n"),
              HasSubstr("line 2: the cell in column norm is too long"));
  EXPECT_THAT(Refusal("norm,loss\na,1\n", {.metric = "los"}), HasSubstr("did you mean loss?"));
}

}  // namespace
}  // namespace ablate::client
