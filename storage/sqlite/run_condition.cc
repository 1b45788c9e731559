#include "storage/sqlite/run_condition.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

namespace ablate::storage {
namespace {

Truth TruthOf(bool holds) { return holds ? Truth::kTrue : Truth::kFalse; }

// Decides a test of an experiment's name, for which its id stands, too.
bool HoldsOfName(const RunTest& test, const QueriedExperiment& experiment) {
  const bool name = Holds(test, experiment.title), id = Holds(test, experiment.name);
  return test.op == RunTest::Op::kNotEqual ? name && id : name || id;
}

}  // namespace

// The values of a condition's keys, each read at its first test.
class KeyValues {
 public:
  KeyValues(const QueriedStore& store, const RunCondition& condition) : store_(store) {
    CountTests(condition);
  }

  const QueriedStore& store() const { return store_; }

  const RunValues& Of(const RunTest& test) {
    Entry& entry = entries_.at({test.key.kind, test.key.name});
    if (!entry.values.has_value()) {
      // Several tests of a key need all of its values.
      entry.values = RunValues::Load(store_, test.key, entry.tests == 1 ? &test : nullptr);
    }
    return *entry.values;
  }

 private:
  struct Entry {
    int tests = 0;
    std::optional<RunValues> values;
  };

  void CountTests(const RunCondition& condition) {
    if (condition.kind == RunCondition::Kind::kTest) {
      ++entries_[{condition.test.key.kind, condition.test.key.name}].tests;
    }
    for (const RunCondition& operand : condition.operands) CountTests(operand);
  }

  const QueriedStore& store_;
  std::map<std::pair<RunKey::Kind, std::string>, Entry> entries_;
};

CompiledCondition::CompiledCondition(const QueriedStore& store, const RunCondition& condition)
    : root_([&] {
        KeyValues values(store, condition);
        return Compile(condition, &values);
      }()) {}

CompiledCondition::Node CompiledCondition::Compile(const RunCondition& condition,
                                                   KeyValues* values) {
  Node node;
  node.kind = condition.kind;
  for (const RunCondition& operand : condition.operands) {
    node.operands.push_back(Compile(operand, values));
  }
  if (node.kind != RunCondition::Kind::kTest) return node;
  node.test = condition.test;
  node.level = LevelOf(node.test.key.kind);
  if (node.level != Level::kCell) Decide(values->store(), values->Of(node.test), &node);
  return node;
}

void CompiledCondition::Decide(const QueriedStore& store, const RunValues& values, Node* node) {
  const RunTest& test = node->test;
  if (node->level == Level::kRun) {
    node->first_run = values.first_run();
    node->of_run.resize(values.runs());
    if (values.runs() > 0) {
      first_run_ = std::min(first_run_, values.first_run());
      last_run_ = std::max(last_run_, values.first_run() + static_cast<int64_t>(values.runs()) - 1);
    }
    for (size_t i = 0; i < node->of_run.size(); ++i) {
      const double number = values.OfRun(node->first_run + static_cast<int64_t>(i));
      node->of_run[i] = !std::isnan(number) && Holds(test, number);
    }
    return;
  }
  node->of_experiment.resize(store.experiments.size());
  node->of_variant.resize(store.experiments.size());
  for (size_t i = 0; i < store.experiments.size(); ++i) {
    node->of_experiment[i] = test.key.kind == RunKey::Kind::kExperiment
                                 ? HoldsOfName(test, store.experiments[i])
                                 : Holds(test, values.OfExperiment(i));
    for (const RunValue& value : values.OfVariants(i)) {
      node->of_variant[i].push_back(Holds(test, value));
    }
  }
}

Truth CompiledCondition::EvaluateTest(const Node& node, const Known& known) {
  const ScannedCell& cell = known.cell;
  switch (node.level) {
    case Level::kCell:
      return known.seed ? TruthOf(Holds(node.test, static_cast<double>(cell.seed)))
                        : Truth::kUnknown;
    case Level::kRun: {
      if (!known.run) return Truth::kUnknown;
      const auto place = static_cast<uint64_t>(cell.run - node.first_run);
      return TruthOf(place < node.of_run.size() && node.of_run[place]);
    }
    default:
      break;
  }
  if (!known.experiment) return Truth::kUnknown;
  const std::vector<bool>& variants = node.of_variant[cell.experiment];
  if (variants.empty()) return TruthOf(node.of_experiment[cell.experiment]);
  if (!known.variant) return Truth::kUnknown;
  return TruthOf(cell.variant < variants.size() && variants[cell.variant]);
}

Truth CompiledCondition::Evaluate(const Node& node, const Known& known) {
  switch (node.kind) {
    case RunCondition::Kind::kTest:
      return EvaluateTest(node, known);
    case RunCondition::Kind::kNot:
      return static_cast<Truth>(-static_cast<int>(Evaluate(node.operands.front(), known)));
    case RunCondition::Kind::kAnd: {
      Truth truth = Truth::kTrue;
      for (const Node& operand : node.operands) {
        truth = std::min(truth, Evaluate(operand, known));
        if (truth == Truth::kFalse) break;
      }
      return truth;
    }
    case RunCondition::Kind::kOr: {
      Truth truth = Truth::kFalse;
      for (const Node& operand : node.operands) {
        truth = std::max(truth, Evaluate(operand, known));
        if (truth == Truth::kTrue) break;
      }
      return truth;
    }
  }
  return Truth::kUnknown;
}

Truth CompiledCondition::OfExperiment(size_t experiment) const {
  Known known;
  known.experiment = true;
  known.cell.experiment = experiment;
  return Evaluate(root_, known);
}

Truth CompiledCondition::OfVariant(size_t experiment, uint32_t variant) const {
  Known known;
  known.experiment = known.variant = true;
  known.cell.experiment = experiment;
  known.cell.variant = variant;
  return Evaluate(root_, known);
}

Truth CompiledCondition::OfRun(int64_t run) const {
  Known known;
  known.run = true;
  known.cell.run = run;
  return Evaluate(root_, known);
}

std::optional<std::vector<int64_t>> CompiledCondition::FewRuns(size_t most) const {
  constexpr int64_t kNoRun = -1;  // has no values
  if (OfRun(kNoRun) != Truth::kFalse) return std::nullopt;
  std::vector<int64_t> runs;
  for (int64_t run = first_run_; run <= last_run_; ++run) {
    if (OfRun(run) == Truth::kFalse) continue;
    if (runs.size() == most) return std::nullopt;
    runs.push_back(run);
  }
  return runs;
}

bool CompiledCondition::OfCell(const ScannedCell& cell) const {
  return Evaluate(root_, {true, true, true, true, cell}) == Truth::kTrue;
}

}  // namespace ablate::storage
