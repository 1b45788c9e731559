// Exchanges tensors and settings with reference.py through safetensors files.
#ifndef ABLATE_TESTS_PARITY_EXCHANGE_H_
#define ABLATE_TESTS_PARITY_EXCHANGE_H_

#include <ATen/ATen.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "server/engine/config.h"

namespace ablate::engine {

using TensorMap = std::map<std::string, at::Tensor>;

// A folder that is removed with its contents at the end of a test.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Writes FOLDER/NAME.case.safetensors.
void WriteCase(const std::string& folder, const std::string& name, const nlohmann::json& settings,
               const TensorMap& tensors);

// Runs reference.py on all cases of the folder. Returns why it couldn't be run (no Python, no
// torch), or an empty string; a reference that fails is a test failure.
std::string RunReference(const std::string& mode, const std::string& folder);

// Reads FOLDER/NAME.answer.safetensors.
TensorMap ReadAnswer(const std::string& folder, const std::string& name);

// Parses a safetensors file's tensors.
TensorMap ReadTensors(const std::string& bytes);

// Returns ‖a − b‖₂ / ‖b‖₂ in float64, with `floor` added to the denominator.
double RelativeError(const at::Tensor& a, const at::Tensor& b, double floor = 0);

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_PARITY_EXCHANGE_H_
