#include "server/report/compare/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/compare/example_grid.h"

namespace ablate::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// Returns a comparison of settings whose differences from "pre" are these, by seed.
Comparison WithDifferences(const std::vector<std::vector<double>>& settings) {
  std::vector<std::pair<std::string, std::vector<double>>> rows = {
      {"pre", std::vector<double>(settings[0].size(), 2.0)}};
  for (size_t i = 0; i < settings.size(); ++i) {
    std::vector<double> values;
    for (const double difference : settings[i]) values.push_back(2 + difference);
    rows.emplace_back("new" + std::to_string(i + 1), values);
  }
  return *Compare(OneAxis(rows));
}

// Returns differences of about this mean, all of one sign if there are fewer than 20.
std::vector<double> Around(double mean, size_t n) {
  std::vector<double> differences;
  for (size_t i = 0; i < n; ++i) {
    differences.push_back(mean * (1 + 0.1 * static_cast<double>(i % 5)));
  }
  return differences;
}

GateDecision DecisionOf(const std::vector<std::vector<double>>& settings,
                        const GateOptions& options = {}) {
  return DecideGate(WithDifferences(settings), options).decision;
}

GateOptions Looking() {
  GateOptions options;
  options.looks = true;
  return options;
}

TEST(GateTest, IsBetterWorseOrNotShownByTheVerdict) {
  EXPECT_EQ(DecisionOf({Around(-1, 8)}), GateDecision::kBetter);
  EXPECT_EQ(DecisionOf({Around(1, 8)}), GateDecision::kWorse);
  EXPECT_EQ(DecisionOf({{1, -1, 1.1, -0.9, 1, -1.2, 0.8, -1}}), GateDecision::kNotShown);
}

TEST(GateTest, CannotSayWithTooFewPairs) {
  const Gate gate = DecideGate(WithDifferences({Around(-1, 4)}), {});
  EXPECT_EQ(gate.decision, GateDecision::kCannotSay);
  EXPECT_EQ(gate.more_pairs, 2u) << "2^(1-6) <= 0.05";
  EXPECT_THAT(gate.text, HasSubstr("at least 2 more seeds needed"));
  EXPECT_EQ(gate.next, "new1");
}

TEST(GateTest, NeedsMorePairsForASmallerLevel) {
  GateOptions options;
  options.level = 0.001;
  EXPECT_EQ(DecisionOf({Around(-1, 8)}, options), GateDecision::kCannotSay);
  EXPECT_EQ(DecisionOf({Around(-1, 12)}, options), GateDecision::kBetter);
}

TEST(GateTest, IsAboutAllRows) {
  const auto better = Around(-1, 10), worse = Around(1, 10);
  const std::vector<double> even = {1, -1, 1.1, -0.9, 1, -1.2, 0.8, -1, 1, -1};
  EXPECT_EQ(DecisionOf({worse, better, even}), GateDecision::kBetter);
  EXPECT_EQ(DecisionOf({worse, even}), GateDecision::kNotShown);
  EXPECT_EQ(DecisionOf({worse, worse}), GateDecision::kWorse);
  EXPECT_EQ(DecideGate(*Compare(OneAxis({{"pre", Base(5)}})), {}).decision,
            GateDecision::kCannotSay);
}

TEST(GateTest, SaysAtAnyLookIfMorePairsAreWorthIt) {
  EXPECT_EQ(DecisionOf({Around(-1, 8)}, Looking()), GateDecision::kBetter);
  EXPECT_EQ(DecisionOf({Around(1, 8)}, Looking()), GateDecision::kWorse);
  EXPECT_EQ(DecisionOf({Around(-1, 3)}, Looking()), GateDecision::kCannotSay);
  EXPECT_EQ(DecisionOf({{1, -1, 1, -1, 1}}, Looking()), GateDecision::kNotShown) << "futile";
}

TEST(GateTest, AdjustsLooksOverTheRows) {
  // Six equal differences have p = 0.05 at any look; in a family of two that isn't enough.
  EXPECT_EQ(DecisionOf({std::vector<double>(7, -1.0)}, Looking()), GateDecision::kBetter);
  EXPECT_EQ(DecisionOf({std::vector<double>(7, -1.0), {1, -1, 1, -1, 1, -1, 1}}, Looking()),
            GateDecision::kCannotSay);
}

TEST(GateTest, CountsADivergedRunAsALoss) {
  const Comparison comparison =
      *Compare(OneAxis({{"pre", Base(9)}, {"post", std::vector<double>(9, kDivergedRun)}}));
  EXPECT_EQ(DecideGate(comparison, Looking()).decision, GateDecision::kWorse);
}

TEST(GateTest, RemembersTheChangesOfASession) {
  GateOptions options;
  options.session = true;
  options.changes = {"old"};
  const Gate gate = DecideGate(WithDifferences({Around(-1, 20)}), options);
  EXPECT_EQ(gate.decision, GateDecision::kBetter);
  EXPECT_THAT(gate.changes, ElementsAre("old", "new1, seed 0: 1 against 2"));
  options.changes = gate.changes;
  EXPECT_THAT(DecideGate(WithDifferences({Around(-1.5, 3)}), options).changes, SizeIs(3))
      << "the same label with other results is another change";
  EXPECT_THAT(DecideGate(WithDifferences({Around(-1, 3)}), options).changes, SizeIs(2));
}

TEST(GateTest, IsStricterInASessionThanForOneComparison) {
  GateOptions options;
  options.session = true;
  EXPECT_EQ(DecisionOf({Around(-1, 8)}, options), GateDecision::kCannotSay);
  EXPECT_EQ(DecisionOf({{0.1}}, options), GateDecision::kNotShown) << "the first pair is lost";
}

TEST(GateTest, ChoosesTheRowWithMostEvidenceForTheNextSeed) {
  EXPECT_EQ(DecideGate(WithDifferences({{-1, 1, -1}, {-1, -1, -1}, {1, -1, 1}}), Looking()).next,
            "new2");
}

}  // namespace
}  // namespace ablate::report
