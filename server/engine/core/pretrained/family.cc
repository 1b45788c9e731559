#include "server/engine/core/pretrained/family.h"

#include <algorithm>
#include <set>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "server/engine/names.h"

namespace ablate::engine {
namespace {

constexpr const Family* kFamilies[] = {&kGpt2, &kLlama, &kQwen2, &kQwen3, &kGptNeox};

// Settings that don't affect a trained model, and the task's: open in every family.
constexpr absl::string_view kOpenInAll =
    " vocabulary layers width heads context dropout tied_head feed_forward.activation "
    "feed_forward.hidden norm.eps norm.backward norm.attention_alpha norm.alpha init.kind "
    "init.streams init.outputs loss";

struct Setting {
  std::string field;
  std::string value;
};

// Lists all settings of a struct and of those below it. `path` is empty or ends with a dot.
template <HasFields Config>
void AddSettings(const std::string& path, const Config& config, std::vector<Setting>* settings) {
  ForEachField(config, [&](const char* name, const auto& value) {
    using Value = std::decay_t<decltype(value)>;
    const std::string field = path + name;
    if constexpr (HasFields<Value>) {
      AddSettings(field + ".", value, settings);
    } else if constexpr (std::is_enum_v<Value>) {
      settings->push_back({field, std::string(NameOf(value))});
    } else if constexpr (std::is_same_v<Value, bool>) {
      settings->push_back({field, value ? "true" : "false"});
    } else {
      settings->push_back({field, text::ShortestDecimal(value)});
    }
  });
}

std::vector<Setting> SettingsOf(const ModelConfig& model) {
  std::vector<Setting> settings;
  AddSettings("", model, &settings);
  return settings;
}

// A setting that a family fixes at another value.
struct Difference {
  Setting setting;
  std::string expected;
};

std::vector<Difference> DifferencesOf(const Family& family, const ModelConfig& model) {
  const std::vector<Setting> settings = SettingsOf(model), fixed = SettingsOf(family.base());
  const std::set<std::string> open = absl::StrSplit(absl::StrCat(family.open, kOpenInAll), ' ');
  std::vector<Difference> differences;
  for (size_t i = 0; i < settings.size(); ++i) {
    if (open.count(settings[i].field) == 0 && settings[i].value != fixed[i].value) {
      differences.push_back({settings[i], fixed[i].value});
    }
  }
  return differences;
}

absl::Status CheckSizes(const Family& family, const ModelConfig& model) {
  for (const ConfigSize& size : family.sizes) {
    const int value = model.*size.member;
    if (value >= 1 && value <= size.max) continue;
    return NotOfFamily(family, size.field, absl::StrCat(value), absl::StrCat("1 to ", size.max));
  }
  if (model.attention.head_size == 0 && model.width % model.heads != 0) {
    return NotOfFamily(family, "model.width", absl::StrCat(model.width),
                       absl::StrCat("a multiple of ", model.heads, " heads"));
  }
  if (!(model.dropout >= 0 && model.dropout < 1)) {
    return NotOfFamily(family, "model.dropout", text::ShortestDecimal(model.dropout),
                       "at least 0 and below 1");
  }
  if (!(model.norm.eps >= 0 && model.norm.eps <= kMaxPretrainedEps)) {
    return NotOfFamily(family, "model.norm.eps", absl::StrCat(model.norm.eps),
                       absl::StrCat("0 to ", kMaxPretrainedEps));
  }
  return absl::OkStatus();
}

absl::Status CheckActivation(const Family& family, const ModelConfig& model) {
  std::vector<absl::string_view> allowed;
  for (const NamedActivation& known : family.activations) {
    if (known.activation == model.activation) return absl::OkStatus();
    const absl::string_view name = NameOf(known.activation);
    if (allowed.empty() || allowed.back() != name) allowed.push_back(name);
  }
  const absl::string_view last = allowed.back();
  allowed.pop_back();
  return NotOfFamily(family, "model.feed_forward.activation", NameOf(model.activation),
                     absl::StrCat(absl::StrJoin(allowed, ", "), " or ", last));
}

}  // namespace

absl::Span<const Family* const> Families() { return kFamilies; }

const Family& NearestFamily(const ModelConfig& model) {
  const auto distance = [&](const Family* family) { return DifferencesOf(*family, model).size(); };
  const Family* nearest = kFamilies[0];
  for (const Family* family : kFamilies) {
    if (distance(family) < distance(nearest)) nearest = family;
  }
  return *nearest;
}

absl::Status NotOfFamily(const Family& family, absl::string_view field, absl::string_view value,
                         absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", family.title, " has no such model (",
                                                 value, "); expected ", expected, "."));
}

absl::Status CheckFamily(const Family& family, const ModelConfig& model) {
  const std::vector<Difference> differences = DifferencesOf(family, model);
  if (!differences.empty()) {
    const auto& [setting, expected] = differences[0];
    return NotOfFamily(family, absl::StrCat("model.", setting.field), setting.value, expected);
  }
  RETURN_IF_ERROR(CheckSizes(family, model));
  RETURN_IF_ERROR(CheckActivation(family, model));
  RETURN_IF_ERROR(family.check(family, model));
  const int64_t parameters = MakeLayout(model).size;
  if (parameters <= kMaxPretrainedParameters) return absl::OkStatus();
  return NotOfFamily(family, "model", absl::StrCat(parameters, " parameters"),
                     absl::StrCat("at most ", kMaxPretrainedParameters));
}

}  // namespace ablate::engine
