// Writes and reads the files of reference.py, and runs it.
#include "tests/parity/exchange.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/safetensors.h"

namespace ablate::engine {
namespace {

TensorType FileType(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kLong) return TensorType::kI64;
  return tensor.scalar_type() == at::kDouble ? TensorType::kF64 : TensorType::kF32;
}

at::ScalarType ScalarTypeOf(TensorType type) {
  if (type == TensorType::kI64) return at::kLong;
  return type == TensorType::kF64 ? at::kDouble : at::kFloat;
}

}  // namespace

ScratchFolder::ScratchFolder() {
  static int count = 0;
  path_ = testing::TempDir() + "ablate_parity_" + std::to_string(getpid()) + "_" +
          std::to_string(count++);
  std::filesystem::create_directories(path_);
}

ScratchFolder::~ScratchFolder() { std::filesystem::remove_all(path_); }

void WriteCase(const std::string& folder, const std::string& name, const nlohmann::json& settings,
               const TensorMap& tensors) {
  std::vector<TensorView> views;
  TensorMap contiguous;
  for (const auto& [key, tensor] : tensors) {
    const at::Tensor& kept = contiguous[key] = tensor.contiguous();
    views.push_back(
        {key, FileType(kept), kept.sizes().vec(),
         absl::string_view(static_cast<const char*>(kept.const_data_ptr()), kept.nbytes())});
  }
  const absl::StatusOr<std::string> file = WriteSafetensors(views, {{"case", settings.dump()}});
  ASSERT_TRUE(file.ok()) << file.status();
  std::ofstream(folder + "/" + name + ".case.safetensors", std::ios::binary) << *file;
}

std::string RunReference(const std::string& mode, const std::string& folder) {
  if (!std::filesystem::exists(ABLATE_PYTHON)) return "no Python at " ABLATE_PYTHON;
  const std::string command =
      "OMP_NUM_THREADS=1 '" ABLATE_PYTHON "' '" ABLATE_REFERENCE "' " + mode + " '" + folder + "'";
  const int status = std::system(command.c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return "Python lacks a package";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command;
  return "";
}

TensorMap ReadTensors(const std::string& bytes) {
  const absl::StatusOr<SafetensorsFile> file = ParseSafetensors(bytes);
  EXPECT_TRUE(file.ok()) << file.status();
  TensorMap tensors;
  if (!file.ok()) return tensors;
  for (const TensorView& view : file->tensors) {
    at::Tensor tensor = at::empty(view.shape, ScalarTypeOf(view.type));
    std::memcpy(tensor.mutable_data_ptr(), view.bytes.data(), view.bytes.size());
    tensors[view.name] = tensor;
  }
  return tensors;
}

TensorMap ReadAnswer(const std::string& folder, const std::string& name) {
  std::ifstream file(folder + "/" + name + ".answer.safetensors", std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return ReadTensors(bytes.str());
}

double RelativeError(const at::Tensor& a, const at::Tensor& b, double floor) {
  const at::Tensor exact = b.to(at::kDouble);
  const double difference = (a.to(at::kDouble) - exact).norm().item<double>();
  return difference == 0 ? 0 : difference / (exact.norm().item<double>() + floor);
}

}  // namespace ablate::engine
