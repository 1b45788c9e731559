#include "proto/yaml/switches.h"

#include <numeric>

#include "absl/strings/str_cat.h"

namespace ablate::yaml {

std::vector<SwitchSetting> SwitchSettings(v1::SwitchForm::Value form,
                                          const std::vector<std::string>& labels) {
  if (labels.size() > kMaxSwitches) return {};
  const int count = static_cast<int>(labels.size());
  std::vector<SwitchSetting> settings;
  if (form == v1::SwitchForm::remove) {
    std::vector<int> all(labels.size());
    std::iota(all.begin(), all.end(), 0);
    settings.push_back({"all", all});
    for (int i = 0; i < count; ++i) {
      SwitchSetting& setting = settings.emplace_back(SwitchSetting{"no-" + labels[i], all, i});
      setting.switches.erase(setting.switches.begin() + i);
    }
    return settings;
  }
  settings.push_back({"base", {}});
  for (int i = 0; i < count; ++i) settings.push_back({labels[i], {i}, i});
  for (int i = 0; i < count && form == v1::SwitchForm::pairs; ++i) {
    for (int j = i + 1; j < count; ++j) {
      settings.push_back({absl::StrCat(labels[i], "+", labels[j]), {i, j}, j});
    }
  }
  return settings;
}

}  // namespace ablate::yaml
