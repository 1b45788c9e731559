// Lists the settings that an axis of switches makes: each switch alone, all but each one, or pairs.
#ifndef ABLATE_PROTO_YAML_SWITCHES_H_
#define ABLATE_PROTO_YAML_SWITCHES_H_

#include <string>
#include <vector>

#include "ablate/v1/spec.pb.h"

namespace ablate::yaml {

// As in spec.proto. Pairs of 44 switches make 991 settings, and an axis has at most 1,000.
inline constexpr int kMaxSwitches = 100, kMaxPairedSwitches = 44;

struct SwitchSetting {
  std::string label;
  std::vector<int> switches;  // indexes of the switches that it applies, in their order
  int about = 0;              // index of the switch that it is named after, of a pair the second
};

// Returns the settings in order, the baseline first; none for more than kMaxSwitches labels.
std::vector<SwitchSetting> SwitchSettings(v1::SwitchForm::Value form,
                                          const std::vector<std::string>& labels);

}  // namespace ablate::yaml

#endif  // ABLATE_PROTO_YAML_SWITCHES_H_
