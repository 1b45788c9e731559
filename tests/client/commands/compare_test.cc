// Tests `compare` and `table`: requests, output, and mistakes on the command line.
#include "client/context.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class CompareTest : public ClientTest {
 protected:
  CompareTest() {
    answers_.compare = [this](const v1::CompareRequest& request, v1::Comparison* comparison) {
      request_ = request;
      *comparison = comparison_;
      return absl::OkStatus();
    };
    answers_.table = [this](const v1::RenderTableRequest& request,
                            v1::RenderTableResponse* response) {
      table_request_ = request;
      response->set_data(data_);
      return absl::OkStatus();
    };
    comparison_.set_text("eval/loss  mean\npre        2.4\n\npost is worse.\n");
    v1::ComparisonRow* row = comparison_.add_rows();
    row->set_label("pre");
    row->mutable_difference();
    (*row->mutable_undefined())["p_holm"] = v1::Undefined::IS_BASELINE;
    row = comparison_.add_rows();
    row->set_label("post");
    (*row->mutable_labels())["placement"] = "post";
    row->set_n(12);
    row->mutable_difference()->set_mean(.1 + .2);
    StartServer();
  }

  v1::CompareRequest request_;
  v1::RenderTableRequest table_request_;
  v1::Comparison comparison_;
  std::string data_ = "a,b\r\n1,2\r\n";
};

TEST_F(CompareTest, PrintsTheTextTheSameEverywhere) {
  const Outcome piped = Run({"compare", "small"});
  EXPECT_EQ(piped.code, kSuccess);
  EXPECT_EQ(piped.err, "");
  EXPECT_EQ(piped.out, comparison_.text());
  console_.out_is_terminal = true;
  console_.width = 40;
  EXPECT_EQ(Run({"compare", "small"}).out, piped.out);
  EXPECT_EQ(request_.experiment(), "experiments/small");
  EXPECT_EQ(request_.key(), "");
  EXPECT_FALSE(request_.has_at());
}

TEST_F(CompareTest, PassesOptionsOn) {
  Run({"compare", "small", "--key", "eval/accuracy", "--by", "placement", "--baseline",
       "placement=none", "--baseline", "norm=a=b", "--at", "100"});
  EXPECT_EQ(request_.key(), "eval/accuracy");
  EXPECT_EQ(request_.by(), "placement");
  EXPECT_THAT(request_.baseline(),
              UnorderedElementsAre(Pair("placement", "none"), Pair("norm", "a=b")));
  EXPECT_EQ(request_.at(), 100);
  Run({"compare", "small", "--at", "-1"});
  EXPECT_EQ(request_.at(), -1);
}

TEST_F(CompareTest, NamesSeveralExperiments) {
  Run({"compare", "small/pre", "other", "third/post-s1", "--baseline", "setting=other/pre"});
  EXPECT_EQ(request_.experiment(), "experiments/small/pre");
  EXPECT_THAT(request_.others(), ElementsAre("experiments/other", "experiments/third/post-s1"));
  Run({"table", "small", "--with", "other", "--with", "third/post"});
  EXPECT_THAT(table_request_.comparison().others(),
              ElementsAre("experiments/other", "experiments/third/post"));
}

TEST_F(CompareTest, PrintsJsonWithSnakeCaseFieldsAndDefaults) {
  const Outcome outcome = Run({"compare", "small", "--json"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_THAT(outcome.out, HasSubstr("\"mean\": 0.30000000000000004"));
  EXPECT_THAT(outcome.out, HasSubstr("\"diverged\": 0"));
  EXPECT_THAT(outcome.out, HasSubstr("\"p_holm\": \"IS_BASELINE\""));
  EXPECT_THAT(outcome.out, HasSubstr("\"chosen\": []"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("\"effect\"")));
  v1::Comparison read;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(outcome.out, &read).ok());
  EXPECT_EQ(read.rows(1).labels().at("placement"), "post");
}

TEST_F(CompareTest, DisarmsWhatAServerSends) {
  comparison_.set_text("a\x1b[2J\r\nb\u202E\n");
  for (const bool terminal : {false, true}) {
    console_.out_is_terminal = terminal;
    EXPECT_EQ(Run({"compare", "small"}).out, "a\\x1b[2J\nb\\u202e\n") << terminal;
  }
}

TEST_F(CompareTest, BreaksProseBetweenWordsOnATerminal) {
  comparison_.set_text(
      "setting        mean   difference\npre            2.479\n\n"
      "one two three four five six seven eight\n");
  EXPECT_EQ(Run({"compare", "small"}).out, comparison_.text());
  console_.out_is_terminal = true;
  console_.width = 20;
  EXPECT_EQ(Run({"compare", "small"}).out,
            "setting        mean   difference\npre            2.479\n\n"
            "one two three four\nfive six seven eight\n");
}

TEST_F(CompareTest, LeavesABaselineWithoutAnAxisToTheServer) {
  EXPECT_EQ(Run({"compare", "small", "--baseline", "width64"}).code, kSuccess);
  EXPECT_EQ(request_.baseline().at(""), "width64");
}

TEST_F(CompareTest, RefusesWhatMakesNoSense) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--baseline", "=pre"},
       "--baseline: \"=pre\" is not a label of an axis; expected AXIS=LABEL"},
      {{"--baseline", "a="}, "--baseline: \"a=\" is not a label of an axis; expected AXIS=LABEL"},
      {{"--baseline", "a=b", "--baseline", "a=c"}, "--baseline: \"a\" is given twice"},
      {{"--at", "end"},
       "--at: \"end\" is not a step; expected a whole number from 0 on, or -1 for the end"},
      {{"--at", "-2"},
       "--at: \"-2\" is not a step; expected a whole number from 0 on, or -1 for the end"},
      {{"--at", "99999999999"},
       "--at: \"99999999999\" is not a step; expected a whole number from 0 on, or -1 for the "
       "end"}};
  for (const auto& [options, message] : cases) {
    for (const char* command : {"compare", "table"}) {
      const Outcome outcome = Run(With({command, "small"}, options));
      EXPECT_EQ(outcome.code, kUsage);
      EXPECT_EQ(outcome.out, "");
      EXPECT_EQ(outcome.err, "error: ablate " + std::string(command) + ": " + message + "\n");
    }
  }
}

