// Tests a report's content of a stored experiment: contents, provenance, figures.
#include "server/results/report.h"

#include "base/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/lookup/cancelled.h"
#include "storage/blobs.h"
#include "tests/results/stored_grid.h"

namespace ablate::results {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kReportSpec[] = R"(
  name: "small"
  question: "Is <b>wide</b> better?"
  base { task { legacy_recall { keys: 20 draw: 4 } } model { layers: 1 width: 8 heads: 2 }
         training { steps: 4 batch: 2 } }
  axes { name: "size"
         settings { label: "narrow" }
         settings { label: "wide" set { key: "model.width" value { number_value: 16 } } } }
  report { summaries { key: "train/loss" last: 2 } }
  seeds { count: 3 }
)";

class ReportContentsTest : public ::testing::Test {
 protected:
  ReportContentsTest() : grid_(kReportSpec) {
    for (int seed = 0; seed < 3; ++seed) {
      for (const char* label : {"narrow", "wide"}) {
        const double better = label[0] == 'w' ? .5 : 0;
        StoredGrid::Curves curves;
        for (uint32_t step = 0; step < 4; ++step) curves["train/loss"][step] = 3.0 - step - better;
        curves["eval/loss"] = {{0, 3.0}, {4, 1 + .01 * seed * seed - better}};
        grid_.Finish(std::string(label) + "-s" + std::to_string(seed), curves);
      }
    }
    request_.set_experiment(grid_.experiment());
    sources_.store = grid_.store();
  }

  absl::StatusOr<html::Experiment> TryDescribe(const lookup::Cancelled& cancelled) {
    auto stored = LoadExperiment(sources_.store, request_.experiment());
    if (!stored.ok()) return stored.status();
    return DescribeExperiment(sources_, *std::move(stored), request_, "", "e1-", cancelled);
  }

  html::Experiment Describe() {
    const auto experiment = TryDescribe([] { return false; });
    EXPECT_TRUE(experiment.ok()) << experiment.status();
    return experiment.ok() ? *experiment : html::Experiment();
  }

  StoredGrid grid_;
  ReportSources sources_;
  v1::CompareRequest request_;
};

TEST_F(ReportContentsTest, SaysWhatEachSettingChangesAndItsWindows) {
  const html::Experiment experiment = Describe();
  EXPECT_EQ(experiment.question, "Is <b>wide</b> better?");
  EXPECT_EQ(experiment.read_at, "after 4 steps");
  ASSERT_EQ(experiment.changes.size(), 2u);
  EXPECT_TRUE(experiment.changes[0].empty());
  ASSERT_FALSE(experiment.changes[1].empty());
  const html::FieldChange& last = experiment.changes[1].back();
  EXPECT_EQ(last.path + " " + last.baseline + " " + last.value, "model.width 8 16");
  ASSERT_EQ(experiment.windows.windows.size(), 1u);
  EXPECT_EQ(report::WindowName(experiment.windows.windows[0], report::MetricSource::kTrainer),
            "training loss, mean of the last 2");
  EXPECT_DOUBLE_EQ(experiment.windows.rows[1][0].over.mean.value, 0);
}

TEST_F(ReportContentsTest, WarnsOfSeedsThatWereAddedLater) {
  const auto added = [this] {
    std::vector<std::string> texts;
    for (const report::Warning& warning : Describe().comparison.warnings) {
      if (warning.kind == report::WarningKind::kSeedsAdded) texts.push_back(warning.text);
    }
    return texts;
  };
  EXPECT_THAT(added(), testing::IsEmpty()) << "all runs are its own";
  std::string more = kReportSpec;
  more.replace(more.find("count: 3"), 8, "count: 5");
  grid_.Submit(more);
  request_.set_experiment(grid_.experiment());
  for (const char* cell : {"narrow-s3", "narrow-s4", "wide-s3", "wide-s4"}) {
    grid_.Finish(cell, {{"eval/loss", {{0, 3.0}, {4, cell[0] == 'w' ? .5 : 1}}}});
  }
  const auto expected = ElementsAre(testing::EndsWith("with five): “wide” 2 of 5"));
  EXPECT_THAT(added(), expected);
  const std::string same = more;
  grid_.Submit(same);
  request_.set_experiment(grid_.experiment());
  EXPECT_THAT(added(), expected) << "submitting the file once more hides nothing";
}

TEST_F(ReportContentsTest, KnowsWhetherSeedsShareWeights) {
  EXPECT_TRUE(Describe().shared_weights);
  std::string spec = kReportSpec;
  spec.replace(spec.find("heads: 2 }"), 10, "heads: 2 init { streams: sequential } }");
  StoredGrid sequential(spec);
  request_.set_experiment(sequential.experiment());
  sources_.store = sequential.store();
  EXPECT_FALSE(Describe().shared_weights);
}

