// A question to all cells and their runs: a condition, an order, and the values wanted of each.
#ifndef ABLATE_STORAGE_RUN_QUERY_H_
#define ABLATE_STORAGE_RUN_QUERY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "storage/records.h"

namespace ablate::storage {

// One value of a cell, by which it is found or sorted, or that is shown.
struct RunKey {
  enum class Kind {
    kField,  // text: a field of the resolved spec
    kAxis,   // text: the label on an axis
    kLast,   // number: last, least or largest finite value of a metric
    kMin,
    kMax,
    kExperiment,  // text: name of the experiment; tests for equality also accept its id
    kOwner,       // text
    kTags,        // text: the experiment's tags, each between spaces: " paper lr "
    kState,       // number: a RunState
    kSeed,        // number
    kParameters,  // number: learned parameters; missing if it is unknown, as for most programs
    kCreated,     // number, in Micros: creation of the experiment
    kStarted,     // number, likewise: of the run; missing until then
    kEnded,       // number, likewise
  };
  Kind kind = Kind::kSeed;
  std::string name;  // of a field, an axis or a metric
};

// Missing, a number or a text.
using RunValue = std::variant<std::monostate, double, std::string>;

// A comparison of a cell's value with a constant. False if the value is missing.
struct RunTest {
  enum class Op {
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kContains,
    kExists
  };
  RunKey key;
  Op op = Op::kEqual;
  // Number: a cell's text that is none differs from it, and has no order. Text: kContains ignores
  // the case of ASCII letters.
  RunValue constant;
};

struct RunCondition {
  enum class Kind { kTest, kAnd, kOr, kNot };
  Kind kind = Kind::kAnd;  // without operands: true
  std::vector<RunCondition> operands;
  RunTest test;
};

// The place of a row in the order of its list.
struct RunPosition {
  RunValue value;          // of the sort key
  std::string experiment;  // id
  uint32_t place = 0;      // in grid order
};

struct RunQuery {
  Viewer viewer;
  std::string experiment;  // id; empty: all that the viewer sees
  bool archived = true;    // also archived ones, of all
  RunCondition where;
  // Without it the newest experiment is first, and its cells are in grid order, as are equal
  // values. Missing values are last in both directions.
  std::optional<RunKey> order_by;
  bool descending = false;
  std::vector<RunKey> columns;
  std::optional<RunPosition> after;
  uint32_t limit = 0;
};

struct FoundCell {
  CellRecord cell;
  std::string experiment;        // id
  std::vector<RunValue> values;  // one per column
  RunPosition position;
};

// Names that a viewer's visible runs have.
struct QueryNames {
  std::vector<std::string> axes;
  std::vector<std::string> metrics;
  std::vector<std::string> settings;  // of programs: settings.model.heads
};

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_RUN_QUERY_H_
