// Reads folders with models that gpt2.py and families.py wrote.
#ifndef ABLATE_TESTS_PARITY_MODEL_FOLDERS_H_
#define ABLATE_TESTS_PARITY_MODEL_FOLDERS_H_

#include <string>
#include <vector>

#include "server/engine/pretrained.h"

namespace ablate::engine {

// Returns all files of a folder.
std::vector<NamedFile> FilesIn(const std::string& folder);

// Returns the names of the models in a folder, in ascending order.
std::vector<std::string> ModelsIn(const std::string& folder);

std::vector<FileView> ViewsOf(const std::vector<NamedFile>& files);

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_PARITY_MODEL_FOLDERS_H_
