// Computes statistics for questions in JSON, one per line, so that SciPy's answers can be compared.
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/report/compare/comparison.h"
#include "server/report/compare/paired.h"
#include "server/report/compare/statistics.h"

namespace ablate::report {
namespace {

using Json = nlohmann::json;
using Values = std::vector<double>;

// Returns a number, or the name of the reason why it is undefined.
Json Out(const Number& number) {
  if (number.defined()) return number.value;
  return std::string(UndefinedName(number.undefined));
}

Json Out(const Interval& interval) {
  if (interval.defined()) return {interval.low, interval.high};
  return std::string(UndefinedName(interval.undefined));
}

Json Out(const PairedStatistics& pairs) {
  return {{"n", pairs.n},
          {"mean", Out(pairs.mean)},
          {"deviation", Out(pairs.deviation)},
          {"interval", Out(pairs.interval)},
          {"t", Out(pairs.t)},
          {"p_t", Out(pairs.p_t)},
          {"p_sign_flip", Out(pairs.p_sign_flip)},
          {"exact", pairs.exact},
          {"effect", Out(pairs.effect)},
          {"effect_unbiased", Out(pairs.effect_unbiased)},
          {"skewness", Out(pairs.skewness)},
          {"correlation", Out(pairs.correlation)}};
}

Json AnswerSample(const Json& question) {
  const Summary summary = Summarize(question["values"].get<Values>());
  return {{"mean", Out(summary.mean)},
          {"deviation", Out(summary.deviation)},
          {"interval", Out(summary.interval)}};
}

Json AnswerPairs(const Json& question) {
  return Out(
      ComparePairs(question["setting"].get<Values>(), question["baseline"].get<Values>(), 0));
}

Json AnswerBootstrap(const Json& question) {
  return Out(BootstrapFromIndices(question["values"].get<Values>(),
                                  question["indices"].get<std::vector<uint32_t>>())
                 .interval);
}

Json AnswerHolm(const Json& question) {
  std::vector<Number> p;
  for (const double value : question["p"].get<Values>()) p.push_back(Defined(value));
  Json adjusted = Json::array();
  for (const Number& number : HolmAdjust(p)) adjusted.push_back(Out(number));
  return adjusted;
}

Json AnswerSignTest(const Json& question) {
  return Out(SignTest(question["wins"].get<size_t>(), question["losses"].get<size_t>()));
}

ComparisonInput ReadInput(const Json& question) {
  ComparisonInput input;
  input.key = "loss";
  input.better = question["better"] == "lower" ? Better::kLower : Better::kHigher;
  input.by = question["by"].get<std::string>();
  for (const Json& axis : question["axes"]) {
    Axis read;
    read.name = axis["name"].get<std::string>();
    read.labels = axis["labels"].get<std::vector<std::string>>();
    read.tuned = axis["tuned"].get<bool>();
    input.axes.push_back(read);
  }
  for (const Json& cell : question["cells"]) {
    Cell read;
    read.labels = cell["labels"].get<std::vector<std::string>>();
    read.seed = cell["seed"].get<uint32_t>();
    const std::string outcome = cell["outcome"].get<std::string>();
    read.outcome = outcome == "done"       ? RunOutcome::kDone
                   : outcome == "diverged" ? RunOutcome::kDiverged
                                           : RunOutcome::kMissing;
    read.value = cell["value"].get<double>();
    input.cells.push_back(read);
  }
  return input;
}

Json RowOut(const ComparisonRow& row) {
  Json runs = Json::array();
  for (const SeedRun& run : row.runs) runs.push_back({run.seed, run.chosen});
  return {{"labels", row.labels},
          {"n", row.n},
          {"diverged", row.diverged},
          {"mean", Out(row.mean)},
          {"interval", Out(row.interval)},
          {"pairs", row.pairs.all},
          {"wins", row.pairs.wins},
          {"ties", row.pairs.ties},
          {"difference", Out(row.difference)},
          {"p", Out(row.p)},
          {"by_wins", row.by_wins},
          {"by_rechoosing", row.difference.by_reselection},
          {"p_holm", Out(row.p_holm)},
          {"runs", runs}};
}

Json AnswerCompare(const Json& question) {
  const absl::StatusOr<Comparison> comparison = Compare(ReadInput(question));
  if (!comparison.ok()) return std::string(comparison.status().message());
  Json rows = Json::array(), matched = Json::array();
  for (const ComparisonRow& row : comparison->rows) rows.push_back(RowOut(row));
  for (const MatchedBlock& block : comparison->matched) {
    Json block_rows = Json::array();
    for (const ComparisonRow& row : block.rows) block_rows.push_back(RowOut(row));
    matched.push_back({{"labels", block.labels}, {"rows", block_rows}});
  }
  return {{"rows", rows}, {"matched", matched}};
}

Json Answer(const Json& question) {
  const struct {
    const char* name;
    Json (*answer)(const Json&);
  } kinds[] = {{"sample", AnswerSample}, {"pairs", AnswerPairs},     {"bootstrap", AnswerBootstrap},
               {"holm", AnswerHolm},     {"compare", AnswerCompare}, {"sign_test", AnswerSignTest}};
  for (const auto& kind : kinds) {
    if (question["ask"] == kind.name) return kind.answer(question);
  }
  return "unknown question";
}

}  // namespace
}  // namespace ablate::report

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << ablate::report::Answer(nlohmann::json::parse(line)).dump() << "\n";
  }
  return 0;
}