TEST_F(CompareTest, SaysWhatTheServerRefuses) {
  answers_.compare = [](const v1::CompareRequest&, v1::Comparison*) {
    return absl::InvalidArgumentError("by: \"x\" isn't an axis; expected placement");
  };
  const Outcome outcome = Run({"compare", "small", "--by", "x"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "error: by: \"x\" isn't an axis; expected placement\n");
}

TEST_F(CompareTest, PrintsATableByteForByte) {
  const Outcome outcome = Run({"table", "small", "--format", "csv", "--by", "placement"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.out, data_);
  EXPECT_EQ(table_request_.format(), v1::TableFormat::csv);
  EXPECT_EQ(table_request_.comparison().by(), "placement");
  EXPECT_EQ(table_request_.comparison().experiment(), "experiments/small");
  Run({"table", "small", "--columns", "n,mean"});
  EXPECT_THAT(table_request_.columns(), testing::ElementsAre("n", "mean"));
  Run({"table", "small"});
  EXPECT_EQ(table_request_.columns_size(), 0);
  EXPECT_EQ(table_request_.format(), v1::TableFormat::text);
  EXPECT_THAT(Run({"table", "small", "--json"}).out, HasSubstr("\"data\": \"a,b"));
}

TEST_F(CompareTest, DisarmsATableExceptInAPipeToAProgram) {
  data_ = "a\x1b[2J,b\r\n";
  EXPECT_EQ(Run({"table", "small"}).out, "a\\x1b[2J,b\n");
  EXPECT_EQ(Run({"table", "small", "--format", "csv"}).out, data_);
  EXPECT_EQ(Run({"table", "small", "--format", "latex"}).out, data_);
  console_.out_is_terminal = true;
  EXPECT_EQ(Run({"table", "small", "--format", "csv"}).out, "a\\x1b[2J,b\n");
}

TEST_F(CompareTest, WritesATableIntoAFile) {
  const std::string path = folder_ + "/table.tex";
  const Outcome outcome = Run({"table", "small", "--format", "latex", "-o", path});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, path + ": 10 B\n");
  EXPECT_EQ(Read(path), data_);
  const Outcome nowhere = Run({"table", "small", "-o", folder_ + "/none/table.txt"});
  EXPECT_EQ(nowhere.code, kFailure);
  EXPECT_THAT(nowhere.err, HasSubstr("No such file or directory"));
}

TEST_F(CompareTest, ReplacesAFileWithATableOnlyIfForced) {
  const std::string path = Write("table.tex", "before");
  const std::vector<std::string> command = {"table", "small", "--format", "latex", "-o", path};
  const Outcome refused = Run(command);
  EXPECT_EQ(refused.code, kFailure);
  EXPECT_EQ(refused.err, "error: " + path + " exists already: --force replaces it\n");
  EXPECT_EQ(Read(path), "before");
  EXPECT_EQ(Run(With(command, {"--force"})).code, kSuccess);
  EXPECT_EQ(Read(path), data_);
}

TEST_F(CompareTest, WritesATableOnlyUnderAnEndingOfItsFormat) {
  const std::string yaml = Write("width.yaml", "name: width");
  const Outcome foreign = Run({"table", "small", "-o", yaml, "--force"});
  EXPECT_EQ(foreign.code, kUsage);
  EXPECT_EQ(
      foreign.err,
      "error: ablate table: --output: \"" + yaml +
          "\" does not fit --format text; expected a name that ends in .txt, or has no suffix\n");
  EXPECT_EQ(Read(yaml), "name: width");
  for (const auto& [format, name] : {std::pair("text", "t.csv"), std::pair("csv", "t.tex"),
                                     std::pair("latex", "t.txt"), std::pair("latex", "tex")}) {
    const int expected = std::string(name) == "tex" ? kSuccess : kUsage;
    EXPECT_EQ(Run({"table", "small", "--format", format, "-o", folder_ + "/" + name}).code,
              expected);
  }
  for (const auto& [format, name] : {std::pair("text", "t.TXT"), std::pair("csv", "t.csv"),
                                     std::pair("text", "plain"), std::pair("csv", "/dev/null")}) {
    const std::string path = name[0] == '/' ? name : folder_ + "/" + name;
    EXPECT_EQ(Run({"table", "small", "--format", format, "-o", path}).code, kSuccess) << name;
  }
}

TEST_F(CompareTest, KnowsTheFormatsOfATable) {
  for (const char* format : {"html", "unspecified"}) {
    const Outcome outcome = Run({"table", "small", "--format", format});
    EXPECT_EQ(outcome.code, kUsage);
    EXPECT_EQ(outcome.err, std::string("error: ablate table: --format: \"") + format +
                               "\" is unknown; expected text, csv or latex\n");
  }
  EXPECT_EQ(Run({"table", "small", "--json", "-o", "x"}).code, kUsage);
}

}  // namespace
}  // namespace ablate::client
