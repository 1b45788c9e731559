// Describes the families of models whose files can be read and written. A family is an entry of one
// table; reader and writer know no family. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_PRETRAINED_FAMILY_H_
#define ABLATE_SERVER_ENGINE_CORE_PRETRAINED_FAMILY_H_

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/config.h"
#include "server/engine/core/layout.h"
#include "server/engine/core/pretrained/json_members.h"
#include "server/engine/core/pretrained/tensor_files.h"
#include "server/engine/pretrained.h"

namespace ablate::engine {

inline constexpr char kConfigName[] = "config.json";

// The member of config.json that keeps what a family's own members can't.
inline constexpr char kRecordKey[] = "ablate";

// The largest number of parameters, and the largest eps of a norm.
inline constexpr int64_t kMaxPretrainedParameters = int64_t{1} << 31;
inline constexpr double kMaxPretrainedEps = 1;

// The largest dropout probability.
inline constexpr double kLargestBelowOne = 1 - std::numeric_limits<double>::epsilon() / 2;

// A size in config.json, from 1 to `max`. The limits of the sizes are those of spec.proto.
struct ConfigSize {
  absl::string_view key;
  absl::string_view field;  // of an experiment
  int ModelConfig::*member;
  int max;
  // Other names of the key, or empty: the one that transformers maps to it, and an old one.
  absl::string_view alias = "";
  absl::string_view old_key = "";
  bool shortened = false;  // a larger value becomes `max`
};

struct NamedActivation {
  absl::string_view name;
  Activation activation;
};
// All names that transformers has for the formulas without a gate. The first name of an activation
// is the one that is written.
inline constexpr NamedActivation kActivationNames[] = {{"gelu_new", Activation::kGeluTanh},
                                                       {"gelu_pytorch_tanh", Activation::kGeluTanh},
                                                       {"gelu_python_tanh", Activation::kGeluTanh},
                                                       {"gelu_fast", Activation::kGeluTanh},
                                                       {"gelu_accurate", Activation::kGeluTanh},
                                                       {"gelu", Activation::kGelu},
                                                       {"gelu_python", Activation::kGelu},
                                                       {"relu", Activation::kRelu},
                                                       {"silu", Activation::kSilu},
                                                       {"swish", Activation::kSilu}};

// A member of config.json that must have one value, which is also its default.
struct FixedFlag {
  absl::string_view key;
  bool value;
};

// A tensor of a file that holds rows of a parameter.
struct StoredTensor {
  std::string name;            // without the family's prefix
  std::vector<int64_t> shape;  // in the file
  int64_t first = 0;           // of the parameter's rows
  // The file has [a, b] parts where the parameter has [b, a]; 1 and 1: the same order.
  int64_t a = 1;
  int64_t b = 1;
};

// Returns the elements of a parameter that a tensor holds.
template <typename Float>
absl::Span<Float> ElementsOf(const StoredTensor& stored, const ParameterInfo& parameter,
                             absl::Span<Float> parameters) {
  int64_t size = 1;
  for (const int64_t extent : stored.shape) size *= extent;
  const int64_t begin = parameter.offset + stored.first * parameter.size / parameter.shape[0];
  return parameters.subspan(static_cast<size_t>(begin), static_cast<size_t>(size));
}

// The contents of config.json.
struct FamilyConfig {
  ModelConfig model;
  bool has_record = false;  // of a GPT-2: the file keeps kind, bias and sites of the norms
  std::vector<std::string> notes;
};

struct Family {
  absl::string_view type;          // model_type of config.json
  absl::string_view title;         // in messages: "GPT-2 has no such model"
  absl::string_view architecture;  // that transformers loads
  absl::string_view prefix;        // in front of tensors' names, apart from the head's
  absl::string_view variant_type;  // model_type of variants that only we read, or empty
  absl::Span<const ConfigSize> sizes;
  bool hidden_is_derived = false;  // missing: four times the width
  absl::Span<const FixedFlag> flags;
  absl::string_view activation_key;
  absl::string_view default_activation;  // of `activations`
  absl::Span<const NamedActivation> activations;
  // Returns a model of the family; it fixes all settings but those of `open`, names of fields with
  // spaces between them.
  ModelConfig (*base)();
  absl::string_view open;
  // Returns INVALID_ARGUMENT if open settings have values that the family lacks.
  absl::Status (*check)(const Family& family, const ModelConfig& model);
  // Reads the members of config.json that no table above has into `config`, whose model is the
  // base.
  absl::Status (*read)(const Family& family, JsonMembers& members, const ImportOverrides& overrides,
                       FamilyConfig* config);
  // Infers what config.json leaves open from the tensors; null: nothing.
  absl::Status (*infer)(const ImportOverrides& overrides, const TensorFiles& files,
                        FamilyConfig* config);
  // Adds the members that `read` reads.
  void (*write)(const Family& family, const ModelConfig& model, nlohmann::ordered_json* config);
  // Returns the tensors that a parameter is stored in.
  std::vector<StoredTensor> (*tensors)(const ModelConfig& model, const ParameterInfo& parameter);
  // Returns a model that has each tensor which a file of this model may have.
  ModelConfig (*widest)(ModelConfig model);
  // Constants of a block that files may have: names in which # stands for the block.
  absl::Span<const absl::string_view> constants;
};

// Returns all families.
absl::Span<const Family* const> Families();

// Returns the family of the files that can hold the model, or the most similar one.
const Family& NearestFamily(const ModelConfig& model);

// Returns INVALID_ARGUMENT with the field, its value and what is expected, if the family's files
// can't hold the model.
absl::Status CheckFamily(const Family& family, const ModelConfig& model);

// Returns the error of a field with a value that the family lacks.
absl::Status NotOfFamily(const Family& family, absl::string_view field, absl::string_view value,
                         absl::string_view expected);

// Reads config.json, an object of at most 1 MiB. Missing members have transformers' defaults,
// except sizes, which must be there, and those that follow from others: heads of keys are as many
// as of queries, and divide the width. Unknown members are ignored. Sets `family`.
absl::StatusOr<FamilyConfig> ReadFamilyConfig(absl::string_view bytes,
                                              const ImportOverrides& overrides,
                                              const Family** family);

// Returns config.json of a model of the family.
std::string WriteFamilyConfig(const Family& family, const ModelConfig& model);

// Reads dropout probabilities, which must be equal unless one is given, into the model; returns
// INVALID_ARGUMENT if they aren't. `fallback` is the value of missing members.
absl::Status ReadDropout(absl::Span<const absl::string_view> keys, double fallback,
                         JsonMembers& members, const ImportOverrides& overrides,
                         FamilyConfig* config);

// Reads eps of the norms.
void ReadEps(absl::string_view key, JsonMembers& members, ModelConfig* model);

extern const Family kGpt2;
extern const Family kLlama;
extern const Family kQwen2;
extern const Family kQwen3;
extern const Family kGptNeox;

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_PRETRAINED_FAMILY_H_
