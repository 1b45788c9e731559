// Reads and writes config.json of all families.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "server/engine/core/pretrained/family.h"

namespace ablate::engine {
namespace {

constexpr size_t kMaxConfigBytes = size_t{1} << 20;
constexpr int kMostShortened = 1 << 30;
constexpr absl::string_view kTiedHeadKey = "tie_word_embeddings";

// Returns the types that ReadFamilyConfig reads, as text.
std::string AllTypes() {
  const auto append = [](std::string* names, const Family* family) {
    absl::StrAppend(names, family->type);
  };
  return absl::StrCat("one of ", absl::StrJoin(Families(), ", ", append));
}

const Family* FindFamily(JsonMembers& members) {
  std::string type;
  members.Require("model_type", AllTypes());
  members.Text("model_type", &type);
  const bool has_record = members.Find(kRecordKey) != nullptr;
  for (const Family* family : Families()) {
    if (family->type == type) return family;
    if (!family->variant_type.empty() && family->variant_type == type && has_record) return family;
  }
  members.Refuse("model_type", AllTypes());
  return nullptr;
}

// Reads a size under each of its names, which must agree. Returns the name that it was read under;
// the first name if it is missing.
absl::string_view ReadSize(JsonMembers& members, const ConfigSize& size, int* value) {
  absl::string_view read_as = size.key;
  *value = 0;
  for (const absl::string_view key : {size.key, size.alias, size.old_key}) {
    if (key.empty()) continue;
    int other = *value;
    members.Integer(key, 1, size.shortened ? kMostShortened : size.max, &other);
    if (*value == 0 && other != 0) read_as = key;
    if (*value == 0) *value = other;
    if (*value != other) members.Refuse(key, absl::StrCat(read_as, ", ", *value));
  }
  return read_as;
}

void ReadSizes(const Family& family, JsonMembers& members, FamilyConfig* config) {
  ModelConfig& model = config->model;
  absl::string_view width, heads;  // their names
  for (const ConfigSize& size : family.sizes) {
    int& value = model.*size.member;
    const absl::string_view read_as = ReadSize(members, size, &value);
    if (size.member == &ModelConfig::width) width = read_as;
    if (size.member == &ModelConfig::heads) heads = read_as;
    if (value <= size.max) continue;
    config->notes.push_back(absl::StrCat(size.field, " is ", size.max, "; the files allow ",
                                         text::Grouped(static_cast<uint64_t>(value)), "."));
    value = size.max;
  }
  if (model.hidden == 0 && family.hidden_is_derived) model.hidden = 4 * model.width;
  for (const ConfigSize& size : family.sizes) {
    if (model.*size.member > 0) continue;
    members.Require(size.key, absl::StrCat("an integer from 1 to ", size.max));
  }
  if (members.status().ok() && model.width % model.heads != 0 && !members.Has("head_dim")) {
    members.Refuse(width, absl::StrCat("a multiple of ", heads, ", ", model.heads));
  }
}

void ReadActivation(const Family& family, JsonMembers& members, ModelConfig* model) {
  const absl::string_view key = family.activation_key;
  std::string name(family.default_activation);
  members.Text(key, &name);
  const auto known = std::find_if(family.activations.begin(), family.activations.end(),
                                  [&](const NamedActivation& entry) { return entry.name == name; });
  if (known == family.activations.end()) {
    const auto append_name = [](std::string* names, const NamedActivation& entry) {
      absl::StrAppend(names, entry.name);
    };
    return members.Refuse(
        key, absl::StrCat("one of ", absl::StrJoin(family.activations, ", ", append_name)));
  }
  model->activation = known->activation;
}

}  // namespace

absl::Status ReadDropout(absl::Span<const absl::string_view> keys, double fallback,
                         JsonMembers& members, const ImportOverrides& overrides,
                         FamilyConfig* config) {
  std::vector<std::string> shown;
  bool differ = false;
  for (const absl::string_view key : keys) {
    double probability = fallback;
    members.Number(key, 0, kLargestBelowOne, "at least 0 and below 1", &probability);
    differ = differ || (!shown.empty() && probability != config->model.dropout);
    config->model.dropout = probability;
    shown.push_back(absl::StrCat(key, " ", text::ShortestDecimal(probability)));
  }
  if (!members.status().ok()) return members.status();
  if (overrides.dropout.has_value()) {
    if (!(*overrides.dropout >= 0 && *overrides.dropout < 1)) {
      return absl::InvalidArgumentError(absl::StrCat("model.dropout (",
                                                     text::ShortestDecimal(*overrides.dropout),
                                                     "); expected at least 0 and below 1."));
    }
    config->model.dropout = *overrides.dropout;
    config->notes.push_back(
        absl::StrCat("model.dropout is ", text::ShortestDecimal(config->model.dropout),
                     ", as given; config.json has ", absl::StrJoin(shown, ", "), "."));
  } else if (differ) {
    return absl::InvalidArgumentError(
        absl::StrCat(kConfigName, ": ", absl::StrJoin(shown, ", "),
                     " differ; expected one probability. Give model.dropout."));
  }
  return absl::OkStatus();
}

void ReadEps(absl::string_view key, JsonMembers& members, ModelConfig* model) {
  members.Number(key, 0, kMaxPretrainedEps, absl::StrCat("a number from 0 to ", kMaxPretrainedEps),
                 &model->norm.eps);
}

absl::StatusOr<FamilyConfig> ReadFamilyConfig(absl::string_view bytes,
                                              const ImportOverrides& overrides,
                                              const Family** family) {
  ASSIGN_OR_RETURN(const nlohmann::json parsed,
                   ParseJsonObject(kConfigName, bytes, kMaxConfigBytes));
  JsonMembers members(kConfigName, parsed);
  *family = FindFamily(members);
  if (*family == nullptr) return members.status();
  const Family& found = **family;
  FamilyConfig config;
  config.model = found.base();
  for (const FixedFlag& flag : found.flags) {
    bool value = flag.value;
    members.Boolean(flag.key, &value);
    if (value != flag.value) members.Refuse(flag.key, flag.value ? "true" : "false");
  }
  ReadSizes(found, members, &config);
  ReadActivation(found, members, &config.model);
  members.Boolean(kTiedHeadKey, &config.model.tied_head);
  RETURN_IF_ERROR(found.read(found, members, overrides, &config));
  RETURN_IF_ERROR(members.status());
  RETURN_IF_ERROR(CheckFamily(found, config.model));
  return config;
}

std::string WriteFamilyConfig(const Family& family, const ModelConfig& model) {
  nlohmann::ordered_json config = {
      {"model_type", family.type}, {"architectures", {family.architecture}}, {"dtype", "float32"}};
  for (const ConfigSize& size : family.sizes) config[std::string(size.key)] = model.*size.member;
  const auto activation = std::find_if(
      family.activations.begin(), family.activations.end(),
      [&](const NamedActivation& known) { return known.activation == model.activation; });
  config[std::string(family.activation_key)] = activation->name;
  config[std::string(kTiedHeadKey)] = model.tied_head;
  for (const FixedFlag& flag : family.flags) config[std::string(flag.key)] = flag.value;
  // The families' own are tokens of their vocabularies.
  config["bos_token_id"] = nullptr;
  config["eos_token_id"] = nullptr;
  family.write(family, model, &config);
  return config.dump(2) + "\n";
}

}  // namespace ablate::engine
