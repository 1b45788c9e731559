// Groups the tokens of a batch for computation: each token is one column of every activation.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_COLUMNS_H_
#define ABLATE_SERVER_ENGINE_NATIVE_COLUMNS_H_

#include <cstdint>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/core/data/batches.h"

namespace ablate::engine::native {

class KeyValueCache;

// One row of a batch in consecutive columns, one per position.
struct Sequence {
  int64_t row = 0;  // of the batch
  int first = 0;    // column
  int length = 0;
};

// A prefix-shared batch: kColumns sequences of one length, one SIMD lane each. Sequences with equal
// beginnings share columns, unless the model looks ahead. Position t has counts[t] columns from
// first[t] on. Lane l's column is first[t] + column_of_lane[t·kColumns + l].
// lane_of_column[t·kColumns + n] is the first lane with column first[t] + n.
struct PrefixBatch {
  int length = 0;
  std::vector<int32_t> first;           // [length]
  std::vector<int32_t> counts;          // [length]
  std::vector<int32_t> column_of_lane;  // [length·kColumns]
  std::vector<int32_t> lane_of_column;  // [length·kColumns]
};

// A target that the logits of a column are compared with.
struct Reading {
  int32_t column = 0;
  int32_t target = 0;
};

// A group of columns, of one of three kinds:
//
// - whole sequences: `sequences` and `target` are set;
// - prefix-shared batches: `prefix_batches` and `readings` are set;
// - next positions: `past` is set, and each column is the next position of a separate sequence.
//
// Columns after the last sequence's end are padding: they repeat its last token, so that they are
// finite if that token's column is, and have no target.
struct Columns {
  std::vector<Sequence> sequences;
  std::vector<PrefixBatch> prefix_batches;
  // Has the keys and values of the earlier positions, and receives the ones of this position.
  KeyValueCache* past = nullptr;
  std::vector<Reading> readings;
  int tokens = 0;                 // columns that are tokens
  int count = 0;                  // columns, a multiple of kColumns
  std::vector<int32_t> token;     // [count]
  std::vector<int32_t> position;  // [count]
  std::vector<int64_t> row;       // [count]; unused by prefix-shared batches, which have no dropout
  // [count], or [RoundUp(sequences)] if the loss reads only last positions; −1: no target.
  std::vector<int32_t> target;
};

// How many tokens (or, in an absorbed pass, sequences) one group has: enough to fill the widest
// tile of a matrix product.
inline constexpr int64_t kTogether = 64;

// Returns the number of targets that count.
int64_t TargetsOf(const TokenBatch& batch);

// Pads columns to a multiple of kColumns.
void Pad(Columns& columns);

// Returns the readings of columns with at most one target each.
std::vector<Reading> ReadingsOf(const std::vector<int32_t>& target);

// Cuts rows [first, first + count) of a batch, in order, into groups of at most `together` tokens
// but at least one row.
std::vector<Columns> CutIntoColumns(const TokenBatch& batch, int64_t first, int64_t count,
                                    LossPositions loss, int64_t together);

// Rows of a batch, with one column each, for the last position. Other positions have no columns.
struct LastColumns {
  int64_t first_row = 0;
  int rows = 0;
  int count = 0;                       // RoundUp(rows)
  std::vector<const int64_t*> tokens;  // [rows], pointers to the first token of each row
  std::vector<int> lengths;            // [rows]
  std::vector<int32_t> target;         // [count]; −1: no target
};

std::vector<LastColumns> CutIntoLastColumns(const TokenBatch& batch, int64_t first, int64_t count,
                                            int64_t together);

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_COLUMNS_H_
