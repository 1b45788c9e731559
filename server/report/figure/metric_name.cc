// What a metric is called in figures.
#include "server/report/figure/metric_name.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace ablate::figure {
namespace {

struct Known {
  absl::string_view key, text, unit;
};

constexpr Known kKnown[] = {
    {"train/loss", "training loss", "nats"},
    {"train/gradient_norm", "gradient norm", ""},
    {"eval/loss", "held-out loss", "nats"},
    {"eval/accuracy", "held-out accuracy", ""},
};

}  // namespace

MetricName NameOf(absl::string_view key) {
  for (const Known& known : kKnown) {
    if (known.key == key) return {std::string(known.text), std::string(known.unit)};
  }
  return {std::string(key), ""};
}

std::string AxisTitle(const MetricName& name) {
  std::string title = name.text;
  if (title.empty()) return title;
  // Keys stay as they are written.
  if (title.find('/') == std::string::npos) title[0] = absl::ascii_toupper(title[0]);
  return name.unit.empty() ? title : absl::StrCat(title, " (", name.unit, ")");
}

}  // namespace ablate::figure
