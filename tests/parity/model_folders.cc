#include "tests/parity/model_folders.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ablate::engine {

std::vector<NamedFile> FilesIn(const std::string& folder) {
  std::vector<NamedFile> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    files.push_back({entry.path().filename(), bytes.str()});
  }
  return files;
}

std::vector<std::string> ModelsIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory()) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<FileView> ViewsOf(const std::vector<NamedFile>& files) {
  std::vector<FileView> views;
  for (const NamedFile& file : files) views.push_back({file.name, file.bytes});
  return views;
}

}  // namespace ablate::engine
