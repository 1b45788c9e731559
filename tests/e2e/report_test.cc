// Tests pictures, pages and files of trained runs, with the real programs.
#include <filesystem>
#include <iterator>
#include <regex>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// Returns the text between two others.
std::string Between(const std::string& text, const std::string& before, const std::string& after) {
  const size_t begin = text.find(before);
  EXPECT_NE(begin, std::string::npos) << before;
  if (begin == std::string::npos) return "";
  const size_t from = begin + before.size();
  return text.substr(from, text.find(after, from) - from);
}

// Returns a page without the time at which it was made.
std::string WithoutTimes(const std::string& page) {
  return std::regex_replace(page, std::regex("[0-9-]{10} at [0-9:]{5} UTC"), "");
}

// Returns the text of a data URI.
std::string Decoded(const std::string& uri) {
  std::string text;
  for (size_t i = 0; i < uri.size(); ++i) {
    const bool escaped = uri[i] == '%';
    text.push_back(escaped ? static_cast<char>(std::stoi(uri.substr(i + 1, 2), nullptr, 16))
                           : uri[i]);
    i += escaped ? 2 : 0;
  }
  return text;
}

class ReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.Up({"--lanes", "2"});
    const std::string yaml = SmallNames(
        "small", 60,
        "question: Which <b>norm</b>?\n"
        "axes:\n"
        "  - {name: norm, settings: [{label: pre}, {label: none, set: {model.norm.placement: none, "
        "model.norm.final: false}}]}\n"
        "  - {name: lr, field: training.learning_rate, values: [0.001, 0.01], tune: true}\n"
        "seeds: {first: 1, count: 3}\n"
        "analyses: [{samples: {count: 7, temperature: 0.5}}]\n");
    const nlohmann::json created = server_.Json({"submit", "-", "--wait", "--json"}, yaml);
    experiment_ = created["experiment"]["name"];
  }

  std::string Path(const std::string& name) const { return server_.home() + "/" + name; }
  // Returns the file that a command writes.
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

// Whatever the name of the file, and whatever the command line changed in it.
TEST_F(ReportTest, HasTheCommandThatMakesItAgain) {
  const std::string file = Path("a file.yaml");
  WriteFile(file, SmallNames("again", 60,
                             "axes: [{name: lr, field: training.learning_rate, values: [0.001, "
                             "0.01]}]\nseeds: {first: 1, count: 3}\n"));
  const nlohmann::json created =
      server_.Json({"submit", file, "--data", ABLATE_SOURCE "/examples/data", "--set",
                    "training.steps=20", "--seeds", "1,4", "--wait", "--json"});
  const std::string page =
      Written({"report", created["experiment"]["name"], "--at", "20"}, "first.html");
  std::istringstream words(Between(page, "Reproduce: <code class=\"copy\">", "</code>"));
  const std::vector<std::string> command{std::istream_iterator<std::string>(words), {}};
  ASSERT_THAT(command, SizeIs(7));
  EXPECT_THAT(command, ElementsAre("ablate", "report", StartsWith("again-"), "--at", "20", "-o",
                                   "first.html"));
  std::vector<std::string> again(command.begin() + 1, command.end() - 2);
  again.emplace_back("--force");
  EXPECT_EQ(WithoutTimes(Written(again, "first.html")), WithoutTimes(page));

  const std::string spec = Decoded(
      Between(page, "download=\"again.yaml\" href=\"data:application/yaml;charset=utf-8,", "\""));
  const nlohmann::json same = server_.Json({"submit", "-", "--wait", "--json"}, spec);
  EXPECT_EQ(same["reused"], 4) << spec;
  EXPECT_THAT(Written({"report", same["experiment"]["name"], "--at", "20"}, "third.html"),
              HasSubstr(Between(page, "SHA-256 of the spec ", "</p>")));
}

TEST_F(ReportTest, DrawsFiguresInEveryFormat) {
  EXPECT_THAT(Written({"figure", experiment_, "forest"}, "f.svg"), HasSubstr("<svg"));
  EXPECT_THAT(Written({"figure", experiment_, "loss"}, "f.pdf"), StartsWith("%PDF-"));
  EXPECT_THAT(Written({"figure", experiment_, "sensitivity"}, "f.png"), StartsWith("\x89PNG"));
}

TEST_F(ReportTest, ReplacesFilesOnlyIfForced) {
  Written({"report", experiment_}, "r.html");
  Written({"report", experiment_, "--at", "50", "--force"}, "r.html");
  for (const char* name : {"r.svg", "r.pdf", "r.png"}) {
    Written({"figure", experiment_, "loss"}, name);
    Written({"figure", experiment_, "forest", "--width", "double", "--force"}, name);
  }
  EXPECT_THAT(server_.Ablate({"report", experiment_, "-o", "-"}).out,
              StartsWith("<!DOCTYPE html>"));
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
