// Defines the generated grid of settings on which the trainer is compared with PyTorch.
#ifndef ABLATE_TESTS_PARITY_GRID_H_
#define ABLATE_TESTS_PARITY_GRID_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/core/data/batches.h"

namespace ablate::engine {

struct GridCase {
  std::string name;
  ModelConfig model;
  TrainingConfig training;
  Precision precision = Precision::kFloat64;
  uint32_t seed = 1;
  std::vector<TokenBatch> batches;  // [training.steps]
};

// Returns the random settings of a number; if `switched`, of switches that the native trainer
// lacks, too.
GridCase DrawCase(uint64_t number, bool switched);

// Does the same; every third number is switched, so that the native trainer has many cases.
inline GridCase DrawCase(uint64_t number) { return DrawCase(number, number % 3 == 2); }

// Returns the first cases, the same at every call; every switch takes each of its values many
// times.
std::vector<GridCase> MakeGrid();

// Returns the run of a case in float32, with a seed that the case doesn't use.
RunConfig ConfigOf(const GridCase& grid);

// Returns rows of one length over so few tokens that many begin alike; a few targets are ignored.
TokenBatch ShortRows(const ModelConfig& model, int64_t rows, int64_t length);

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_PARITY_GRID_H_
