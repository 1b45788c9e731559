// Tests a page's content: the order of its sections, the answer, missing figures, contents.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/clean.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/report/compare/finding.h"
#include "server/report/html/style.h"
#include "tests/report/compare/example_grid.h"
#include "tests/report/html/example_page.h"

namespace ablate::html {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Usual final : public Texts {
 public:
  std::string Next(const std::string& usual) override { return usual; }
};

Experiment Example() {
  Usual usual;
  return ExampleExperiment(&usual);
}

// Returns the example with another comparison, without the parts of its own.
Experiment ExampleOf(const report::ComparisonInput& input) {
  Experiment experiment = Example();
  experiment.comparison = *report::Compare(input);
  experiment.changes.assign(experiment.comparison.rows.size(), {});
  experiment.windows = {};
  return experiment;
}

std::string PageOf(const std::vector<Experiment>& experiments) {
  Page page = {"0.1.0", "21 November 2026, 12:00 UTC", {}};
  for (const Experiment& one : experiments) page.experiments.push_back({one.id, one.question});
  return WholePage(page, experiments);
}

TEST(PageTest, HasItsSectionsInOrder) {
  const std::string page = PageOf({Example()});
  size_t before = 0;
  for (const char* text :
       {"<h1>Does norm placement matter?</h1>", "unseen\">Verdict</h2>", "class=\"cards\"",
        "Figure 1. Loss.", "part\">Figures</h2>", "part\">More figures</h2>", "part\">Results</h2>",
        "part\">More tables</h2>", "part\">What the settings change</h2>",
        "part\">Samples from the models</h2>", "part\">How this was computed</h2>",
        "part\">Provenance</h2>", "</html>"}) {
    const size_t at = page.find(text);
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_GT(at, before) << text;
    before = at;
  }
}

TEST(PageTest, GivesACardASettingAndEveryWarning) {
  const Experiment experiment = Example();
  const std::string page = PageOf({experiment});
  for (const size_t row : {1, 2}) {
    const report::Finding finding = report::FindingOf(experiment.comparison, row);
    EXPECT_THAT(page, HasSubstr(absl::StrCat("<strong>", finding.lead, "</strong> ",
                                             text::EscapeMarkup(finding.evidence))));
    for (const std::string& fact : finding.facts) {
      EXPECT_THAT(page, HasSubstr(text::EscapeMarkup(fact)));
    }
  }
  EXPECT_THAT(page, HasSubstr("<li class=\"card worse\"><p class=\"who\">"));
  EXPECT_THAT(
      page,
      HasSubstr("<rect class=\"c1\" width=\"10\" height=\"10\" rx=\"2\"></rect></svg>“post”</p>"));
  EXPECT_THAT(
      page,
      HasSubstr("Held-out loss (nats per token, lower is better) where each run ended, against "
                "<strong>“pre”</strong> = "));
  ASSERT_FALSE(experiment.comparison.warnings.empty());
  for (const report::Warning& warning : experiment.comparison.warnings) {
    EXPECT_THAT(page, HasSubstr(text::EscapeMarkup(warning.text)));
  }
}

TEST(PageTest, CallsNothingBetterWhereNeitherIs) {
  Experiment experiment = Example();
  experiment.comparison.better = report::Better::kNeither;
  const std::string page = PageOf({experiment});
  EXPECT_THAT(page, HasSubstr("(nats per token, neither direction is better)"));
  EXPECT_THAT(page, Not(AnyOf(HasSubstr("; better on "), HasSubstr("; worse on "))));
  EXPECT_THAT(page, HasSubstr("a setting is higher or lower (established) if the adjusted p"));
  EXPECT_THAT(page, Not(HasSubstr("better or worse")));
  EXPECT_THAT(page, Not(HasSubstr(">wins<")));
  EXPECT_THAT(PageOf({Example()}), HasSubstr(">wins<"));
}

TEST(PageTest, SaysRatiosEverywhereWhereTheyAreCompared) {
  report::ComparisonInput input = report::OneAxis({{"pre", {}}, {"post", {}}});
  input.key = "train/gradient_norm";
  input.scale = report::Scale::kRatio;
  for (uint32_t seed = 0; seed < 8; ++seed) {
    const double norm = std::exp(seed), times = 1.42 * std::exp(seed % 2 == 0 ? .1 : -.1);
    input.cells.push_back(report::MakeCell({"pre"}, seed, norm));
    input.cells.push_back(report::MakeCell({"post"}, seed, norm * times));
  }
  const std::string page = PageOf({ExampleOf(input)});
  for (const char* text :
       {"<strong>Higher by a factor of 1.42</strong> [1.30, 1.55]; worse on 8 of 8 seeds",
        "Gradient norm (compared as ratios, lower is better)", ". Means are geometric.",
        ">geometric mean [95 % CI]<", ">Paired ratio to pre<", ">ratio [95 % CI]<",
        "×1.42<small>[1.30, 1.55]</small>", "the ratio is the geometric mean, over the seeds"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
  EXPECT_THAT(page, Not(HasSubstr("Δ is the mean")));
  EXPECT_THAT(page, Not(HasSubstr("Paired difference to")));
}

TEST(PageTest, SaysNothingOfModelsIfProgramsAreCompared) {
  report::ComparisonInput input = report::OneAxis({{"a", {}}, {"b", {}}});
  input.source = report::MetricSource::kProgram;
  for (uint32_t seed = 0; seed < 8; ++seed) {
    input.cells.push_back(report::MakeCell({"a"}, seed, seed));
    input.cells.push_back(report::MakeCell({"b"}, seed, seed + 1.5 + 0.1 * (seed % 2)));
  }
  const std::string page = PageOf({ExampleOf(input)});
  EXPECT_THAT(page, HasSubstr("eval/loss (lower is better)"));
  EXPECT_THAT(page, HasSubstr("a run diverged if its last value of the metric is infinite"));
  for (const char* text : {"nats", "held-out", "weights", "order of their data", "uniform guess"}) {
    EXPECT_THAT(page, Not(HasSubstr(text)));
  }
}

TEST(PageTest, CountsDivergedRunsInTheTable) {
  const Experiment experiment = Example();
  ASSERT_EQ(experiment.comparison.matched.size(), 2u);
  EXPECT_EQ(experiment.comparison.matched[1].rows[2].diverged, 2u);
  EXPECT_THAT(PageOf({experiment}), HasSubstr("; 4 of 6 pairs; 2 of 6 diverged</small>"));
}

// Returns a comparison by sequence of one run per setting; `post` is a value or kDivergedRun.
report::ComparisonInput BySequence(double post) {
  report::ComparisonInput input = report::OneAxis({{"pre", {2}}, {"post", {post}}});
  input.key = "predictions/loss";
  input.unit = report::Unit::kSequence;
  input.cells[0].by_sequence = {1, 2, 3};
  if (input.cells[1].value.has_value()) input.cells[1].by_sequence = {1.5, 2.5, 3.5};
  return input;
}

TEST(PageTest, SaysOnceWhatTheIntervalOverSequencesIsAbout) {
  const std::string page = PageOf({ExampleOf(BySequence(2.5))});
  constexpr char kNote[] = "airs are the sequences that the models read";
  const size_t first = page.find(kNote);
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(page.find(kNote, first + 1), std::string::npos);
}

TEST(PageTest, SaysThatADivergedRunHasNoSequences) {
  EXPECT_THAT(PageOf({ExampleOf(BySequence(report::kDivergedRun))}),
              AllOf(HasSubstr("1 of 2 runs diverged: it has no pairs and is left out of the means"),
                    Not(HasSubstr("converged partner"))));
}

TEST(PageTest, CountsRunsWithoutAWindow) {
  EXPECT_THAT(PageOf({Example()}), HasSubstr("<small>too few runs; 0 of 6 runs</small>"));
}

TEST(PageTest, SaysThatTheDataMustBeThereFirst) {
  Experiment experiment = Example();
  EXPECT_THAT(PageOf({experiment}), HasSubstr("ablate data add FILE"));
  experiment.provenance.data_sets.clear();
  EXPECT_THAT(PageOf({experiment}), Not(HasSubstr("ablate data add FILE")));
}

TEST(PageTest, KeepsTheLinesOfSamplesOfATextAndSaysNothingOfItsTrainingData) {
  Experiment experiment = Example();
  Samples::Setting& setting = experiment.samples->settings[0];
  setting.texts = {"KING:\nTo <be>\x01"};
  setting.in_training.reset();
  const std::string page = PageOf({experiment});
  EXPECT_THAT(page, HasSubstr("<li dir=\"auto\">KING:\nTo &lt;be&gt;\xEF\xBF\xBD</li>"));
  EXPECT_THAT(page, HasSubstr("<td>95 %</td><td>—</td>"));
}

TEST(PageTest, SaysWhyAFigureIsMissing) {
  const std::string page = PageOf({Example()});
  EXPECT_THAT(page, HasSubstr("<p class=\"missing\">There is nothing to show.</p>"));
  EXPECT_THAT(page, HasSubstr("Figure 3. Loss."));
}

TEST(PageTest, LeavesOutWhatThereIsNot) {
  Experiment experiment = Example();
  experiment.figures.clear();
  experiment.decisive.reset();
  experiment.samples.reset();
  experiment.windows = {};
  for (report::ComparisonRow& row : experiment.comparison.rows) {
    row.tokens_per_second = report::NoNumber(report::Undefined::kNotRecorded);
  }
  const std::string page = PageOf({experiment});
  EXPECT_THAT(page, Not(HasSubstr(">Figures<")));
  EXPECT_THAT(page, Not(HasSubstr("What the models write")));
  EXPECT_THAT(page, Not(HasSubstr("Curve summaries")));
  EXPECT_THAT(page, Not(HasSubstr("tokens/s")));
}

TEST(PageTest, OfOneSettingComparesNothing) {
  report::ComparisonInput input;
  input.key = "eval/loss";
  report::Cell cell;
  cell.outcome = report::RunOutcome::kDone;
  cell.value = 2.5;
  input.cells = {cell};
  const std::string page = PageOf({ExampleOf(input)});
  EXPECT_THAT(page, HasSubstr("Nothing is compared: there is one setting.</p>"));
  EXPECT_THAT(page, HasSubstr("No field of the resolved specs differs"));
  EXPECT_THAT(page, HasSubstr("None: every run has a result"));
  EXPECT_THAT(page, Not(HasSubstr("there are enough seeds")));
}

TEST(PageTest, OfSeveralExperimentsBeginsWithContents) {
  Experiment second = Example();
  second.id = "other-2222";
  second.question.clear();
  const std::string page = PageOf({Example(), second});
  EXPECT_THAT(page, HasSubstr("<h1>Report on 2 experiments</h1>"));
  EXPECT_THAT(page, HasSubstr("<a href=\"#e2\">other-2222</a>"));
  EXPECT_THAT(page, HasSubstr("<h2>other-2222</h2>"));
  EXPECT_THAT(page, HasSubstr("<section id=\"e2-results\""));
  EXPECT_THAT(page, HasSubstr("part\">Results</h3>"));
}

// Returns a page with three seeds of pre, and the given ones of post.
std::string PageOfPost(const std::vector<double>& post) {
  return PageOf({ExampleOf(report::OneAxis({{"pre", {1, 2, 3}}, {"post", post}}))});
}

TEST(PageTest, HasTheCommandThatMakesItAgainAndTheSpecAsAFile) {
  Page page = {"0.1.0", "some day", {{"names-norm-7f3k", ""}}, "ablate report names-norm-7f3k"};
  Experiment experiment = Example();
  experiment.provenance.spec_yaml = "name: a b\n";
  const std::string text = WholePage(page, {experiment});
  EXPECT_THAT(text,
              HasSubstr("Reproduce: <code class=\"copy\">ablate report names-norm-7f3k</code>"));
  EXPECT_THAT(text, HasSubstr("<a download=\"names-norm.yaml\" "
                              "href=\"data:application/yaml;charset=utf-8,name:%20a%20b%0A\">"
                              "names-norm.yaml</a>"));
}

TEST(PageTest, ForetellsSeedsOnlyFromMeanAndSpread) {
  EXPECT_THAT(PageOfPost({1.1, 2.2, 2.9}), HasSubstr("; the observed difference needs "));
  const std::string constant = PageOfPost({2, 3, 4});
  EXPECT_THAT(constant, HasSubstr("p = 0.250 · the permutation test needs at least 6 seeds"));
  EXPECT_THAT(constant, Not(HasSubstr("the observed difference needs")));
}

TEST(PageTest, SaysWhatDecidesWhereTheDifferenceDoesNot) {
  const auto wins = HasSubstr("the test is on wins minus losses"),
             same = HasSubstr("equal on all seeds h");
  EXPECT_THAT(PageOfPost({1.1, 2.2, 2.9}), AllOf(Not(wins), Not(same)));
  EXPECT_THAT(PageOfPost({1.1, 2.2, report::kDivergedRun}), AllOf(wins, Not(same)));
  EXPECT_THAT(PageOfPost({2, 3, 4}), AllOf(Not(wins), same));
}

TEST(PageTest, ShowsTheClearestOfManySettings) {
  std::vector<std::pair<std::string, std::vector<double>>> settings = {{"pre", report::Base(12)}};
  for (int i = 0; i < 10; ++i) {
    settings.push_back(
        {absl::StrCat("s", i), report::Shifted(report::Base(12), i == 7 ? .1 : .001 * i, .01)});
  }
  const std::string page = PageOf({ExampleOf(report::OneAxis(settings))});
  EXPECT_THAT(
      page,
      HasSubstr(
          "Of 10 settings, 1 is worse (“s7”), 2 lean worse (“s8” and “s9”) and 7 are inconclusive "
          "(“s0”, “s1”, “s2” and 4 more). The 8 clearest are shown; the table below has all."));
  EXPECT_LT(page.find("“s7”</p>"), page.find("“s9”</p>"));
  EXPECT_THAT(page, Not(HasSubstr("“s0”</p>")));
}

TEST(PageTest, ChecksOnlyWhatWasLookedAt) {
  Experiment experiment = Example();
  const std::string page = PageOf({experiment});
  EXPECT_THAT(page,
              HasSubstr("<li class=\"passed\"><span class=\"unseen\">Passed: </span>Every run "
                        "finished; no selected run diverged; 2 runs at other lr values did</li>"));
  EXPECT_THAT(page, Not(HasSubstr("at the edge of its grid"))) << "two values have no inside";
  EXPECT_THAT(page, Not(HasSubstr("Equal numbers of parameters")));
  experiment.comparison.edges_known = true;
  EXPECT_THAT(PageOf({experiment}), HasSubstr("No selected lr at the edge of its grid"));
}

TEST(PageTest, CallsNothingFinishedWellWhereRunsDiverged) {
  std::vector<double> post = report::Shifted(report::Base(8), .1, .01);
  report::Diverge(&post, 0, 3);
  const std::string page =
      PageOf({ExampleOf(report::OneAxis({{"pre", report::Base(8)}, {"post", post}}))});
  EXPECT_THAT(page, Not(HasSubstr("Every run finished")));
  EXPECT_THAT(page, HasSubstr("</span>3 of 16 runs diverged: each loses to a converged partner and "
                              "is left out of the means"));
}

TEST(PageTest, BeginsWithWhatCrossedAxesDo) {
  const std::string page = PageOf({ExampleOf(report::NormByResidual([](bool post, bool plain) {
    const bool both = post && plain;
    return report::Shifted(report::Base(8), (post ? .001 : 0) + (plain ? .1 : 0) + (both ? .05 : 0),
                           (post ? .02 : 0) + (both ? .01 : 0));
  }))});
  const size_t main = page.find("<p class=\"who effect\">residual false against true</p>");
  const size_t together = page.find("<p class=\"who effect\">post × residual false</p>");
  EXPECT_LT(main, together);
  EXPECT_LT(together, page.find("Each combination against the baseline:"));
  EXPECT_THAT(page, HasSubstr("<strong>Together higher by 0.050</strong> [0.041, 0.059] "));
  EXPECT_THAT(page, HasSubstr("than the sum of the two separate effects, over 8 seeds"));
  EXPECT_THAT(page, HasSubstr("p = 0.008 (Holm-adjusted for 1 interaction)"));
}

TEST(PageTest, TellsWhatTheDecisiveFigureCautions) {
  Experiment experiment = Example();
  experiment.figures[0].cautions = {"“none” leads only from step 700 on"};
  EXPECT_THAT(PageOf({experiment}),
              HasSubstr("<li class=\"caution\"><span class=\"unseen\">Caution: </span>“none” leads "
                        "only from step 700 on</li>"));
}

TEST(PageTest, TellsWhyTheServerCancelledTheExperiment) {
  Experiment experiment = Example();
  EXPECT_THAT(PageOf({experiment}), Not(HasSubstr("Cancelled: ")));
  experiment.why_cancelled = "2 runs failed; limits.failures is 2";
  EXPECT_THAT(PageOf({experiment}),
              HasSubstr("</span>Cancelled: 2 runs failed; limits.failures is 2</li>"));
}

TEST(PageTest, AllowsItsOwnStyleAndScriptAndNothingElse) {
  const std::string page = PageOf({Example()});
  EXPECT_LT(PageScript().size(), 4000u);
  EXPECT_THAT(page, HasSubstr(absl::StrCat("<style>", PageStyle(), "</style>")));
  EXPECT_THAT(page, HasSubstr(absl::StrCat("<script>", PageScript(), "</script>")));
  EXPECT_THAT(page, HasSubstr(text::EscapeMarkup(PagePolicy(PageStyle(), PageScript()))));
  // Made by openssl dgst -sha256 -binary | base64.
  EXPECT_EQ(PagePolicy("a", "b"),
            "default-src 'none'; style-src 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='; "
            "script-src 'sha256-PiPoFgA5WUoziU9lZOGxNIu9egCI1CxKy3PurtWcAJ0='; base-uri 'none'; "
            "form-action 'none'");
}

TEST(PageTest, ClaimsNothingOfRunsThatGoOn) {
  report::ComparisonInput input =
      report::OneAxis({{"pre", report::Base(8)}, {"post", report::Shifted(report::Base(8), .1)}});
  for (size_t open = 1; open <= 2; ++open) {
    report::Cell& cell = input.cells[input.cells.size() - open];
    report::Unfinish(&cell);
    const Experiment experiment = ExampleOf(input);
    ASSERT_TRUE(experiment.comparison.warnings.empty());
    const std::string page = PageOf({experiment});
    EXPECT_THAT(page, HasSubstr(open == 1 ? "<p>None so far; 1 run has not ended.</p>"
                                          : "<p>None so far; 2 runs have not ended.</p>"));
    EXPECT_THAT(page, AllOf(Not(HasSubstr("every run has a result")),
                            Not(HasSubstr("there are enough seeds"))));
  }
}

TEST(PageTest, ClaimsSharedWeightsOnlyWhereTheyAre) {
  Experiment experiment = Example();
  experiment.shared_weights = true;
  EXPECT_THAT(PageOf({experiment}), HasSubstr("share the initial weights"));
  experiment.shared_weights = false;
  EXPECT_THAT(PageOf({experiment}), Not(HasSubstr("share the initial weights")));
}

TEST(PageTest, SaysThatAnExperimentHasNotEnded) {
  EXPECT_THAT(PageOf({Example()}), Not(HasSubstr("answer preliminary")));
  report::ComparisonInput input =
      report::OneAxis({{"pre", report::Base(8)}, {"post", report::Shifted(report::Base(8), .1)}});
  report::Unfinish(&input.cells.back());
  const std::string page = PageOf({ExampleOf(input)});
  EXPECT_THAT(page, HasSubstr("<p class=\"answer preliminary\">Preliminary, 15 of 16 runs: there "
                              "is no verdict before all of them have ended.</p>"));
  EXPECT_THAT(page,
              HasSubstr("<strong>No verdict yet:</strong> 7 of 8 runs ended, “pre” 8 of 8; "));
  EXPECT_THAT(page, Not(HasSubstr("Every run finished")));
  EXPECT_LT(page.find("Preliminary, 15 of 16 runs"), page.find("<table"));
}

TEST(PageTest, RoundsNoTimeToNothing) {
  Experiment experiment = Example();
  experiment.provenance.device_seconds = .2;
  EXPECT_THAT(PageOf({experiment}), HasSubstr("; less than 1 device-second<"));
  experiment.provenance.device_seconds = 1.2;
  EXPECT_THAT(PageOf({experiment}), HasSubstr("; 1 device-second<"));
  experiment.provenance.device_seconds = 1234;
  EXPECT_THAT(PageOf({experiment}), HasSubstr("; 1,234 device-seconds<"));
}

TEST(PageTest, SaysWhichRunsContinued) {
  Experiment experiment = Example();
  EXPECT_THAT(PageOf({experiment}), Not(HasSubstr("continued from")));
  experiment.provenance.continued = {{500, 1}, {1000, 12}};
  EXPECT_THAT(PageOf({experiment}),
              HasSubstr("; 1 run continued from step 500 of a shorter run; 12 runs continued from "
                        "step 1,000 of shorter runs"));
}

}  // namespace
}  // namespace ablate::html
