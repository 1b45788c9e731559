// The generated grid of settings on which the trainer is compared with PyTorch.
#ifndef ABLATE_TESTS_PARITY_GRID_H_
#define ABLATE_TESTS_PARITY_GRID_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/data/batches.h"

namespace ablate::engine {

// One run of a stack of `runs`; the other runs have other parameters and other, differently long,
// batches.
struct GridCase {
  std::string name;
  ModelConfig model;
  TrainingConfig training;
  Precision precision = Precision::kFloat64;
  int runs = 1;
  int compared = 0;
  std::vector<std::vector<TokenBatch>> batches;  // [runs][training.steps]
};

// Random settings by their number.
GridCase DrawCase(uint64_t number);

// The first of them, the same at every call; every switch has each of its values many times.
std::vector<GridCase> MakeGrid();

// The run of a case that is compared.
RunConfig ConfigOf(const GridCase& grid);

// Rows of one length over so few tokens that many begin alike; a few targets count nowhere.
TokenBatch ShortRows(const ModelConfig& model, int64_t rows, int64_t length);

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_PARITY_GRID_H_
