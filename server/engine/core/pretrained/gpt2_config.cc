#include "server/engine/core/pretrained/gpt2_config.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "server/engine/core/pretrained/gpt2_family.h"
#include "server/engine/core/pretrained/json_members.h"
#include "server/engine/names.h"

namespace ablate::engine {
namespace {

using nlohmann::json;

constexpr size_t kMaxGpt2ConfigBytes = size_t{1} << 20;
constexpr double kLargestBelowOne = 1 - std::numeric_limits<double>::epsilon() / 2;
constexpr absl::string_view kTiedHeadKey = "tie_word_embeddings";

// Reads a size under each of its names, which must agree. Returns the name that it was read under;
// the first name if it is missing.
absl::string_view ReadSize(JsonMembers& members, const Gpt2Size& size, int* value) {
  absl::string_view read_as = size.key;
  *value = 0;
  for (const absl::string_view key : {size.key, size.alias, size.old_key}) {
    if (key.empty()) continue;
    int other = *value;
    members.Integer(key, 1, size.max, &other);
    if (*value == 0 && other != 0) read_as = key;
    if (*value == 0) *value = other;
    if (*value != other) members.Refuse(key, absl::StrCat(read_as, ", ", *value));
  }
  return read_as;
}

void ReadSizes(JsonMembers& members, ModelConfig* model) {
  absl::string_view width, heads;  // their names
  for (const Gpt2Size& size : kGpt2Sizes) {
    const absl::string_view read_as = ReadSize(members, size, &(model->*size.member));
    if (size.member == &ModelConfig::width) width = read_as;
    if (size.member == &ModelConfig::heads) heads = read_as;
  }
  if (model->hidden == 0) model->hidden = 4 * model->width;
  for (const Gpt2Size& size : kGpt2Sizes) {
    if (model->*size.member > 0) continue;
    members.Require(size.key, absl::StrCat("an integer from 1 to ", size.max));
  }
  if (members.status().ok() && model->width % model->heads != 0) {
    members.Refuse(width, absl::StrCat("a multiple of ", heads, ", ", model->heads));
  }
}

void ReadActivation(JsonMembers& members, ModelConfig* model) {
  std::string name(kGpt2Activations[0].name);
  members.Text("activation_function", &name);
  const auto* known = std::find_if(std::begin(kGpt2Activations), std::end(kGpt2Activations),
                                   [&](const Gpt2Activation& entry) { return entry.name == name; });
  if (known == std::end(kGpt2Activations)) {
    const auto append_name = [](std::string* names, const Gpt2Activation& entry) {
      absl::StrAppend(names, entry.name);
    };
    return members.Refuse(
        "activation_function",
        absl::StrCat("one of ", absl::StrJoin(kGpt2Activations, ", ", append_name)));
  }
  model->activation = known->activation;
}

// Returns INVALID_ARGUMENT if the three probabilities differ and none is given.
absl::Status ReadDropout(JsonMembers& members, const Gpt2Overrides& overrides, Gpt2Config* config) {
  std::vector<std::string> shown;
  bool differ = false;
  for (const absl::string_view key : kGpt2Dropouts) {
    double probability = Gpt2Model().dropout;
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
        absl::StrCat(kGpt2ConfigName, ": ", absl::StrJoin(shown, ", "),
                     " differ; expected one probability. Give model.dropout."));
  }
  return absl::OkStatus();
}

// Reads the member that WriteGpt2Config adds.
absl::Status ReadRecord(const json& record, Gpt2Config* config) {
  const auto object_of = [&](const char* key) -> const json* {
    const auto found = record.is_object() ? record.find(key) : record.end();
    return record.is_object() && found != record.end() && found->is_object() ? &*found : nullptr;
  };
  const json* norm = object_of("norm");
  const json* init = object_of("init");
  if (norm == nullptr || init == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(kGpt2ConfigName, ": ", kGpt2RecordKey,
                     " lacks the objects norm and init; expected both. Export the model again."));
  }
  ModelConfig& model = config->model;
  const auto prefix = [](absl::string_view name) {
    return absl::StrCat(kGpt2RecordKey, name, ".");
  };
  JsonMembers norms(kGpt2ConfigName, *norm, prefix(".norm"));
  norms.Value("kind", &model.norm.kind);
  norms.Value("placement", &model.norm.placement);
  norms.Value("backward", &model.norm.backward);
  norms.Require("bias", "true or false");
  norms.Boolean("bias", &model.norm.bias);
  for (const Gpt2NormSite& site : kGpt2NormSites) {
    norms.Require(site.name, "true or false");
    norms.Boolean(site.name, &(model.norm.*site.member));
  }
  if (!norms.status().ok()) return norms.status();
  JsonMembers inits(kGpt2ConfigName, *init, prefix(".init"));
  inits.Value("kind", &model.init.kind);
  inits.Value("streams", &model.init.streams);
  if (!inits.status().ok()) return inits.status();
  JsonMembers others(kGpt2ConfigName, record, prefix(""));
  others.Value("loss", &model.loss);
  config->has_record = true;
  return others.status();
}