TEST_F(ReportContentsTest, SaysWhereItComesFrom) {
  const html::Provenance provenance = Describe().provenance;
  EXPECT_EQ(provenance.cells, 6u);
  EXPECT_EQ(provenance.runs, 6u);
  EXPECT_EQ(provenance.reused, 0u);
  EXPECT_EQ(provenance.device_seconds, 6);
  EXPECT_THAT(provenance.spec_yaml, StartsWith("name: small\n"));
  EXPECT_EQ(provenance.spec_sha256, Sha256Hex(provenance.spec_yaml));
  EXPECT_EQ(provenance.spec_file, "small.yaml");
  EXPECT_EQ(provenance.submit_command, "ablate submit small.yaml --wait");
  EXPECT_EQ(provenance.report_command, "ablate report EXPERIMENT -o report.html");
}

TEST_F(ReportContentsTest, QuotesWhatAShellWouldRead) {
  request_.set_key("eval/loss; `id`");
  request_.set_by("size");
  (*request_.mutable_baseline())["size"] = "it's";
  request_.set_at(3);
  EXPECT_EQ(ReportCommand({"e", "f g"}, request_, "a page.html"),
            "ablate report e 'f g' --key 'eval/loss; `id`' --by size --baseline 'size=it'\\''s' "
            "--at 3 -o 'a page.html'");
}

TEST_F(ReportContentsTest, DrawsEachFigureWithItsNumbers) {
  const html::Experiment experiment = Describe();
  std::vector<std::string> names;
  for (const html::Figure& figure : experiment.figures) {
    names.push_back(figure.name);
    EXPECT_EQ(figure.missing, "");
    EXPECT_THAT(figure.svg, HasSubstr("<title id=\"e1-" + figure.name + "-title\">small: "));
    EXPECT_THAT(figure.svg, HasSubstr("<desc id=\"e1-" + figure.name + "-desc\">"));
    EXPECT_NE(figure.csv, "") << figure.name;
  }
  EXPECT_THAT(names, ElementsAre("forest", "difference", "loss", "summary", "windows", "curves"));
}

TEST_F(ReportContentsTest, SaysWhyThereIsNoFigureWithoutNamesOfFields) {
  StoredGrid untrained(kReportSpec);
  request_.set_experiment(untrained.experiment());
  sources_.store = untrained.store();
  std::vector<std::string> missing;
  for (const html::Figure& figure : Describe().figures) {
    if (!figure.svg.empty()) continue;
    missing.push_back(figure.name);
    EXPECT_THAT(figure.missing, Not(HasSubstr("key: "))) << figure.name;
    EXPECT_THAT(figure.missing, Not(HasSubstr("kind: "))) << figure.name;
    EXPECT_THAT(figure.missing, StartsWith("Not drawn: ")) << figure.name;
  }
  EXPECT_THAT(missing, ElementsAre("loss", "windows", "curves"));
}

TEST_F(ReportContentsTest, DrawsThePrimaryMetricOfAProgramThatLogsNoTrainingLoss) {
  StoredGrid program(R"(name: "own"
    base { program { command: "train" } settings { fields { key: "x" value { number_value: 1 } } } }
    axes { name: "x" field: "settings.x" values { number_value: 1 } values { number_value: 2 } }
    seeds { first: 1 count: 2 } report { primary: "val/perplexity" better: lower })");
  for (const std::string cell : {"x1-s1", "x1-s2", "x2-s1", "x2-s2"}) {
    const double value = cell[1] == '1' ? 3 : 2;
    program.Finish(cell, {{"val/perplexity", {{1, value + 1}, {2, value}}}});
  }
  request_.set_experiment(program.experiment());
  sources_.store = program.store();
  const html::Experiment experiment = Describe();
  EXPECT_EQ(experiment.comparison.scale, report::Scale::kDifference) << "its key isn't ours";
  ASSERT_FALSE(experiment.figures.empty());
  for (const html::Figure& figure : experiment.figures) {
    EXPECT_EQ(figure.missing, "") << figure.name;
    EXPECT_THAT(figure.svg, Not(HasSubstr("training loss"))) << figure.name;
  }
}

TEST_F(ReportContentsTest, StopsWhenNobodyWantsIt) {
  const auto experiment = TryDescribe([] { return true; });
  EXPECT_TRUE(absl::IsCancelled(experiment.status())) << experiment.status();
}

TEST_F(ReportContentsTest, HasNoSamplesUnlessTheSpecAsks) {
  EXPECT_FALSE(Describe().samples.has_value());
}

}  // namespace
}  // namespace ablate::results
