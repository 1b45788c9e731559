// Which tokens of a batch are worked on together: one column of every activation each.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_COLUMNS_H_
#define ABLATE_SERVER_ENGINE_NATIVE_COLUMNS_H_

#include <cstdint>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/data/batches.h"

namespace ablate::engine::native {

class KeyValueCache;

// One row of a batch in consecutive columns, a position each.
struct Sequence {
  int64_t row = 0;  // of the batch
  int first = 0;    // column
  int length = 0;
};

// kColumns sequences of one length, a lane each. Position t has columns first[t], …, first[t] +
// nodes[t] − 1; lane l's is first[t] + node[t·kColumns + l], and lane[t·kColumns + n] is the first
// lane of node n.
struct Strip {
  int length = 0;
  std::vector<int32_t> first;  // [length]
  std::vector<int32_t> nodes;  // [length]
  std::vector<int32_t> node;   // [length·kColumns]
  std::vector<int32_t> lane;   // [length·kColumns]
};

// A token that the scores of a column are held against.
struct Reading {
  int32_t column = 0;
  int32_t target = 0;
};

// Columns from the last sequence's end on are no tokens: they repeat its last one, so that they
// hold numbers wherever it does, and have no target.
struct Columns {
  std::vector<Sequence> sequences;
  // Where there are any, they are what the columns are of, in place of sequences and targets.
  std::vector<Strip> strips;
  // Or each column is the next position of a sequence of its own, whose positions before it have
  // their keys and values here, and theirs come to them.
  KeyValueCache* past = nullptr;
  std::vector<Reading> readings;
  int tokens = 0;                 // columns that are tokens
  int count = 0;                  // columns, a multiple of kColumns
  std::vector<int32_t> token;     // [count]
  std::vector<int32_t> position;  // [count]
  std::vector<int64_t> row;       // [count]; none of strips, where no mask counts by it
  // [count], or where the loss reads last positions alone [RoundUp(sequences)]; −1 for none.
  std::vector<int32_t> target;
};

// Tokens, or sequences of a query pass, that are worked on together: as many as fill the widest
// tile of a matrix product.
inline constexpr int64_t kTogether = 64;

// Targets that count.
int64_t TargetsOf(const TokenBatch& batch);

// Fills up columns to a multiple of kColumns.
void Pad(Columns& columns);

// What columns with a target each are held against.
std::vector<Reading> ReadingsOf(const std::vector<int32_t>& target);

// Cuts rows [first, first + count) of a batch into groups of at most `together` tokens, but at
// least one row each; the rows in their order.
std::vector<Columns> CutIntoColumns(const TokenBatch& batch, int64_t first, int64_t count,
                                    LossPositions loss, int64_t together);

// Rows [first, first + count) of a batch, of which each has one column: its last position, and no
// other is worked on in columns.
struct QueryColumns {
  int64_t first_row = 0;
  int rows = 0;
  int count = 0;                       // RoundUp(rows)
  std::vector<const int64_t*> tokens;  // [rows], where a row's tokens begin
  std::vector<int> lengths;            // [rows]
  std::vector<int32_t> target;         // [count]; −1 for none
};

std::vector<QueryColumns> CutIntoQueries(const TokenBatch& batch, int64_t first, int64_t count,
                                         int64_t together);

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_COLUMNS_H_