json RecordOf(const ModelConfig& model) {
  json norm = {{"kind", NameOf(model.norm.kind)},
               {"placement", NameOf(model.norm.placement)},
               {"backward", NameOf(model.norm.backward)},
               {"bias", model.norm.bias}};
  for (const Gpt2NormSite& site : kGpt2NormSites) {
    norm[std::string(site.name)] = model.norm.*site.member;
  }
  return {{"norm", std::move(norm)},
          {"init", {{"kind", NameOf(model.init.kind)}, {"streams", NameOf(model.init.streams)}}},
          {"loss", NameOf(model.loss)}};
}

}  // namespace

absl::StatusOr<Gpt2Config> ReadGpt2Config(absl::string_view bytes, const Gpt2Overrides& overrides) {
  ASSIGN_OR_RETURN(const json parsed, ParseJsonObject(kGpt2ConfigName, bytes, kMaxGpt2ConfigBytes));
  JsonMembers members(kGpt2ConfigName, parsed);
  const json* record = members.Find(kGpt2RecordKey);
  std::string type;
  members.Require("model_type", absl::StrCat("'", kGpt2Type, "'"));
  members.Text("model_type", &type);
  if (type != kGpt2Type && !(type == kGpt2VariantType && record != nullptr)) {
    members.Refuse("model_type", absl::StrCat("'", kGpt2Type, "'"));
  }
  for (const Gpt2Flag& flag : kGpt2Flags) {
    bool value = flag.value;
    members.Boolean(flag.key, &value);
    if (value != flag.value) members.Refuse(flag.key, flag.value ? "true" : "false");
  }
  Gpt2Config config;
  config.model = Gpt2Model();
  ReadSizes(members, &config.model);
  ReadActivation(members, &config.model);
  members.Number(kGpt2EpsKey, 0, kMaxGpt2Eps, absl::StrCat("a number from 0 to ", kMaxGpt2Eps),
                 &config.model.norm.eps);
  members.Boolean(kTiedHeadKey, &config.model.tied_head);
  absl::Status status = ReadDropout(members, overrides, &config);
  if (status.ok() && record != nullptr) status = ReadRecord(*record, &config);
  if (status.ok()) status = CheckGpt2Model(config.model);
  if (!status.ok()) return status;
  return config;
}

std::string WriteGpt2Config(const ModelConfig& model) {
  const bool plain = IsPlainGpt2(model);
  nlohmann::ordered_json config = {
      {"model_type", plain ? kGpt2Type : kGpt2VariantType},
      {"architectures", {plain ? "GPT2LMHeadModel" : "AblateGPT2LMHeadModel"}},
      {"dtype", "float32"}};
  for (const Gpt2Size& size : kGpt2Sizes) config[std::string(size.key)] = model.*size.member;
  for (const absl::string_view key : kGpt2Dropouts) config[std::string(key)] = model.dropout;
  for (const Gpt2Flag& flag : kGpt2Flags) config[std::string(flag.key)] = flag.value;
  const auto* activation = std::find_if(
      std::begin(kGpt2Activations), std::end(kGpt2Activations),
      [&](const Gpt2Activation& known) { return known.activation == model.activation; });
  config["activation_function"] = activation->name;
  config[kGpt2EpsKey] = model.norm.eps;
  config[std::string(kTiedHeadKey)] = model.tied_head;
  // GPT-2's own are tokens of its vocabulary.
  config["bos_token_id"] = nullptr;
  config["eos_token_id"] = nullptr;
  config[kGpt2RecordKey] = RecordOf(model);
  return config.dump(2) + "\n";
}

}  // namespace ablate::engine
