// Makes the files of tiny GPT-2 models for tests, which change them before reading.
#ifndef ABLATE_TESTS_ENGINE_GPT2_FILES_H_
#define ABLATE_TESTS_ENGINE_GPT2_FILES_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/safetensors.h"
#include "server/engine/pretrained.h"

namespace ablate::engine {

// A tensor with its bytes.
struct StoredTensor {
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;
  std::string bytes;
};

using StoredTensors = std::map<std::string, StoredTensor>;

inline StoredTensor TensorOfFloats(std::vector<int64_t> shape, const std::vector<float>& values) {
  StoredTensor tensor{TensorType::kF32, std::move(shape), std::string(4 * values.size(), '\0')};
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

inline std::vector<float> FloatsOf(const StoredTensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / 4);
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

// Returns a tensor of distinct numbers below 0.5 in magnitude, which depend on `seed`.
inline StoredTensor Numbers(std::vector<int64_t> shape, int seed) {
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  std::vector<float> values;
  for (int64_t i = 0; i < size; ++i) {
    values.push_back(static_cast<float>((i * 619 + seed * 71) % 997 - 498) / 1000);
  }
  return TensorOfFloats(std::move(shape), values);
}

// The files of a model, before they are written.
struct StoredModel {
  nlohmann::json config;
  StoredTensors tensors;
};

// Returns a GPT-2 with vocabulary 5, context 6, width 4, 2 heads, 2 layers and a tied head.
inline StoredModel TinyGpt2() {
  StoredModel model;
  model.config = {{"model_type", "gpt2"}, {"vocab_size", 5}, {"n_positions", 6},  {"n_embd", 4},
                  {"n_layer", 2},         {"n_head", 2},     {"n_inner", nullptr}};
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    const int seed = static_cast<int>(model.tensors.size()) + 1;
    model.tensors["transformer." + name] = Numbers(std::move(shape), seed);
  };
  add("wte.weight", {5, 4});
  add("wpe.weight", {6, 4});
  const auto add_pair = [&](const std::string& name, std::vector<int64_t> weight, int64_t bias) {
    add(name + ".weight", std::move(weight));
    add(name + ".bias", {bias});
  };
  for (int block = 0; block < 2; ++block) {
    const std::string h = absl::StrCat("h.", block, ".");
    add_pair(h + "ln_1", {4}, 4);
    add_pair(h + "attn.c_attn", {4, 12}, 12);
    add_pair(h + "attn.c_proj", {4, 4}, 4);
    add_pair(h + "ln_2", {4}, 4);
    add_pair(h + "mlp.c_fc", {4, 16}, 16);
    add_pair(h + "mlp.c_proj", {16, 4}, 4);
  }
  add_pair("ln_f", {4}, 4);
  return model;
}

// Removes each tensor whose name contains `part`.
inline void RemoveTensors(StoredModel* model, const std::string& part) {
  std::erase_if(model->tensors,
                [&](const auto& named) { return named.first.find(part) != std::string::npos; });
}

inline std::string FileOf(const StoredTensors& tensors) {
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    views.push_back({name, tensor.type, tensor.shape, tensor.bytes});
  }
  const auto file = WriteSafetensors(views, {{"format", "pt"}});
  EXPECT_TRUE(file.ok()) << file.status();
  return file.value_or("");
}

inline std::vector<NamedFile> FilesOf(const StoredModel& model) {
  return {{"config.json", model.config.dump()}, {"model.safetensors", FileOf(model.tensors)}};
}

inline absl::StatusOr<ImportedModel> ReadFiles(const std::vector<NamedFile>& files,
                                               const ImportOverrides& overrides = {}) {
  std::vector<FileView> views;
  for (const NamedFile& file : files) views.push_back({file.name, file.bytes});
  return ReadPretrained(views, overrides);
}

inline absl::StatusOr<ImportedModel> ReadModel(const StoredModel& model,
                                               const ImportOverrides& overrides = {}) {
  return ReadFiles(FilesOf(model), overrides);
}

// Returns a model that must be read.
inline ImportedModel MustRead(const StoredModel& model, const ImportOverrides& overrides = {}) {
  const auto imported = ReadModel(model, overrides);
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.value_or(ImportedModel());
}

inline std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_GPT2_FILES_H_
