// Tests `sql` against a server of the test's own.
#include <string>
#include <vector>

#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SqlCommandTest : public ClientTest {
 protected:
  SqlCommandTest() {
    answers_.sql = [this](const v1::SqlRequest& request, const auto& send) {
      statement_ = request.statement();
      v1::SqlRows columns;
      for (const char* name : {"cell", "loss", "data"}) columns.add_columns(name);
      send(columns);
      v1::SqlRows rows;
      v1::SqlRow* row = rows.add_rows();
      row->add_values()->set_text("a, \"b\"");
      row->add_values()->set_real(2.123456789);
      row->add_values()->set_blob(std::string("\0\xff", 2));
      row = rows.add_rows();
      row->add_values()->set_text("\x1b[31m");
      row->add_values()->set_integer(9007199254740993);
      row->add_values();
      send(rows);
      return result_;
    };
    StartServer();
  }

  std::string statement_;
};

TEST_F(SqlCommandTest, PrintsATable) {
  const Outcome outcome = Run({"sql", "SELECT 1"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(statement_, "SELECT 1");
  EXPECT_EQ(outcome.out,
            "cell                  loss  data\n"
            "a, \"b\"         2.123456789  x'00ff'\n"
            "\\x1b[31m  9007199254740993\n");
}

TEST_F(SqlCommandTest, PrintsExactCsvAndJson) {
  EXPECT_EQ(Run({"sql", "SELECT 1", "--csv"}).out,
            "cell,loss,data\n"
            "\"a, \"\"b\"\"\",2.123456789,x'00ff'\n"
            "\x1b[31m,9007199254740993,\n");
  const Outcome json = Run({"sql", "SELECT 1", "--json"});
  EXPECT_THAT(json.out, HasSubstr("\"integer\": \"9007199254740993\""));
  EXPECT_EQ(Run({"sql", "SELECT 1", "--csv", "--json"}).code, kUsage);
}

TEST_F(SqlCommandTest, ReadsStandardInputAndTheSchema) {
  EXPECT_EQ(Run({"sql", "-"}, "SELECT 2;\n").code, kSuccess);
  EXPECT_EQ(statement_, "SELECT 2;\n");
  EXPECT_EQ(Run({"sql", "--schema"}).code, kSuccess);
  EXPECT_EQ(statement_, "SELECT * FROM columns");
  EXPECT_THAT(Run({"sql"}).err, HasSubstr("QUERY: missing; expected a SELECT, or --schema"));
  EXPECT_EQ(Run({"sql"}).code, kUsage);
  EXPECT_EQ(Run({"sql", "SELECT 1", "--schema"}).code, kUsage);
}

TEST_F(SqlCommandTest, PrintsNothingOfAResultThatBreaksOff) {
  result_ = absl::ResourceExhaustedError("statement: the result has more than 1 rows");
  for (const char* format : {"--csv", "--json"}) {
    const Outcome outcome = Run({"sql", "SELECT 1", format});
    EXPECT_EQ(outcome.code, kFailure);
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, HasSubstr("the result has more than 1 rows"));
  }
}

TEST_F(SqlCommandTest, EndsWithTheServersRefusals) { ExpectRefusals({{"sql", "SELECT 1"}}); }

}  // namespace
}  // namespace ablate::client
