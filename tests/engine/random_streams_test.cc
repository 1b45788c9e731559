// Tests the vectors of docs/reference/random-streams.md that need no tensors.
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/engine/core/analyses/sampling.h"
#include "server/engine/core/data/batches.h"
#include "server/engine/core/data/dropout_stream.h"
#include "server/engine/core/data/random.h"
#include "tests/docs_page.h"

namespace ablate::engine {
namespace {

void ExpectVector(absl::string_view drawn, absl::string_view values) {
  ExpectRow("random-streams.md", drawn, values);
}

std::string Hex(uint64_t word) { return absl::StrFormat("`%016x`", word); }

TEST(StreamVectorsTest, HaveTheWordsAndStatesOfStreams) {
  ExpectVector("`word(0, 0)`", Hex(SplitMix64::At(0, 0)));
  ExpectVector("`word(0, 1)`", Hex(SplitMix64::At(0, 1)));
  ExpectVector("`key(0, \"data/train\")`", Hex(StreamSeed(0, "data/train")));
  ExpectVector("`key(4294967295, \"init/head.weight\")`",
               Hex(StreamSeed(4294967295, "init/head.weight")));
}

TEST(StreamVectorsTest, HaveWholeNumbersAndUniformOnes) {
  SplitMix64 generator(StreamSeed(0, "data/train"));
  std::vector<uint64_t> drawn;
  for (int i = 0; i < 8; ++i) drawn.push_back(generator.Below(7));
  ExpectVector("`below(7)`, eight from `key(0, \"data/train\")`", absl::StrJoin(drawn, " "));
  ExpectVector("sample 0, position 0, seed 1", absl::StrFormat("%.12f", UniformAt(1, 0, 0)));
  ExpectVector("sample 2, position 3, seed 1", absl::StrFormat("%.12f", UniformAt(1, 2, 3)));
}

TEST(StreamVectorsTest, HaveTheOrderOfDocuments) {
  ExpectVector("order of 9 documents, seed 42", absl::StrJoin(PythonShuffle(9, 42), " "));
}

TEST(StreamVectorsTest, HaveAMaskOfDropout) {
  std::vector<float> mask(24);
  DropoutStream(0.3, 7, 5, "block.0.attention.weights").FillLine(0, 24, mask.data());
  std::string stays;
  for (const float factor : mask) stays += factor > 0 ? '1' : '0';
  ExpectVector(
      "dropout 0.3, seed 7, step 5, site `block.0.attention.weights`: kept of elements 0 … 23",
      "`" + stays + "`");
}

// Returns the rows of a batch, as tokens → label.
std::string RowsOf(const TokenBatch& batch) {
  std::vector<std::string> rows;
  for (int64_t row = 0; row < batch.rows; ++row) {
    const auto first = batch.inputs.begin() + row * batch.length;
    rows.push_back(absl::StrCat(absl::StrJoin(first, first + batch.length, " "), " → ",
                                batch.targets[static_cast<size_t>(row)]));
  }
  return absl::StrJoin(rows, ", ");
}

TEST(StreamVectorsTest, HaveRowsOfTheRecallTasks) {
  RunConfig run;
  run.seed = 3;
  run.training.batch = 3;
  run.task = LegacyRecallTask{6, 4};
  ExpectVector("`legacy_recall`, 6 keys, draw 4, seed 3: training rows",
               RowsOf((*MakeBatchSource(run))->Next()));
  run.task = RecallTask{3, 4, 2};
  const auto recall = *MakeBatchSource(run);
  ExpectVector("`recall`, 3 entities, 4 attributes, 2 pairs, seed 3: training rows",
               RowsOf(recall->Next()));
  ExpectVector("the same: held-out rows", RowsOf(recall->HeldOut(0).Rows(0, 1)));
}

}  // namespace
}  // namespace ablate::engine
