// From trained runs to pictures, pages and files, with the real programs.
#include <filesystem>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

class ReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.Up({"--lanes", "2"});
    const std::string yaml = SmallNames(
        "small", 60,
        "question: Which <b>norm</b>?\n"
        "axes:\n"
        "  - {name: norm, settings: [{label: pre}, {label: none, set: "
        "{model.norm.placement: none, model.norm.final: false}}]}\n"
        "  - {name: lr, field: training.learning_rate, values: [0.001, 0.01], tune: true}\n"
        "seeds: {first: 1, count: 3}\n"
        "analyses: [{samples: {count: 7, temperature: 0.5}}]\n");
    const nlohmann::json created = server_.Json({"submit", "-", "--wait", "--json"}, yaml);
    experiment_ = created["experiment"]["name"];
  }

  std::string Path(const std::string& name) const { return server_.home() + "/" + name; }
  // The file that a command writes.
  std::string Written(std::vector<std::string> command, const std::string& name) {
    command.insert(command.end(), {"-o", Path(name)});
    const Output output = server_.Ablate(command);
    EXPECT_EQ(output.exit_code, 0) << output.err;
    return ReadFile(Path(name));
  }

  PersonalServer server_;
  std::string experiment_;
};

TEST_F(ReportTest, IsOnePageWithFiguresAndSamples) {
  const std::string page = Written({"report", experiment_}, "report.html");
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  EXPECT_GE(Count(page, "<svg"), 4u) << "loss, forest, sensitivity, curves";
  EXPECT_THAT(page, HasSubstr("Which &lt;b"));
  EXPECT_THAT(page, Not(HasSubstr("<b>norm")));
  EXPECT_EQ(Count(page, "<script"), 1u) << "its own";
  EXPECT_THAT(page, HasSubstr("figure-difference\""));
  EXPECT_THAT(page, HasSubstr("id=\"samples\""));
  EXPECT_EQ(Count(page, "<li dir=\"auto\">"), 2 * 7u) << "by the worker for analyses";
}

TEST_F(ReportTest, DrawsFiguresInEveryFormat) {
  EXPECT_THAT(Written({"figure", experiment_, "forest"}, "f.svg"), HasSubstr("<svg"));
  EXPECT_THAT(Written({"figure", experiment_, "loss"}, "f.pdf"), StartsWith("%PDF-"));
  EXPECT_THAT(Written({"figure", experiment_, "sensitivity"}, "f.png"), StartsWith("\x89PNG"));
}

// Real files are known again by how they begin, so that a command can be run twice.
TEST_F(ReportTest, RefreshesFiguresAndPages) {
  Written({"report", experiment_}, "r.html");
  Written({"report", experiment_, "--at", "50"}, "r.html");
  for (const char* name : {"r.svg", "r.pdf", "r.png"}) {
    Written({"figure", experiment_, "loss"}, name);
    Written({"figure", experiment_, "forest", "--width", "double"}, name);
  }
  Written({"table", experiment_}, "r.txt");
  const Output refused = server_.Ablate({"table", experiment_, "-o", Path("r.txt")});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("exists already: --force replaces it"));
  Written({"table", experiment_, "--force"}, "r.txt");
}

TEST_F(ReportTest, ExportsEveryPoint) {
  const std::string csv = Written({"export", experiment_, "--format", "csv"}, "points.csv");
  const Output points = server_.Ablate({"metrics", experiment_, "--key", "train/loss", "--csv"});
  EXPECT_EQ(Count(csv, ",train/loss,"), Count(points.out, "\n") - 1);
  EXPECT_EQ(Count(csv, ",train/loss,"), 12 * 60u);
}

}  // namespace
}  // namespace ablate::e2e
