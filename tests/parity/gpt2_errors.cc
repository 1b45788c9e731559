// Prints a Markdown table of the largest errors of the logits of imported GPT-2 models, for
// docs/howto/bring-a-gpt2.md. Run by hand; needs 4 GB of memory and 3 GB of disk.
#include <c10/core/GradMode.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/engine/core/layout.h"
#include "server/engine/torch/model/parameters.h"
#include "server/engine/torch/model/transformer.h"
#include "server/engine/trainer.h"
#include "tests/parity/exchange.h"
#include "tests/parity/model_folders.h"

namespace ablate::engine {
namespace {

// Prints a problem and ends the program.
[[noreturn]] void Fail(absl::string_view problem) {
  std::cerr << problem << "\n";
  std::exit(1);
}

ImportedModel Import(const std::string& folder) {
  const std::vector<NamedFile> files = FilesIn(folder);
  auto imported = ReadPretrained(ViewsOf(files), {});
  if (!imported.ok()) Fail(imported.status().message());
  return *std::move(imported);
}

// Returns logits [T, V] of tokens [1, T], computed in float32.
at::Tensor LogitsInFloat32(const ImportedModel& imported, const at::Tensor& tokens) {
  const at::TensorOptions options = TensorOptionsOf(at::kCPU, Precision::kFloat32);
  FlatParameters parameters(imported.model, LearningRule::kBackprop, options);
  parameters.values().copy_(at::tensor(at::ArrayRef<float>(imported.parameters)));
  const c10::NoGradGuard no_grad;
  const int64_t length = tokens.size(1);
  const BatchTensors batch = {1, length, length, tokens.flatten(), {}, {}, {}};
  return Logits(imported.model, parameters.model(), batch, Pass());
}

double LargestDifference(const at::Tensor& a, const at::Tensor& exact) {
  return (a.to(at::kDouble) - exact).abs().max().item<double>();
}

// Prints the cells of one shape: its sizes, and for each type of file our largest error, and the
// one of transformers in float32.
void PrintRow(const std::string& folder, const std::string& shape) {
  std::string row;
  for (const char* type : {"F32", "F16", "BF16", "F64"}) {
    const std::string name = absl::StrCat(shape, ".", type);
    const ImportedModel imported = Import(absl::StrCat(folder, "/", name));
    const TensorMap answer = ReadAnswer(folder, name);
    const at::Tensor& exact = answer.at("float64.logits");
    if (row.empty()) {
      const ModelConfig& model = imported.model;
      row =
          absl::StrFormat("| %d, %d, %d | %d | %d | %.1f |", model.layers, model.width, model.heads,
                          model.vocabulary, exact.size(0), exact.abs().max().item<double>());
    }
    absl::StrAppendFormat(&row, " %.1e (%.1e) |",
                          LargestDifference(LogitsInFloat32(imported, answer.at("tokens")), exact),
                          LargestDifference(answer.at("float32.logits"), exact));
  }
  std::cout << row << std::endl;
}

void PrintTable() {
  const ScratchFolder folder;
  const std::string missing = RunReference("gpt2_shapes", folder.path());
  if (!missing.empty()) Fail(missing);
  PrepareLaneThread();
  std::cout
      << "| layers, width, heads | vocabulary | tokens | largest logit | F32 | F16 | BF16 | F64 |\n"
         "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const std::string& name : ModelsIn(folder.path())) {
    if (name.ends_with(".F32")) PrintRow(folder.path(), name.substr(0, name.size() - 4));
  }
}

}  // namespace
}  // namespace ablate::engine

int main() { ablate::engine::PrintTable(); }
