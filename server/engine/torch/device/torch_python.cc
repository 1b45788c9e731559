#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "ATen/Context.h"
#include "server/engine/trainer.h"

namespace ablate::engine {

std::string TorchPython() {
  Dl_info library;
  if (dladdr(reinterpret_cast<const void*>(&at::globalContext), &library) == 0) return "";
  std::error_code error;
  // VENV/lib/python3.N/site-packages/torch/lib/libtorch_cpu.so
  std::filesystem::path folder = std::filesystem::canonical(library.dli_fname, error);
  for (int level = 0; level < 6; ++level) folder = folder.parent_path();
  const std::filesystem::path python = folder / "bin" / "python3";
  return !error && std::filesystem::exists(python, error) ? python.string() : "";
}

}  // namespace ablate::engine
