#include "server/engine/core/pretrained/tensor_files.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "server/engine/core/pretrained/family.h"
#include "server/engine/core/pretrained/json_members.h"

namespace ablate::engine {
namespace {

constexpr char kIndexName[] = "model.safetensors.index.json";
constexpr size_t kMaxIndexBytes = size_t{4} << 20;
constexpr size_t kMaxFileName = 255;
constexpr absl::string_view kPickleEndings[] = {".bin", ".pt", ".pth", ".pkl", ".ckpt"};

// The shard of each tensor, by the tensor's name in the file.
using ShardOfTensor = std::map<std::string, std::string>;

template <typename... Parts>
absl::Status BadFile(absl::string_view file, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", parts...));
}

bool IsPickle(const FileView& file) {
  return std::any_of(std::begin(kPickleEndings), std::end(kPickleEndings),
                     [&](absl::string_view ending) { return absl::EndsWith(file.name, ending); });
}

absl::Status NoTensorFile(absl::Span<const FileView> files) {
  const auto pickle = std::find_if(files.begin(), files.end(), IsPickle);
  if (pickle == files.end()) {
    return BadFile(kTensorsName, "the file is missing; expected it, or shards with ", kIndexName,
                   ".");
  }
  return BadFile(pickle->name,
                 "a pickle can run code and is never read; expected model.safetensors. Convert it "
                 "in its folder: python -c \"from transformers import AutoModelForCausalLM; "
                 "AutoModelForCausalLM.from_pretrained('.').save_pretrained('converted')\"");
}

absl::StatusOr<ShardOfTensor> ReadIndex(absl::string_view bytes) {
  ASSIGN_OR_RETURN(const auto parsed, ParseJsonObject(kIndexName, bytes, kMaxIndexBytes));
  const auto map = parsed.find("weight_map");
  if (map == parsed.end() || !map->is_object() || map->empty()) {
    return BadFile(kIndexName,
                   "weight_map is missing; expected an object with the file of each tensor.");
  }
  ShardOfTensor shards;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string()) {
      return BadFile(kIndexName, "weight_map has ", ShownJson(shard), " for tensor ",
                     Quoted(tensor), "; expected the name of a file.");
    }
    shards.emplace(tensor, shard.get<std::string>());
  }
  return shards;
}

// Checks that files and index name each other.
absl::Status CheckShards(const std::vector<const FileView*>& shards, const ShardOfTensor& index) {
  std::set<absl::string_view> named;
  absl::flat_hash_set<absl::string_view> given;
  for (const auto& [tensor, shard] : index) named.insert(shard);
  for (const FileView* shard : shards) {
    given.insert(shard->name);
    if (!named.contains(shard->name)) {
      return BadFile(shard->name, "the index doesn't name this file; expected only its shards.");
    }
  }
  for (const absl::string_view name : named) {
    if (given.contains(name)) continue;
    return BadFile(kIndexName, "the file ", Quoted(name),
                   " is missing; expected every file of weight_map. Give all of them.");
  }
  return absl::OkStatus();
}

// Checks that the index has the tensor in this file.
absl::Status CheckIndexed(const FileView& file, const std::string& tensor,
                          const ShardOfTensor& index) {
  const auto found = index.find(tensor);
  if (found == index.end()) {
    return BadFile(file.name, "tensor ", Quoted(tensor),
                   " isn't in the index; expected only its tensors.");
  }
  if (found->second == file.name) return absl::OkStatus();
  return BadFile(file.name, "tensor ", Quoted(tensor), " is there; expected it in ",
                 Quoted(found->second), ", as the index says.");
}

// Returns a tensor's name without the prefix of a family, which a head never has, and which the
// files of a model without a head lack.
std::string PlainName(absl::string_view name) {
  for (const Family* family : Families()) {
    const absl::string_view plain = absl::StripPrefix(name, family->prefix);
    const bool is_head =
        absl::StartsWith(plain, "lm_head.") || absl::StartsWith(plain, "embed_out.");
    if (plain != name) return std::string(is_head ? name : plain);
  }
  return std::string(name);
}

absl::Status AddTensors(const FileView& file, const ShardOfTensor* index, TensorFiles* opened) {
  absl::StatusOr<SafetensorsFile> parsed = ParseSafetensors(file.bytes);
  if (!parsed.ok()) return BadFile(file.name, parsed.status().message());
  for (TensorView& view : parsed->tensors) {
    if (index != nullptr) {
      RETURN_IF_ERROR(CheckIndexed(file, view.name, *index));
    }
    const auto [place, is_new] = opened->tensors.try_emplace(PlainName(view.name));
    if (!is_new) {
      return BadFile(file.name, "tensor ", Quoted(view.name), " is also there as ",
                     Quoted(place->second.view.name), "; expected one of them.");
    }
    place->second = {file.name, std::move(view)};
  }
  return absl::OkStatus();
}

// Checks that each tensor of the index was found. Call it after all shards were read.
absl::Status CheckComplete(const ShardOfTensor& index, const TensorFiles& opened) {
  for (const auto& [tensor, shard] : index) {
    const auto found = opened.tensors.find(PlainName(tensor));
    if (found != opened.tensors.end() && found->second.view.name == tensor) continue;
    return BadFile(shard, "tensor ", Quoted(tensor), " is missing; the index has it there.");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorFiles> OpenTensorFiles(absl::Span<const FileView> files) {
  absl::flat_hash_map<absl::string_view, const FileView*> by_name;
  std::vector<const FileView*> tensor_files;
  for (const FileView& file : files) {
    if (!text::IsPrintable(file.name, kMaxFileName)) {
      return BadFile("files", "the name ", Quoted(file.name), " isn't text; expected at most ",
                     kMaxFileName, " characters in UTF-8.");
    }
    if (!by_name.emplace(file.name, &file).second) {
      return BadFile(file.name, "the file is given twice; expected one.");
    }
    if (absl::EndsWith(file.name, ".safetensors")) tensor_files.push_back(&file);
  }
  const auto config = by_name.find(kConfigName);
  if (config == by_name.end()) {
    return BadFile(kConfigName, "the file is missing; expected it with model.safetensors.");
  }
  if (tensor_files.empty()) return NoTensorFile(files);
  absl::StatusOr<ShardOfTensor> index = ShardOfTensor();
  const auto index_file = by_name.find(kIndexName);
  const bool has_index = index_file != by_name.end();
  if (has_index) {
    index = ReadIndex(index_file->second->bytes);
    if (!index.ok()) return index.status();
    RETURN_IF_ERROR(CheckShards(tensor_files, *index));
  } else if (tensor_files.size() > 1) {
    return BadFile(tensor_files[1]->name, "this is the second tensor file; expected one, or ",
                   kIndexName, ". Give the index.");
  }
  TensorFiles opened;
  opened.config = config->second->bytes;
  for (const FileView* file : tensor_files) {
    RETURN_IF_ERROR(AddTensors(*file, has_index ? &*index : nullptr, &opened));
  }
  RETURN_IF_ERROR(CheckComplete(*index, opened));
  return opened;
}

}  // namespace ablate::engine
