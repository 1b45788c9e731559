// Evaluates a question's condition, for a cell or before all of it is known.
#ifndef ABLATE_STORAGE_SQLITE_RUN_CONDITION_H_
#define ABLATE_STORAGE_SQLITE_RUN_CONDITION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "storage/run_query.h"
#include "storage/sqlite/run_values.h"

namespace ablate::storage {

// In this order NOT is a reflection, AND the least and OR the greatest (Kleene's logic).
enum class Truth : int8_t { kFalse = -1, kUnknown = 0, kTrue = 1 };

class KeyValues;

// A condition whose tests are decided once for each experiment, variant or run. Evaluating a cell
// then looks up some bytes. Knowing only a cell's experiment, or only its run, is often enough to
// leave it out.
class CompiledCondition {
 public:
  // Reads the values of every key that the condition names, once.
  CompiledCondition(const QueriedStore& store, const RunCondition& condition);

  Truth OfExperiment(size_t experiment) const;
  Truth OfVariant(size_t experiment, uint32_t variant) const;
  Truth OfRun(int64_t run) const;
  bool OfCell(const ScannedCell& cell) const;
  // Returns the runs whose cells alone can match, if they are at most `most`.
  std::optional<std::vector<int64_t>> FewRuns(size_t most) const;

 private:
  struct Node {
    RunCondition::Kind kind = RunCondition::Kind::kAnd;
    std::vector<Node> operands;
    // Results of a test by experiment, by variant if these differ, and by run.
    RunTest test;
    Level level = Level::kCell;
    std::vector<bool> of_experiment;
    std::vector<std::vector<bool>> of_variant;
    int64_t first_run = 0;
    std::vector<bool> of_run;
  };

  // A cell of which only some parts are known.
  struct Known {
    bool experiment = false, variant = false, run = false, seed = false;
    ScannedCell cell;
  };

  Node Compile(const RunCondition& condition, KeyValues* values);
  void Decide(const QueriedStore& store, const RunValues& values, Node* node);
  static Truth Evaluate(const Node& node, const Known& known);
  static Truth EvaluateTest(const Node& node, const Known& known);

  // All runs for which a test holds are among these.
  int64_t first_run_ = INT64_MAX, last_run_ = 0;
  const Node root_;
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_RUN_CONDITION_H_
